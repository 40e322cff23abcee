import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readsFound, readsNamed, reachOf, writesFound, writesNamed } from "#src/files/access/Reach.ts"

const photos = { bucketName: "photos" }

describe("the buckets that scopes reach", () => {
  const rows: ReadonlyArray<
    readonly [scopes: ReadonlyArray<string>, reads: string, writes: string, isFull: boolean]
  > = [
    [["full"], "photos notes", "photos notes", true],
    [["read"], "photos notes", "", false],
    [["write"], "", "photos notes", false],
    [["read:photos"], "photos", "", false],
    [["write:photos"], "", "photos", false],
    [["read:photos", "write:notes"], "photos", "notes", false],
    [["read:photos", "read:notes", "write"], "photos notes", "photos notes", false],
    [["read:photo", "write:photos2"], "", "", false],
    [["replicate"], "", "", false]
  ]
  for (const [scopes, reads, writes, isFull] of rows)
    it(`${scopes.join(" and ")} reads ${reads || "none"} and writes ${writes || "none"}`, () => {
      const reach = reachOf({ scopes })
      const named = ["photos", "notes"]
      assert.strictEqual(named.filter((name) => reach.mayRead(name)).join(" "), reads)
      assert.strictEqual(named.filter((name) => reach.mayWrite(name)).join(" "), writes)
      assert.strictEqual(reach.isFull, isFull)
    })

  it.effect("what is outside is 403 by its name, and 404 by its id", () =>
    Effect.gen(function* () {
      const reach = reachOf({ scopes: ["read:notes"] })
      for (const [refusal, status, message] of [
        [readsNamed(reach, "photos"), 403, "This takes the scope read:photos"],
        [writesNamed(reach, "notes"), 403, "This takes the scope write:notes"],
        [readsFound(reach, photos, "File not found"), 404, "File not found"],
        [writesFound(reach, photos, "File not found"), 404, "File not found"]
      ] as const) {
        const problem = yield* Effect.flip<unknown, { status: number; message: string }, never>(refusal)
        assert.deepStrictEqual([problem.status, problem.message], [status, message])
      }
      yield* readsNamed(reach, "notes")
    })
  )
})
