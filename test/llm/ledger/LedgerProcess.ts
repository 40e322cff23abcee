import { writeSync } from "node:fs"
import { createInterface } from "node:readline"
import { Effect, Layer, Redacted, Result } from "effect"
import { AppConfig } from "#src/Config.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import * as Stores from "#src/Stores.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { askOf, ledgerLayer, recordOf, refresh } from "./LedgerProbe.ts"

/**
 * A process with a ledger of its own: says "ready", makes calls on command, and writes the id and the charge of each
 * call to its standard output once it is in the log of calls. Says "done" and how many were refused at the end.
 */
export interface LedgerProcessOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly userId: string
  readonly keyId: string
  /** pico-USD, as decimal text */
  readonly perToken: string
  /** calls made; 0: until it is killed */
  readonly calls: number
  readonly atOnce: number
  /** how long calls last at most */
  readonly lastsMillis: number
  readonly seed: number
}

const options: LedgerProcessOptions = JSON.parse(process.argv[2] ?? "{}")
const random = new SeededRandom(options.seed)

const say = (line: string): void => void writeSync(1, `${line}\n`)

const told = Effect.callback<void>((resume) => {
  createInterface({ input: process.stdin }).once("line", () => resume(Effect.void))
})

const program = Effect.gen(function* () {
  const ledger = yield* Ledger
  const calls = yield* CallLog
  const ask = askOf(options.userId, options.keyId, BigInt(options.perToken))
  const makeCall = Effect.gen(function* () {
    const admission = ledger.admitNow(ask) ?? (yield* ledger.admit(ask))
    yield* Effect.sleep(random.below(options.lastsMillis))
    // A call killed before this point was never charged.
    const tokens = 1 + random.below(admission.outputTokens)
    const used = options.calls === 0 ? tokens : admission.outputTokens
    const settlement = admission.settle({ cost: ask.costOf(used), tokens: used })
    const id = newId("req")
    calls.append(recordOf(options.userId, options.keyId, settlement, id))
    say(`${id} ${settlement.charge}`)
  })
  say("ready")
  yield* told
  yield* refresh
  if (options.calls === 0) {
    return yield* Effect.forEach(Array.from({ length: options.atOnce }), () => Effect.forever(makeCall), {
      concurrency: "unbounded",
      discard: true
    })
  }
  const results = yield* Effect.forEach(
    Array.from({ length: options.calls }),
    () => Effect.result(makeCall),
    { concurrency: options.atOnce }
  )
  yield* ledger.flush
  say(`done ${results.filter(Result.isFailure).length}`)
})

const config = AppConfig.layerOf({
  databaseUrl: Redacted.make(options.databaseUrl),
  dataDir: options.dataDir,
  limits: { ledgerWaitMillis: 30_000, ledgerGrantMillis: 30_000 }
})

await Effect.runPromise(
  Effect.scoped(
    program.pipe(
      Effect.provide(
        ledgerLayer.pipe(
          Layer.provideMerge(Quarantines.layer.pipe(Layer.provideMerge(Readiness.layer))),
          Layer.provideMerge(Stores.postgresWith(postgresMigrations)),
          Layer.provideMerge(config)
        )
      )
    )
  )
)
process.exit(0)
