import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newToken } from "#src/files/links/LinkTokens.ts"
import { LinkUses } from "#src/files/links/LinkUses.ts"
import { newUser } from "#test/infra/blobs/BlobSteps.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const mebibyte = 1024 * 1024
const stores = LinkUses.layer.pipe(Layer.provideMerge(TestStores.layerWith({})))

layer(stores, { excludeTestServices: true })("bytes of a link that were lost on their way", (it) => {
  it.effect("do not count: 16 MiB of each answer, and 1 GiB of a use in all", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const uses = yield* LinkUses
      const userId = yield* newUser
      const { hash, token } = newToken()
      yield* sql`INSERT INTO share_links ${sql.insert({ token_hash: hash, user_id: userId, group_id: "fg_1", max_requests: 1, created_at: new Date() })}`
      const link = yield* uses.find(token)
      if (link === undefined) return assert.fail("there is no link")
      const who = { address: "192.0.2.1" }
      const sizeBytes = 4 * 1024 * mebibyte
      const bytes = 100 * mebibyte
      const first = yield* uses.begin(link, { ...who, agent: "" }, { versionId: null, sizeBytes, bytes })
      const cut = (hold: typeof first, sentBytes: number) =>
        hold === undefined
          ? Effect.die("the use is over")
          : uses.end(hold, { sentBytes, isWhole: false, isLast: false })
      const held = Effect.map(
        sql<{
          held: number
          sent: number
        }>`SELECT held::float8 / ${mebibyte} AS held, sent::float8 / ${mebibyte} AS sent
          FROM share_uses WHERE token_hash = ${hash}`,
        ([row]) => row
      )
      yield* cut(first, 5 * mebibyte)
      assert.deepStrictEqual(yield* held, { held: 0, sent: 5 })
      for (let cuts = 0; cuts < 63; cuts++) yield* cut(yield* uses.resume(link, who, bytes), 20 * mebibyte)
      // 5 MiB and 63 times 16 MiB are 1,013 MiB; the last 11 are left.
      assert.deepStrictEqual(yield* held, { held: 63 * 4, sent: 5 + 63 * 20 })
      yield* cut(yield* uses.resume(link, who, bytes), 20 * mebibyte)
      yield* cut(yield* uses.resume(link, who, bytes), 20 * mebibyte)
      assert.deepStrictEqual(yield* held, { held: 63 * 4 + 9 + 20, sent: 5 + 65 * 20 })
      // An answer that comes to its end is counted.
      const last = yield* uses.resume(link, who, bytes)
      if (last !== undefined) yield* uses.end(last, { sentBytes: bytes, isWhole: true, isLast: false })
      assert.strictEqual((yield* held)?.held, 63 * 4 + 29 + 100)
    })
  )
})
