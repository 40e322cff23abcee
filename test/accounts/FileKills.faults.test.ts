import { type ChildProcess, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { assertCollected, assertWhole } from "#test/infra/blobs/StoredBlobs.ts"
import type { FileServerOptions } from "./FileServerProcess.ts"
import { legacyFile } from "./LegacyFiles.ts"

/** `FILE_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["FILE_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed} FILE_KILLS=${kills}`

/** A start of two servers on a busy machine takes some seconds. */
const live = { timeout: 60_000 + 30_000 * kills } as const

const program = join(import.meta.dirname, "FileServerProcess.ts")

const stores = FirstBoot.layer.pipe(
  Layer.provideMerge(BlobStore.layer),
  Layer.provideMerge(TestStores.layerWith({ limits: { blobKeptMillis: -1, uploadKeptMillis: -1 } }))
)

/** A process, and its address once it has one; undefined: it ended before. */
const started = (options: FileServerOptions) => {
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "pipe"]
  })
  let errors = ""
  child.stderr.on("data", (chunk) => (errors += String(chunk)))
  const address = new Promise<string | undefined>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (/^\d+$/.test(line)) resolve(`http://127.0.0.1:${line}`)
    })
    child.once("close", () => resolve(undefined))
  })
  return { child, address, errors: () => errors }
}

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, "close")
}

/** The files that the test knows of, by what was answered. */
class Known {
  /** stored and not deleted: their hashes by their ids */
  readonly files = new Map<string, string>()
  readonly deleted: Array<string> = []
  private readonly key: string
  private readonly random: SeededRandom
  private count = 0

  constructor(key: string, random: SeededRandom) {
    this.key = key
    this.random = random
  }

  /** Uploads and deletes until the server is gone; contents are few, so that the same bytes come and go all the time. */
  async work(url: string, onStep: () => void): Promise<void> {
    const mine: Array<string> = []
    const server = { url, adminKey: () => this.key }
    try {
      for (;;) {
        const isUpload = this.random.below(2) === 0 || mine.length === 0
        if (isUpload) mine.push(await this.upload(server))
        else await this.remove(server, mine.splice(this.random.below(mine.length), 1)[0] ?? "")
        onStep()
      }
    } catch (error) {
      // The connection went with the process; anything else is a finding.
      if (!(error instanceof TypeError)) throw error
    }
  }

  private async upload(server: Parameters<typeof ask>[0]): Promise<string> {
    const text = `content ${this.random.below(12)} `.repeat(1 + this.random.below(3) * 2_000)
    const form = new FormData()
    form.set("file", new Blob([text]), `${this.count++}.txt`)
    const answer = await ask(server, "POST", "/api/v1/files", { form })
    assert.strictEqual(answer.status, 200, `${JSON.stringify(answer.body)} ${message}`)
    const id = textAt(answer, "id")
    this.files.set(id, createHash("sha256").update(text).digest("hex"))
    return id
  }

  private async remove(server: Parameters<typeof ask>[0], id: string): Promise<void> {
    // From now on either is right, until the answer.
    this.files.delete(id)
    const answer = await ask(server, "DELETE", `/api/v1/files/${id}`)
    assert.strictEqual(answer.status, 200, `${JSON.stringify(answer.body)} ${message}`)
    this.deleted.push(id)
  }

  /** Asserts that a server has all that was stored, byte for byte, and nothing that was deleted. */
  async check(url: string): Promise<void> {
    const read = (id: string) =>
      fetch(`${url}/api/v1/files/${id}`, { headers: { authorization: `Bearer ${this.key}` } })
    for (const [id, sha256] of this.files) {
      const answer = await read(id)
      const bytes = Buffer.from(await answer.arrayBuffer())
      assert.deepStrictEqual(
        [answer.status, createHash("sha256").update(bytes).digest("hex")],
        [200, sha256],
        `${id} ${message}`
      )
    }
    for (const id of this.deleted) {
      const answer = await read(id)
      await answer.arrayBuffer()
      assert.strictEqual(answer.status, 404, `${id} ${message}`)
    }
  }
}

const optionsOf = ({ dataDir, databaseUrl }: typeof TestStores.Service, side: number): FileServerOptions => {
  const own = join(dataDir, `side-${side}`)
  mkdirSync(own, { recursive: true })
  return { databaseUrl, dataDir: own, blobsDirectory: join(dataDir, "blobs"), keptMillis: 2 }
}

