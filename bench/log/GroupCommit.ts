import { Effect } from "effect"
import { latencyOf, type BenchCase, type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/** Opens a log in the case's directory, with room for the whole run. */
const withLog = (
  { directory }: CaseContext,
  measure: (log: DurableLog.DurableLog) => Effect.Effect<Measurement>
): Promise<Measurement> =>
  Effect.gen(function* () {
    const log = yield* DurableLog.open({ directory, consumers: [], capBytes: 16 * 1024 ** 3 })
    return yield* measure(log)
  }).pipe(Effect.scoped, Effect.runPromise)

const fail = (refusal: unknown): never => {
  throw new Error("the log refused a record", { cause: refusal })
}

/** So many requests in flight, each appending its next record once the one before is durable. */
export const groupCommit =
  (writers: number, recordBytes: number): BenchCase["run"] =>
  (context) =>
    withLog(context, (log) =>
      Effect.callback<Measurement>((resume) => {
        const forMillis = sized(context, { tiny: 50, quick: 800, full: 2000 })
        const record = new Uint8Array(recordBytes).fill(0x5a)
        const latencies: Array<number> = []
        const startedAt = performance.now()
        let isOver = false
        let active = writers
        const finish = (): void => {
          const elapsedMillis = performance.now() - startedAt
          const { fsyncs, appended, bytes } = log.stats()
          const figures = {
            "fsyncs/s": (fsyncs / elapsedMillis) * 1000,
            "MB/s": bytes / elapsedMillis / 1000,
            "records/fsync": appended / fsyncs
          }
          const latency = latencyOf(Float64Array.from(latencies))
          resume(Effect.succeed({ work: appended, elapsedMillis, latency, figures }))
        }
        /** one request's loop: its closure is made once, as a server's per-connection state is */
        const writer = (): void => {
          let begunAt = 0
          const next = (): void => {
            begunAt = performance.now()
            const offset = log.append(record, done)
            if (typeof offset !== "number") fail(offset)
          }
          const done = (error: DurableLog.LogUnavailable | undefined): void => {
            if (error !== undefined) fail(error)
            const now = performance.now()
            latencies.push(now - begunAt)
            isOver ||= now - startedAt >= forMillis
            if (!isOver) return next()
            active--
            if (active === 0) finish()
          }
          next()
        }
        for (let i = 0; i < writers; i++) writer()
      })
    )

/** The cost of the call itself to the caller, apart from the disk: a thousand in one turn of the event loop. */
export const appendCalls =
  (recordBytes: number): BenchCase["run"] =>
  (context) =>
    withLog(context, (log) =>
      Effect.gen(function* () {
        const record = new Uint8Array(recordBytes).fill(0x5a)
        const perTurn = 1000
        const turns = sized(context, { tiny: 20, quick: 2000, full: 5000 })
        let elapsedMillis = 0
        for (let turn = 0; turn < turns; turn++) {
          yield* Effect.callback<void>((resume) => {
            let left = perTurn
            const done = (): void => {
              left--
              if (left === 0) resume(Effect.void)
            }
            const startedAt = performance.now()
            for (let i = 0; i < perTurn; i++) log.append(record, done)
            elapsedMillis += performance.now() - startedAt
          })
        }
        return { work: turns * perTurn, elapsedMillis, cpuMillis: elapsedMillis }
      })
    )
