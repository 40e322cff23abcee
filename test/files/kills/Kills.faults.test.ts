import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { type FileServer, fileServers } from "#test/accounts/FileServer.ts"
import { TusClient } from "#test/files/uploads/TusClient.ts"
import { RawClient } from "#test/front/RawClient.ts"
import { eventually, until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { assertHolds, assertRead } from "./KillChecks.ts"
import { Answers, KilledClient } from "./KilledClient.ts"

/** `FILE_KILLS=200` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["FILE_KILLS"] ?? 10)
/** The same on a disk that fills. */
const killsWhenFull = Number(process.env["FILE_KILLS"] ?? 4)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed} FILE_KILLS=${process.env["FILE_KILLS"] ?? ""}`

/** A busy machine takes its time. */
const patienceMillis = 300_000

const storesWith = (blobsDirectory?: string) =>
  FirstBoot.layer.pipe(
    Layer.provideMerge(BlobStore.layer),
    Layer.provideMerge(
      TestStores.layerWith({
        limits: { blobKeptMillis: -1, uploadKeptMillis: -1 },
        ...(blobsDirectory !== undefined && { blobsDirectory })
      })
    )
  )

/** Two servers that share Postgres and the directory of blobs, whose disk they use up. */
const twoSides = Effect.gen(function* () {
  const { dataDir, databaseUrl } = yield* TestStores
  const { directory: blobsDirectory } = yield* BlobStore
  return yield* fileServers(
    [0, 1].map((side) => {
      const own = join(dataDir, `side-${side}`)
      mkdirSync(own, { recursive: true })
      return { databaseUrl, dataDir: own, blobsDirectory, filesMinFreeBytes: 0 }
    })
  )
})

/** Starts both, and kills each amid its work, soon after so many answers. */
const killBoth = (sides: ReadonlyArray<FileServer>, random: SeededRandom): Promise<unknown> =>
  Promise.all(
    sides.map(async (side) => {
      const answers = 20 + random.below(60)
      const laterMillis = random.below(50)
      await side.start()
      await until(
        "it answers",
        async () => (side.answers >= answers || side.isGone ? undefined : `${side.answers} of ${answers}`),
        patienceMillis
      )
      await sleep(laterMillis)
      await side.kill()
    })
  )

/** Work beside the clients until the servers are killed. */
type Meanwhile = (round: number, random: SeededRandom, isOver: () => boolean) => Promise<void>

/** Kills servers amid everything that clients do with files, checks after each time, and once more at the end. */
const killed = (times: number, meanwhile: Meanwhile, refusals: ReadonlyArray<number>, mostBytes: number) =>
  Effect.gen(function* () {
    const { newAdminKey: key = "" } = yield* FirstBoot
    const random = new SeededRandom(seed)
    const sides = yield* twoSides
    const answers = new Answers()
    const over = new AbortController()
    const clients = { sides, key, random, refusals, message }
    const newClient = () => new KilledClient(clients, answers)
    const working = Promise.all([
      ...Array.from({ length: 4 }, () => newClient().work(over.signal)),
      ...Array.from({ length: 2 }, () => newClient().workOn(over.signal, mostBytes))
    ])
    for (let round = 0; round < times / 2; round++) {
      yield* Effect.promise(async () => {
        let isOver = false
        const beside = meanwhile(round, random, () => isOver)
        await Promise.race([killBoth(sides, random), working]).finally(() => (isOver = true))
        await beside
      })
      yield* assertHolds(answers, message)
    }
    return { answers, key, last: sides[0] ?? assert.fail("no server"), over, working }
  })

/** Lets the clients end, and asserts that everything is as they were told. */
const assertEnd = ({ answers, key, last, over, working }: Effect.Success<ReturnType<typeof killed>>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* Effect.promise(async () => {
      await last.start()
      await until(
        "all kinds of work were done",
        async () => [...answers.counts].find(([, times]) => times === 0)?.[0],
        patienceMillis
      )
      over.abort()
      await working
    })
    yield* eventually(
      "what was deleted for good is gone",
      Effect.map(sql`SELECT 1 FROM file_trash WHERE is_ended`, (rows) => rows.length === 0)
    )
    yield* Effect.promise(() => last.kill())
    yield* sql`UPDATE blob_uploads SET expires_at = now() - interval '1 s'`
    const { ended, readable, resumed } = yield* assertHolds(answers, message)
    assert.deepStrictEqual([ended, resumed], [0, answers.resumed.length], message)
    yield* Effect.promise(async () => {
      await assertRead(await last.start(), key, answers, readable, message)
      await last.kill()
    })
    assert.strictEqual(yield* (yield* BlobStore).upkeep.damaged, 0, message)
    const { counts, cuts, refusals } = answers
    yield* Effect.log(message, { cuts, refusals, ...Object.fromEntries(counts) })
  })

const timeout = (times: number) => ({ timeout: 300_000 + 60_000 * times })

describe("bytes", () => {
  layer(storesWith(), { excludeTestServices: true })((it) => {
    it.effect(
      `are there as answered, each once, when two servers that share a directory are killed ${kills} times`,
      () => killed(kills, async () => undefined, [], 400_000).pipe(Effect.flatMap(assertEnd), Effect.scoped),
      timeout(kills)
    )

    it.effect(
      "that a resumable upload brings in an open request are durable while they come, past a kill",
      () =>
        Effect.gen(function* () {
          const { newAdminKey = "" } = yield* FirstBoot
          const [side] = yield* twoSides
          const [text, sentBytes] = ["many bytes ".repeat(100_000), 300_000]
          yield* Effect.promise(async () => {
            const server = { url: (await side?.start()) ?? "", adminKey: () => newAdminKey }
            const tus = new TusClient(server, newAdminKey)
            const path = await tus.begin(text.length, { filename: "open.txt" })
            const client = await RawClient.open(Number(new URL(server.url).port))
            await client.send(
              `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${newAdminKey}\r\n` +
                `Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Length: ${text.length}\r\n` +
                `Content-Type: application/offset+octet-stream\r\n\r\n${text.slice(0, sentBytes)}`
            )
            await until("all that came is durable", async () => {
              const { offset } = (await tus.ask("GET", path)).body as { readonly offset: number }
              return offset === sentBytes ? undefined : String(offset)
            })
            await side?.kill()
            server.url = (await side?.start()) ?? ""
            assert.strictEqual((await tus.head(path)).headers.get("upload-offset"), String(sentBytes))
            const last = await tus.patch(path, sentBytes, text.slice(sentBytes))
            assert.strictEqual(await tus.read(last.headers.get("upload-file-id")), text)
            await side?.kill()
          })
        }).pipe(Effect.scoped),
      timeout(1)
    )
  })
})

describeWith(smallDisk, "bytes on a disk that fills", () => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-"))
  const disk = new SmallDisk(join(home, "blobs"), 16 + 2 * killsWhenFull)
  afterAll(() => {
    disk.remove()
    rmSync(home, { recursive: true })
  })
  let isFull = false
  const fill = async (spareBytes: number): Promise<void> => {
    await disk.fill(spareBytes)
    isFull = true
  }
  const free = async (): Promise<void> => {
    if (isFull) await disk.free()
    isFull = false
  }

  /** Fills it and frees it; the first kill comes when it is full, and the start behind that. */
  const filling: Meanwhile = async (round, random, isOver) => {
    while (!isOver()) {
      await sleep(random.below(500))
      await fill(random.below(200_000))
      await sleep(random.below(500))
      if (round > 0 && !isOver()) await free()
    }
  }

  layer(storesWith(disk.directory), { excludeTestServices: true })((it) => {
    it.effect(
      `are there as answered, each once, when two servers are killed ${killsWhenFull} times`,
      () =>
        Effect.gen(function* () {
          const ran = yield* killed(killsWhenFull, filling, [507], 50_000)
          assert.isAbove(ran.answers.refusals, 0, message)
          yield* Effect.promise(free)
          yield* assertEnd(ran)
        }).pipe(Effect.scoped),
      timeout(killsWhenFull)
    )
  })
})
