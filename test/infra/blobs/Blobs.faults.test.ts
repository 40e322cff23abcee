import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { BlobProcessOptions } from "./BlobProcess.ts"
import { assertCollected, assertWhole } from "./StoredBlobs.ts"

/** `BLOB_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["BLOB_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)

const stores = BlobStore.layer.pipe(
  Layer.provideMerge(TestStores.layerWith({ limits: { blobKeptMillis: -1, uploadKeptMillis: -1 } }))
)

const program = join(import.meta.dirname, "BlobProcess.ts")

/** Starts a process, kills it some time after its first steps, and answers the steps that it wrote out. */
const killed = async (options: BlobProcessOptions, random: SeededRandom): Promise<ReadonlyArray<string>> => {
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const steps: Array<string> = []
  const closed = once(child, "close")
  const first = 1 + random.below(100)
  const laterMillis = random.below(500)
  createInterface({ input: child.stdout }).on("line", (line) => {
    // A line that was cut off is no step.
    if (line.endsWith(".")) steps.push(line.slice(0, -1))
    if (steps.length === first) setTimeout(() => child.kill("SIGKILL"), laterMillis)
  })
  const [, signal] = await closed
  assert.strictEqual(signal, "SIGKILL", "it ended by itself")
  return steps
}

layer(stores, { excludeTestServices: true })("blobs", (it) => {
  it.effect(
    `lose nothing that was accepted when their processes are killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const blobs = yield* BlobStore
        const { dataDir, databaseUrl } = yield* TestStores
        yield* sql`INSERT INTO users (id, email, name, role) VALUES ('usr_k', 'k@example.com', 'K', 'user')`
        const random = new SeededRandom(seed)
        const refs = new Map<string, string>()
        for (let kill = 0; kill < kills; kill += 2) {
          const pair = [0, 1].map((side) =>
            killed(
              {
                databaseUrl,
                dataDir,
                userId: "usr_k",
                prefix: `${kill}-${side}-`,
                seed: random.below(1_000_000)
              },
              random
            )
          )
          for (const steps of yield* Effect.promise(() => Promise.all(pair))) {
            assert.isAbove(steps.length, 0)
            for (const step of steps) {
              const [kind, ref = "", sha256 = ""] = step.split(" ")
              if (kind === "put") refs.set(ref, sha256)
              else refs.delete(ref)
            }
          }
        }
        const message = `SIMULATION_SEED=${seed}`
        const known = yield* assertWhole(blobs.directory, message)
        const wrong = [...refs].filter(([ref, sha256]) => known.get(ref) !== sha256)
        assert.deepStrictEqual(wrong, [], message)
        yield* sql`UPDATE blob_uploads SET expires_at = now() - interval '1 s'`
        yield* blobs.upkeep.collect
        yield* assertCollected(blobs.directory, message)
      }),
    { timeout: 300_000 + kills * 60_000 }
  )
})
