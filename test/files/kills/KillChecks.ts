import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { faultsOfTree } from "#test/files/tree/TreeSteps.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { assertCollected } from "#test/infra/blobs/StoredBlobs.ts"
import { sha256Of } from "#test/infra/blobs/BlobSteps.ts"
import type { Answers } from "./KilledClient.ts"

interface Row {
  readonly id: string
  readonly groupId: string
  readonly bucket: string
  readonly sha256: string
  readonly version: number
  readonly second: number
  /** null: not in the trash; true: it is deleted for good */
  readonly isEnded: boolean | null
}

/** Waits until Postgres has carried out the last statements of the killed processes. */
const quiet = Effect.flatMap(SqlClient, (sql) =>
  eventually(
    "nothing is under way in Postgres",
    Effect.map(
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND state <> 'idle'`,
      (rows) => rows.length === 0
    )
  )
)

/** Numbers of the versions of each file without gap or twin. */
const assertNumbered = (rows: ReadonlyArray<Row>, message: string): void => {
  for (const [group, versions] of Map.groupBy(rows, ({ groupId }) => groupId))
    assert.deepStrictEqual(
      versions.map(({ version }) => version).toSorted((a, b) => a - b),
      versions.map((_, index) => index + 1),
      `${group} ${message}`
    )
}

/** Each request made all of its versions, once, or none, where no answer came. */
const assertOnce = (rows: ReadonlyArray<Row>, { requests }: Answers, message: string): void => {
  const bySecond = Map.groupBy(rows, ({ second }) => second)
  for (const [second, { files, isAnswered }] of requests) {
    const made = bySecond.get(second)?.length ?? 0
    if (made !== files && (isAnswered || made !== 0))
      assert.fail(`request ${second} of ${files} files made ${made} ${message}`)
  }
}

/** Asserts, while no server is there, that what clients were told holds in Postgres and in the directory of blobs. */
export const assertHolds = (answers: Answers, message: string) =>
  Effect.gen(function* () {
    const { directory, upkeep } = yield* BlobStore
    const sql = yield* SqlClient
    yield* quiet
    yield* upkeep.collect
    const open = yield* sql<{ id: string }>`SELECT id FROM blob_uploads`
    const known = yield* assertCollected(directory, message, new Set(open.map(({ id }) => id)))
    const [owner] = yield* sql<{ id: string }>`SELECT id FROM users`
    assert.deepStrictEqual(yield* faultsOfTree(owner?.id ?? ""), [], message)

    const rows = yield* sql<Row>`SELECT v.id, v.group_id AS "groupId", b.name AS bucket,
      encode(v.sha256, 'hex') AS sha256, v.version, extract(epoch FROM v.modified_at)::int AS second,
      t.is_ended AS "isEnded" FROM file_versions v JOIN file_groups g ON g.id = v.group_id
      JOIN directories b ON b.id = g.bucket_id LEFT JOIN file_trash t ON t.id = g.trash_id`
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const [id, { groupId, sha256 }] of answers.versions)
      if (!answers.doomed.has(groupId) && !answers.deletedVersions.has(id))
        assert.strictEqual(byId.get(id)?.sha256, sha256, `${id} ${message}`)
    for (const { groupId, id, isEnded } of rows)
      if (answers.purged.has(groupId)) assert.isTrue(isEnded, `${id} ${message}`)
    const kept = rows.filter(({ bucket }) => bucket === "kept")
    const resumed = rows.filter(({ bucket }) => bucket === "resumed")
    assertNumbered([...kept, ...resumed], message)
    assertOnce(kept, answers, message)
    assert.strictEqual(new Set(resumed.map(({ sha256 }) => sha256)).size, resumed.length, message)
    for (const { fileId, sha256 } of answers.resumed)
      assert.strictEqual(byId.get(fileId)?.sha256, sha256, `${fileId} ${message}`)
    for (const [id, sha256] of answers.accountFiles)
      assert.strictEqual(known.get(`file ${id}`), sha256, `${id} ${message}`)
    const ended = rows.filter(({ isEnded }) => isEnded === true).length
    const readable = new Set(rows.filter(({ isEnded }) => isEnded === null).map(({ id }) => id))
    return { ended, readable, resumed: resumed.length }
  })

/** Asserts that a server gives each version that was answered, byte for byte, but for those that are in the trash or gone. */
export const assertRead = async (
  url: string,
  key: string,
  answers: Answers,
  readable: ReadonlySet<string>,
  message: string
): Promise<void> => {
  const { accountFiles, deletedAccountFiles, links, resumed, versions } = answers
  const assertAt = async (path: string, sha256: string | undefined): Promise<void> => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const seen = [answer.status, answer.status === 200 ? sha256Of(bytes) : undefined]
    assert.deepStrictEqual(seen, [sha256 === undefined ? 404 : 200, sha256], `${path} ${message}`)
  }
  for (const [id, known] of versions) {
    const sha256 = readable.has(id) ? known.sha256 : undefined
    await assertAt(`/api/files/${id}`, sha256)
    const link = links.get(id)
    if (link !== undefined) await assertAt(link, sha256)
  }
  for (const { fileId, sha256 } of resumed) await assertAt(`/api/files/${fileId}`, sha256)
  for (const [id, sha256] of accountFiles) await assertAt(`/api/v1/files/${id}`, sha256)
  for (const id of deletedAccountFiles) await assertAt(`/api/v1/files/${id}`, undefined)
}