layer(stores, { excludeTestServices: true })("account files", (it) => {
  it.effect(
    `are there as answered when two servers that share a directory are killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const { newAdminKey = "" } = yield* FirstBoot
        const { directory, upkeep } = yield* BlobStore
        const sql = yield* SqlClient
        const setup = yield* TestStores
        const random = new SeededRandom(seed)
        const known = new Known(newAdminKey, random)
        let steps = 0
        for (let kill = 0; kill < kills; kill += 2) {
          yield* Effect.promise(() =>
            Promise.all(
              [0, 1].map(async (side) => {
                const { address, child, errors } = started(optionsOf(setup, side))
                const url = await address
                if (url === undefined) return assert.fail(`it ended by itself: ${errors()}`)
                let left = 20 + random.below(100)
                const onStep = (): void => {
                  steps++
                  if (--left === 0) setTimeout(() => child.kill("SIGKILL"), random.below(50))
                }
                await Promise.all(Array.from({ length: 4 }, () => known.work(url, onStep)))
                assert.isAtMost(left, 0, `it was gone before its end came: ${errors()}`)
                await ended(child)
                assert.strictEqual(child.signalCode, "SIGKILL", errors())
              })
            )
          )
          yield* assertWhole(directory, message)
        }
        assert.isAbove(steps, 20 * kills)
        const { address, child } = started(optionsOf(setup, 0))
        yield* Effect.promise(async () => {
          await known.check((await address) ?? "")
          child.kill("SIGKILL")
          await ended(child)
        })
        yield* sql`UPDATE blob_uploads SET expires_at = now() - interval '1 s'`
        yield* upkeep.collect
        yield* assertCollected(directory, message)
        assert.strictEqual(yield* upkeep.damaged, 0, message)
      }),
    live
  )

  it.effect(
    "of before are adopted once, when starts of two servers on one disk are killed amid it",
    () =>
      Effect.gen(function* () {
        const { newAdminKey = "" } = yield* FirstBoot
        const { directory, upkeep } = yield* BlobStore
        const sql = yield* SqlClient
        const setup = yield* TestStores
        const random = new SeededRandom(seed)
        const known = new Known(newAdminKey, random)
        const [admin] = yield* sql<{ id: string }>`SELECT id FROM users LIMIT 1`
        for (let index = 0; index < 400; index++) {
          const text = `of before ${index % 300} `.repeat(50)
          const { id, sha256 } = yield* legacyFile(setup.dataDir, admin?.id ?? "", text)
          known.files.set(id, sha256)
        }
        // One DATA_DIR for both: embedded stores, which would refuse that, are not in it.
        const options = { ...optionsOf(setup, 0), dataDir: setup.dataDir }
        const adopted = sql<{
          n: number
        }>`SELECT count(*)::int AS n FROM files WHERE store IS NOT NULL AND source = 'upload'`
        const before = (yield* adopted)[0]?.n ?? 0
        let amid = 0
        for (let round = 0; round < 6; round++) {
          const pair = [started(options), started(options)]
          const target = before + Math.floor((400 * (round + 1)) / 8)
          // Until some of them are adopted, and then a little.
          for (;;) {
            const done = (yield* adopted)[0]?.n ?? 0
            if (done >= target || pair.every(({ child }) => child.exitCode !== null)) break
            yield* Effect.promise(() => sleep(2))
          }
          yield* Effect.promise(() => sleep(random.below(5)))
          yield* Effect.promise(() =>
            Promise.all(
              pair.map(async ({ child }) => {
                child.kill("SIGKILL")
                await ended(child)
              })
            )
          )
          const left = 400 + before - ((yield* adopted)[0]?.n ?? 0)
          if (left > 0 && left < 400) amid++
        }
        assert.isAbove(amid, 0, "no start was killed amid it")
        const last = started(options)
        yield* Effect.promise(async () => {
          const url = await last.address
          if (url === undefined) return assert.fail(last.errors())
          await known.check(url)
          last.child.kill("SIGKILL")
          await ended(last.child)
        })
        assert.isFalse(existsSync(join(setup.dataDir, "files")))
        yield* upkeep.collect
        yield* assertCollected(directory, message)
      }),
    live
  )
})
