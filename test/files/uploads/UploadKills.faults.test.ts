import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { sha256Of } from "#test/infra/blobs/BlobSteps.ts"
import { assertWhole } from "#test/infra/blobs/StoredBlobs.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { metadataOf } from "./TusClient.ts"
import type { UploadServerOptions } from "./UploadServerProcess.ts"

/** `UPLOAD_KILLS=200` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["UPLOAD_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed} UPLOAD_KILLS=${kills}`

const program = join(import.meta.dirname, "UploadServerProcess.ts")

const stores = FirstBoot.layer.pipe(
  Layer.provideMerge(BlobStore.layer),
  Layer.provideMerge(TestStores.layerWith({}))
)

/** A server that is started again whenever it was killed. */
class Side {
  url: string | undefined
  private child: ChildProcess | undefined
  private errors = ""
  private readonly options: UploadServerOptions

  constructor(options: UploadServerOptions) {
    this.options = options
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [program, JSON.stringify(this.options)], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    this.child = child
    child.stderr.on("data", (chunk) => (this.errors += String(chunk)))
    const address = new Promise<string | undefined>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (/^\d+$/.test(line)) resolve(`http://127.0.0.1:${line}`)
      })
      child.once("close", () => resolve(undefined))
    })
    this.url = await address
    if (this.url === undefined) assert.fail(`it ended by itself: ${this.errors}`)
  }

  async kill(): Promise<void> {
    const { child } = this
    this.url = undefined
    if (child === undefined) return
    child.kill("SIGKILL")
    if (child.exitCode === null && child.signalCode === null) await once(child, "close")
  }
}

interface Told {
  readonly status: number
  readonly headers: Headers
}

/** One client of both servers, which goes on wherever it can, and checks what it is told. */
class Uploader {
  readonly made: Array<{ readonly fileId: string; readonly sha256: string; readonly name: string }> = []
  cuts = 0
  private readonly sides: ReadonlyArray<Side>
  private readonly key: string
  private readonly random: SeededRandom

  constructor(sides: ReadonlyArray<Side>, key: string, random: SeededRandom) {
    this.sides = sides
    this.key = key
    this.random = random
  }

  /** Undefined: the connection went with the server, or there is none at the moment. */
  private async ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: Buffer
  ): Promise<Told | undefined> {
    const url = this.sides[this.random.below(this.sides.length)]?.url
    try {
      if (url === undefined) throw new TypeError("killed")
      const all = { authorization: `Bearer ${this.key}`, "tus-resumable": "1.0.0", ...headers }
      const sent = body === undefined ? null : new Uint8Array(body)
      const answer = await fetch(url + path, { method, headers: all, body: sent })
      const text = await answer.text()
      assert.include([200, 201, 204, 409, 503], answer.status, `${method} ${path} ${text} ${message}`)
      return answer
    } catch (error) {
      // The connection went with the process; anything else is a finding.
      if (!(error instanceof TypeError)) throw error
      this.cuts++
      await sleep(20)
      return undefined
    }
  }

  private async begin(length: number, name: string): Promise<string> {
    const headers = { "upload-length": String(length), "upload-metadata": metadataOf({ filename: name }) }
    for (;;) {
      const answer = await this.ask("POST", "/api/uploads", headers)
      if (answer?.status === 201) return answer.headers.get("location") ?? ""
    }
  }

  /** Uploads a file in pieces, and asks for its offset whenever an answer was lost. */
  async upload(name: string): Promise<void> {
    const content = randomBytes(200_000 + this.random.below(2_000_000))
    const path = await this.begin(content.length, name)
    let acknowledged = 0
    let fileId: string | null = null
    for (let offset: number | undefined = 0; fileId === null;) {
      if (offset === undefined) {
        const head = await this.ask("HEAD", path, {})
        if (head?.status !== 200) continue
        offset = Number(head.headers.get("upload-offset"))
        fileId = head.headers.get("upload-file-id")
        assert.isAtLeast(offset, acknowledged, `${path} ${message}`)
        continue
      }
      const piece = content.subarray(offset, offset + 1 + this.random.below(800_000))
      const headers = { "upload-offset": String(offset), "content-type": "application/offset+octet-stream" }
      const answer = await this.ask("PATCH", path, headers, piece)
      offset = answer?.status === 204 ? Number(answer.headers.get("upload-offset")) : undefined
      acknowledged = Math.max(acknowledged, offset ?? 0)
      fileId = answer?.headers.get("upload-file-id") ?? null
    }
    this.made.push({ fileId, sha256: sha256Of(content), name })
  }
}

layer(stores, { excludeTestServices: true })("resumable uploads", (it) => {
  it.effect(
    `are whole, each once, and no acknowledged byte is lost, when two servers are killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const { newAdminKey = "" } = yield* FirstBoot
        const { directory } = yield* BlobStore
        const { dataDir, databaseUrl } = yield* TestStores
        const sql = yield* SqlClient
        const random = new SeededRandom(seed)
        const sides = [new Side({ databaseUrl, dataDir }), new Side({ databaseUrl, dataDir })]
        const clients = Array.from({ length: 4 }, () => new Uploader(sides, newAdminKey, random))
        yield* Effect.promise(async () => {
          await Promise.all(sides.map((side) => side.start()))
          const over = new AbortController()
          const working = clients.map(async (client, index) => {
            for (let count = 0; !over.signal.aborted; count++) await client.upload(`${index}-${count % 3}`)
          })
          await Promise.all(
            sides.map(async (side) => {
              for (let kill = 0; kill < kills; kill += 2) {
                await sleep(random.below(1_000))
                await side.kill()
                await side.start()
              }
            })
          )
          over.abort()
          await Promise.all(working)
          await Promise.all(sides.map((side) => side.kill()))
        })
        const made = clients.flatMap((client) => client.made)
        const rows = yield* sql<{ id: string; sha256: string; name: string; version: number }>`
          SELECT v.id, encode(v.sha256, 'hex') AS sha256, g.name, v.version FROM file_versions v
          JOIN file_groups g ON g.id = v.group_id ORDER BY g.name, v.version`
        const stored = new Map(rows.map((row) => [row.id, row]))
        // Each upload is one version with its bytes, and there are no others.
        assert.strictEqual(rows.length, made.length, message)
        for (const { fileId, name, sha256 } of made)
          assert.deepInclude(stored.get(fileId), { name, sha256 }, `${fileId} ${message}`)
        for (const [name, versions] of Map.groupBy(rows, (row) => row.name))
          assert.deepStrictEqual(
            versions.map(({ version }) => version),
            versions.map((_, index) => index + 1),
            `${name} ${message}`
          )
        yield* assertWhole(directory, message)
        assert.isAbove(
          clients.reduce((sum, { cuts }) => sum + cuts, 0),
          0,
          message
        )
        assert.isAtLeast(made.length, clients.length, message)
      }),
    { timeout: 60_000 + 30_000 * kills }
  )
})
