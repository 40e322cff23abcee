import { hash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { type Asked, TestServer, textOf } from "#test/harness/TestServer.ts"

interface MadeDirectory {
  readonly id: string
  readonly bucketId: string
  readonly path: string
}

export interface ShownManifest {
  readonly directories: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly files: ReadonlyArray<{
    readonly versionGroupId: string
    readonly originalName: string
    readonly version: number
  }>
  readonly generatedAt: string
  readonly cursor: string
}

/** Directories and files of a user, as rows: no file has bytes that anybody asks for here. */
const makeRows = (sql: SqlClient, userId: string) => {
  const directory = Effect.fnUntraced(function* (
    parent: MadeDirectory | undefined,
    name: string,
    kind = "plain"
  ) {
    const id = newId("dir")
    const made = {
      id,
      bucketId: parent?.bucketId ?? id,
      path: parent === undefined ? "" : `${parent.path}${name}/`
    }
    yield* sql`INSERT INTO directories ${sql.insert({
      id,
      user_id: userId,
      bucket_id: made.bucketId,
      parent_id: parent?.id ?? null,
      name,
      path: made.path,
      kind
    })}`
    return made
  })
  const version = Effect.fnUntraced(function* (groupId: string, name: string, number: number) {
    const id = newId("fv")
    const sha256 = hash("sha256", `${name} ${number}`, "buffer")
    yield* sql`INSERT INTO file_versions (id, group_id, user_id, version, original_name, mime_type, size, store, sha256,
        source, modified_at)
      VALUES (${id}, ${groupId}, ${userId}, ${number}, ${name}, 'text/plain', ${number}, (SELECT id FROM blob_stores LIMIT 1),
        ${sha256}, 'upload', '2026-01-02T03:04:05Z')`
    yield* sql`UPDATE file_groups SET current_id = ${id}, last_version = ${number} WHERE id = ${groupId}`
    return { id, fileHash: sha256.toString("hex") }
  })
  const file = Effect.fnUntraced(function* (place: MadeDirectory, name: string) {
    const groupId = newId("fg")
    yield* sql`INSERT INTO file_groups ${sql.insert({
      id: groupId,
      user_id: userId,
      bucket_id: place.bucketId,
      directory_id: place.id,
      name,
      path: `${place.path}${name}`,
      search_name: name
    })}`
    return { groupId, ...(yield* version(groupId, name, 1)) }
  })
  return { directory, file, version }
}

/** A user with a tree, and requests about what of it is synchronised. */
export const makeTree = Effect.gen(function* () {
  const { ask, makeUser } = yield* TestServer
  const sql = yield* SqlClient
  const { id: userId, key } = yield* makeUser()

  const flag = (resourceType: "file" | "directory", resourceId: string, more: object = {}) =>
    ask("POST", "/api/sync/subscriptions", { key, json: { resourceType, resourceId, ...more } })
  const manifest = Effect.fnUntraced(function* (deviceId?: string, asked: Asked = {}) {
    const headers = deviceId === undefined ? {} : { "x-device-id": deviceId }
    const answer = yield* ask("GET", "/api/sync/manifest", { key, headers, ...asked })
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.json))
    return answer.json as ShownManifest
  })
  return {
    ask,
    flag,
    /** fails unless the flag was set */
    flagged: (...asked: Parameters<typeof flag>) =>
      Effect.tap(flag(...asked), ({ json, status }) =>
        Effect.sync(() => assert.strictEqual(status, 200, JSON.stringify(json)))
      ),
    key,
    manifest,
    /** the names in the manifest, directories with a slash, sorted */
    names: (deviceId?: string, asked?: Asked) =>
      Effect.map(manifest(deviceId, asked), ({ directories, files }) =>
        [
          ...directories.map(({ name }) => `${name}/`),
          ...files.map(({ originalName }) => originalName)
        ].sort()
      ),
    device: (name: string) =>
      Effect.map(ask("POST", "/api/devices", { key, json: { name, platform: "desktop" } }), (made) =>
        textOf(made, "id")
      ),
    sql,
    userId,
    ...makeRows(sql, userId)
  }
})
