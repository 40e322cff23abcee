import * as Effect from "effect/Effect"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { EventLimiter } from "#actors/analytics/EventLimiter.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"

const callsOf = (context: CaseContext): number =>
  sized(context, { tiny: 20_000, quick: 2_000_000, full: 5_000_000 })

const measure = (calls: number, call: (index: number) => boolean): Measurement => {
  for (let index = 0; index < Math.min(calls, 100_000); index++) call(index)
  let admitted = 0
  const startedAt = performance.now()
  for (let index = 0; index < calls; index++) if (call(index)) admitted++
  const elapsedMillis = performance.now() - startedAt
  const nanosecondsPerCall = Math.round((elapsedMillis * 1e6) / calls)
  return { work: calls, elapsedMillis, figures: { nanosecondsPerCall, admittedShare: admitted / calls } }
}

/** The least cost of every limiter: reading the clock. */
export const clockRead = async (context: CaseContext): Promise<Measurement> =>
  measure(callsOf(context), () => performance.now() > 0)

export const rateBucket =
  (keys: number) =>
  (context: CaseContext): Promise<Measurement> =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { takeNow } = yield* RateBuckets
          const ids = Array.from({ length: keys }, (_, index) => `key_${String(index).padStart(22, "0")}`)
          return measure(
            callsOf(context),
            (index) => takeNow(ids[(index * 7919) % keys] ?? "", 600)?.allowed === true
          )
        }).pipe(Effect.provide(RateBuckets.layer()))
      )
    )

export const eventLimiter =
  (visitors: number) =>
  async (context: CaseContext): Promise<Measurement> => {
    const limiter = new EventLimiter({
      visitorEventsPerMinute: 300,
      siteEventsPerSecond: 6_000,
      visitorsMax: 1_000_000,
      sitesMax: 1_000
    })
    const hashes = Array.from({ length: visitors }, (_, index) =>
      BigInt.asUintN(64, BigInt(index) * 0x9e3779b97f4a7c15n)
    )
    return measure(
      callsOf(context),
      (index) => limiter.takeVisitor(hashes[(index * 7919) % visitors] ?? 0n, performance.now()).allowed
    )
  }
