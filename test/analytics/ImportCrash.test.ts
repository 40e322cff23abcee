import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import { ImportLog, importLogConsumers } from "#src/analytics/ingest/EventLog.ts"
import { Imports } from "#src/analytics/imports/Imports.ts"
import { ImportsRepository } from "#src/analytics/imports/ImportsRepository.ts"
import { Ingest } from "#src/analytics/ingest/Ingest.ts"
import { SiteDirectory } from "#src/analytics/sites/Sites.ts"
import { Sites } from "#src/analytics/sites/Sites.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { offeredPurges } from "./OfferedPurges.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { chrome, lookups } from "./Senders.ts"

const live = { excludeTestServices: true } as const
const owner = "usr_0000000000000000000001"

/** Postgres takes nothing of what became of a part. */
const away = { isAway: false }

const brokenRepository = Layer.effect(
  ImportsRepository,
  Effect.map(ImportsRepository, (repository) => ({
    ...repository,
    advance: (...args: Parameters<typeof repository.advance>) =>
      Effect.suspend(() =>
        away.isAway
          ? Effect.fail(new SqlError({ reason: new ConnectionError({ cause: new Error("away") }) }))
          : repository.advance(...args)
      )
  }))
).pipe(Layer.provide(ImportsRepository.layer))

const notAskedFor = (): never => {
  throw new Error("not asked for here")
}

const ingest = Layer.succeed(Ingest, {
  event: notAskedFor,
  collect: notAskedFor,
  ownerOf: notAskedFor,
  refusal: notAskedFor,
  lookups
})

/** A process, from its start to its end. */
const inProcess = <A, E>(work: Effect.Effect<A, E, Imports | ImportLog | ImportsRepository>) =>
  Effect.provide(
    work,
    Imports.layerNoDeps.pipe(
      Layer.provide(ingest),
      Layer.provideMerge(Layer.merge(brokenRepository, ImportLog.layer)),
      Layer.fresh
    )
  )

const makeSite = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`INSERT INTO users ${sql.insert({ id: owner, email: "a@b.example", name: "A", role: "user" })}
    ON CONFLICT DO NOTHING`
  const { site } = yield* (yield* Sites).create(owner, { name: "Blog", domain: "example.org" })
  return site
})

const bot = "Googlebot/2.1 (+http://www.google.com/bot.html)"

/** Every third line is a bot's. */
const lines = (from: number, to: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: to - from }, (_, index) => {
    const userAgent = (from + index) % 3 === 1 ? bot : chrome
    return Buffer.from(
      JSON.stringify({
        url: `/${from + index}`,
        ip: "198.51.100.7",
        userAgent,
        timestamp: Date.now() - 60_000
      })
    )
  })

const part = (name: string, from: number, to: number, continues?: string) => ({
  name,
  continues,
  offset: from,
  isLast: false,
  lines: lines(from, to)
})

/** The lines in the log of imports, in its order. */
const logged = Effect.gen(function* () {
  const consumer = (yield* ImportLog).consumer(importLogConsumers.clickHouse)
  const records = yield* consumer.read({ from: 0, maxRecords: Infinity, maxBytes: Infinity })
  return records.map(({ payload }) => ImportRecord.placeOf(payload).line)
})

const people = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, index) => from + index).filter((line) => line % 3 !== 1)

const rooms = Sites.layer.pipe(
  Layer.provide(offeredPurges),
  Layer.provideMerge(SiteDirectory.layer),
  Layer.provideMerge(TestStores.layerWith({ limits: { logSegmentBytes: 1_000 } }))
)

layer(rooms, live)("an import whose server ends between its log and Postgres", (it) => {
  it.effect("has each line once, and counts each line once, when it is tried again", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* inProcess(
        Effect.gen(function* () {
          const imports = yield* Imports
          assert.strictEqual((yield* imports.take(site, part("a", 0, 9))).next, 9)
          away.isAway = true
          const refused = yield* Effect.flip(imports.take(site, part("a", 9, 21)))
          assert.strictEqual(refused._tag, "ServiceUnavailable")
          const again = yield* Effect.flip(imports.take(site, part("a", 9, 21)))
          assert.strictEqual(again._tag, "ServiceUnavailable")
          assert.deepStrictEqual(yield* logged, people(0, 21))
        })
      )
      away.isAway = false
      yield* inProcess(
        Effect.gen(function* () {
          const imports = yield* Imports
          const log = yield* ImportLog
          const progress = log.consumer(importLogConsumers.progress)
          yield* eventually(
            "Postgres knows of the log",
            Effect.sync(() => progress.committed() === log.durableOffset())
          )
          const taken = yield* imports.take(site, part("a", 9, 24))
          assert.deepInclude(taken, { next: 24, stored: people(9, 24).length, failed: 0 })
          assert.deepStrictEqual(taken.dropped, { bot: 5 })
          assert.deepStrictEqual(yield* logged, people(0, 24))
          const [row] = yield* imports.list(site)
          assert.deepInclude(row, { lines: 24, stored: people(0, 24).length })
          assert.deepStrictEqual(row?.dropped, { bot: 8 })
        })
      )
    })
  )

  it.effect("has each line once when the file has grown meanwhile", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const before = yield* inProcess(
        Effect.gen(function* () {
          const imports = yield* Imports
          const { length } = yield* logged
          yield* imports.take(site, part("a", 0, 6))
          away.isAway = true
          yield* Effect.flip(imports.take(site, part("a", 6, 12)))
          return length
        })
      )
      away.isAway = false
      yield* inProcess(
        Effect.gen(function* () {
          const imports = yield* Imports
          const unknown = yield* Effect.flip(imports.take(site, part("grown", 0, 0, "b")))
          assert.strictEqual(unknown._tag, "ImportUnknown")
          assert.strictEqual((yield* imports.take(site, part("grown", 0, 0, "a"))).next, 6)
          assert.strictEqual((yield* imports.take(site, part("grown", 6, 30))).next, 30)
          assert.deepStrictEqual((yield* logged).slice(before), people(0, 30))
          // The older name is the same import.
          assert.strictEqual((yield* imports.take(site, part("a", 6, 12))).next, 30)
          assert.deepStrictEqual((yield* logged).slice(before), people(0, 30))
        })
      )
    })
  )
})
