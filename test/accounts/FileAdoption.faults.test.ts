import { existsSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { assertCollected } from "#test/infra/blobs/StoredBlobs.ts"
import { sha256Of } from "#test/infra/blobs/BlobSteps.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { fileServers } from "./FileServer.ts"
import { legacyFile } from "./LegacyFiles.ts"

/** `SIMULATION_SEED` repeats the instants of the kills. */
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed}`

const stores = FirstBoot.layer.pipe(
  Layer.provideMerge(BlobStore.layer),
  Layer.provideMerge(TestStores.layerWith({ limits: { blobKeptMillis: -1, uploadKeptMillis: -1 } }))
)

const filesMade = 400

layer(stores, { excludeTestServices: true })("account files", (it) => {
  it.effect("of before are adopted once, when starts of two servers on one disk are killed amid it", () =>
    Effect.gen(function* () {
      const { newAdminKey = "" } = yield* FirstBoot
      const { directory, upkeep } = yield* BlobStore
      const sql = yield* SqlClient
      const { dataDir, databaseUrl } = yield* TestStores
      const random = new SeededRandom(seed)
      const known = new Map<string, string>()
      const [admin] = yield* sql<{ id: string }>`SELECT id FROM users LIMIT 1`
      for (let index = 0; index < filesMade; index++) {
        const text = `of before ${index % 300} `.repeat(50)
        const { id, sha256 } = yield* legacyFile(dataDir, admin?.id ?? "", text)
        known.set(id, sha256)
      }
      // One DATA_DIR for both: embedded stores, which would refuse that, are not in it.
      const options = { databaseUrl, dataDir, blobsDirectory: join(dataDir, "blobs") }
      const pair = yield* fileServers([options, options])
      const adopted = Effect.map(
        sql<{ n: number }>`SELECT count(*)::int AS n FROM files WHERE store IS NOT NULL`,
        ([row]) => row?.n ?? 0
      )
      let amid = 0
      for (let round = 0; round < 3; round++) {
        for (const server of pair) void server.launch()
        const target = Math.floor((filesMade * (round + 1)) / 5)
        // Until some of them are adopted, and then a little.
        while ((yield* adopted) < target && !pair.every(({ isGone }) => isGone))
          yield* Effect.promise(() => sleep(2))
        yield* Effect.promise(() => sleep(random.below(5)))
        yield* Effect.promise(() => Promise.all(pair.map((server) => server.kill())))
        const left = filesMade - (yield* adopted)
        if (left > 0 && left < filesMade) amid++
      }
      assert.isAbove(amid, 0, "no start was killed amid it")
      const [last] = pair
      yield* Effect.promise(async () => {
        const url = await last?.start()
        for (const [id, sha256] of known) {
          const headers = { authorization: `Bearer ${newAdminKey}` }
          const answer = await fetch(`${url}/api/v1/files/${id}`, { headers })
          const bytes = Buffer.from(await answer.arrayBuffer())
          assert.deepStrictEqual([answer.status, sha256Of(bytes)], [200, sha256], `${id} ${message}`)
        }
        await last?.kill()
      })
      assert.isFalse(existsSync(join(dataDir, "files")))
      yield* upkeep.collect
      yield* assertCollected(directory, message)
    }).pipe(Effect.scoped)
  )
})
