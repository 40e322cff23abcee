import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { FileServerOptions } from "#test/accounts/FileServerProcess.ts"
import { faultsOfTree } from "#test/files/tree/TreeSteps.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { assertCollected, assertWhole } from "#test/infra/blobs/StoredBlobs.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { formOf, sha256Of } from "./TransferSteps.ts"

/** `TRANSFER_KILLS=200` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["TRANSFER_KILLS"] ?? 4)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed} TRANSFER_KILLS=${kills}`

/** A start of two servers on a busy machine takes some seconds. */
const live = { timeout: 60_000 + 30_000 * kills } as const

const program = join(import.meta.dirname, "../../accounts/FileServerProcess.ts")

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

interface Item {
  readonly fileId: string
  readonly fileHash: string
  readonly versionGroupId: string
}

/** The versions that were answered 2xx: their hashes by their ids, and the files that may be deleted or are. */
class Answered {
  readonly hashes = new Map<string, string>()
  readonly groups = new Map<string, string>()
  /** files whose deletion was asked for: either is right */
  readonly unsure = new Set<string>()
  private readonly key: string
  private readonly random: SeededRandom

  constructor(key: string, random: SeededRandom) {
    this.key = key
    this.random = random
  }

  /** Uploads by both ways, and deletes and restores, until the server is gone; names and contents are few. */
  async work(url: string, onStep: () => void): Promise<void> {
    try {
      for (;;) {
        const step = this.random.below(10)
        if (step < 4) await this.form(url)
        else if (step < 8) await this.put(url)
        else await this.trash(url)
        onStep()
      }
    } catch (error) {
      // The connection went with the process; anything else is a finding.
      if (!(error instanceof TypeError)) throw error
    }
  }

  private text(): string {
    return `content ${this.random.below(12)} `.repeat(1 + this.random.below(3) * 2_000)
  }

  private async ask(url: string, method: string, path: string, body?: string | FormData): Promise<Response> {
    const headers = { authorization: `Bearer ${this.key}` }
    const answer = await fetch(url + path, { method, headers, body: body ?? null })
    assert.isBelow(answer.status, 500, `${method} ${path} ${message}`)
    return answer
  }

  private keep({ fileHash, fileId, versionGroupId }: Item, text: string): void {
    assert.strictEqual(fileHash, sha256Of(text), message)
    this.hashes.set(fileId, fileHash)
    this.groups.set(fileId, versionGroupId)
  }

  private async form(url: string): Promise<void> {
    const texts = Array.from({ length: 1 + this.random.below(3) }, () => this.text())
    const path = texts.map(() => `d${this.random.below(3)}/f${this.random.below(6)}.txt`)
    const files = texts.map((text) => ["a", text] as const)
    const answer = await this.ask(url, "POST", "/api/upload", formOf(files, { path, dir: "kills" }))
    assert.strictEqual(answer.status, 200, message)
    const { files: made } = (await answer.json()) as { readonly files: ReadonlyArray<Item> }
    for (const [index, item] of made.entries()) this.keep(item, texts[index] ?? "")
  }

  private async put(url: string): Promise<void> {
    const text = this.text()
    const path = `/api/upload/kills/d${this.random.below(3)}/f${this.random.below(6)}.txt`
    const answer = await this.ask(url, "PUT", path, text)
    assert.include([200, 201], answer.status, message)
    this.keep((await answer.json()) as Item, text)
  }

  private async trash(url: string): Promise<void> {
    const [id, group] = [...this.groups][this.random.below(this.groups.size || 1)] ?? []
    if (id === undefined || group === undefined) return
    this.unsure.add(group)
    await (await this.ask(url, "DELETE", `/api/files/${id}`)).arrayBuffer()
    await (await this.ask(url, "POST", `/api/files/${id}/restore?onConflict=rename`)).arrayBuffer()
  }

  /** Asserts that a server has each version that was answered, byte for byte; such as may be in the trash may be 404. */
  async check(url: string): Promise<number> {
    let found = 0
    for (const [id, hash] of this.hashes) {
      const answer = await this.ask(url, "GET", `/api/files/${id}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (answer.status === 404 && this.unsure.has(this.groups.get(id) ?? "")) continue
      assert.deepStrictEqual([answer.status, sha256Of(bytes)], [200, hash], `${id} ${message}`)
      found++
    }
    return found
  }
}

const optionsOf = ({ dataDir, databaseUrl }: typeof TestStores.Service, side: number): FileServerOptions => {
  const own = join(dataDir, `side-${side}`)
  mkdirSync(own, { recursive: true })
  const blobsDirectory = join(dataDir, "blobs")
  return { databaseUrl, dataDir: own, blobsDirectory, keptMillis: 2, hasSharedFiles: true }
}

layer(stores, { excludeTestServices: true })("shared files", (it) => {
  it.effect(
    `are there as answered when two servers that share a directory are killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const { newAdminKey = "" } = yield* FirstBoot
        const { directory, upkeep } = yield* BlobStore
        const sql = yield* SqlClient
        const setup = yield* TestStores
        const random = new SeededRandom(seed)
        const answered = new Answered(newAdminKey, random)
        let steps = 0
        for (let kill = 0; kill < kills; kill += 2) {
          yield* Effect.promise(() =>
            Promise.all(
              [0, 1].map(async (side) => {
                const { address, child, errors } = started(optionsOf(setup, side))
                const url = await address
                if (url === undefined) return assert.fail(`it ended by itself: ${errors()}`)
                let left = 10 + random.below(40)
                const onStep = (): void => {
                  steps++
                  if (--left === 0) setTimeout(() => child.kill("SIGKILL"), random.below(50))
                }
                await Promise.all(Array.from({ length: 4 }, () => answered.work(url, onStep)))
                assert.isAtMost(left, 0, `it was gone before its end came: ${errors()}`)
                await ended(child)
                assert.strictEqual(child.signalCode, "SIGKILL", errors())
              })
            )
          )
          yield* assertWhole(directory, message)
          const [owner] = yield* sql<{ id: string }>`SELECT id FROM users`
          assert.deepStrictEqual(yield* faultsOfTree(owner?.id ?? ""), [], message)
        }
        assert.isAbove(steps, 10 * kills)
        const { address, child } = started(optionsOf(setup, 0))
        yield* Effect.promise(async () => {
          assert.isAbove(await answered.check((await address) ?? ""), 0, message)
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
})
