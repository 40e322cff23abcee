import { writeSync } from "node:fs"
import { Effect, Layer, Redacted, Result } from "effect"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import * as Stores from "#src/Stores.ts"
import { postgresMigrations } from "#src/Migrations.ts"

/** A process that puts, releases and collects blobs until it is killed, and writes each step out once it is done. */
export interface BlobProcessOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly userId: string
  /** of its references */
  readonly prefix: string
  readonly seed: number
}

const options: BlobProcessOptions = JSON.parse(process.argv[2] ?? "{}")
const { dataDir, databaseUrl, prefix, seed, userId } = options
const random = new SeededRandom(seed)

/** Few contents, so that the same bytes come and go all the time. */
const contents = 12

const say = (line: string): Effect.Effect<void> => Effect.sync(() => void writeSync(1, `${line}.\n`))

const program = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const mine: Array<string> = []
  let count = 0

  const put = Effect.suspend(() => {
    const ref = `${prefix}${count++}`
    const chunk = Buffer.from(`content ${random.below(contents)} `)
    let left = 1 + random.below(3) * 2_000
    const source = async () => Result.succeed(left-- > 0 ? chunk : undefined)
    const owner = { userId, source: "test", expiresAt: null }
    return blobs
      .put({ userId, quotaBytes: null, maxBytes: 10_000_000 }, source, (blob) =>
        Effect.as(blobs.refer(ref, blob, owner), blob)
      )
      .pipe(
        Effect.flatMap(({ sha256 }) => say(`put ${ref} ${sha256}`)),
        Effect.tap(() => Effect.sync(() => mine.push(ref)))
      )
  })
  const release = Effect.suspend(() => {
    const [ref] = mine.splice(random.below(Math.max(1, mine.length)), 1)
    if (ref === undefined) return Effect.void
    return Effect.andThen(say(`releasing ${ref}`), blobs.release(ref))
  })
  const step = Effect.suspend(() =>
    Effect.asVoid<unknown, unknown, never>(random.below(2) === 0 ? put : release)
  )
  yield* Effect.all(
    [
      Effect.forever(step),
      Effect.forever(step),
      Effect.forever(step),
      Effect.forever(Effect.andThen(blobs.upkeep.collect, Effect.sleep(1)))
    ],
    { concurrency: "unbounded", discard: true }
  )
})

const config = AppConfig.layerOf({
  dataDir,
  databaseUrl: Redacted.make(databaseUrl),
  limits: { blobKeptMillis: 2 }
})

await Effect.runPromise(
  program.pipe(
    Effect.provide(
      BlobStore.layer.pipe(Layer.provide(Stores.postgresWith(postgresMigrations)), Layer.provide(config))
    )
  )
)
