import { Context, Deferred, Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"

/** The key and the owner of a call. */
type Caller = Pick<Principal, "keyId" | "ownerId">

/**
 * Counts the calls under way and bounds them: by the connections to the upstream, so that none ever waits for
 * one, and for each user by a fair share of these. When the server ends, those whose clients were sent away are still settled
 * before the log of calls is closed.
 */
export class CallsInFlight extends Context.Service<
  CallsInFlight,
  {
    /** Makes the call if there is room for it, and it can be booked. */
    readonly admit: (
      caller: Caller,
      call: Effect.Effect<Problem | undefined>
    ) => Effect.Effect<Problem | undefined>
    /** As `admit`, for a call without a fiber: the refusal; undefined if it may begin, and then `leave` is due once. */
    readonly enter: (caller: Caller) => Problem | undefined
    readonly leave: (caller: Caller) => void
  }
>()("signalbox/llm/CallsInFlight") {
  static readonly layer = Layer.effect(
    CallsInFlight,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const log = yield* CallLog
      const allOver = yield* Deferred.make<void>()
      let count = 0
      let isEnding = false
      const capacity = Math.min(limits.callsInFlight, limits.upstreamConnections)
      const users = new FairShares(capacity, limits.callsPerUser)
      const keys = new FairShares(capacity, limits.callsPerKey)
      const enter = ({ keyId, ownerId }: Caller): Problem | undefined => {
        if (count >= capacity) return CallFault.overloaded("Too many calls are under way; try again")
        if (log.isFailing()) return CallFault.overloaded("Calls cannot be booked at the moment; try again")
        if (!users.take(ownerId, 1))
          return CallFault.overloaded(
            "Too many calls of this user are under way; try again when some are done"
          )
        if (keys.take(keyId, 1)) {
          count++
          return undefined
        }
        users.release(ownerId, 1)
        return CallFault.overloaded("Too many calls of this key are under way; try again when some are done")
      }
      const leave = ({ keyId, ownerId }: Caller): void => {
        count--
        users.release(ownerId, 1)
        keys.release(keyId, 1)
        if (isEnding && count === 0) Deferred.doneUnsafe(allOver, Effect.void)
      }
      yield* Effect.addFinalizer(() =>
        Effect.suspend(() => {
          isEnding = true
          return count === 0 ? Effect.void : Deferred.await(allOver)
        }).pipe(
          Effect.timeoutOrElse({
            duration: limits.callsEndMillis,
            orElse: () => Effect.logWarning(`${count} calls were still under way when the server ended`)
          })
        )
      )
      yield* SampledMetrics.register([
        ["signalbox_model_requests_in_flight", "Calls of models under way", () => count]
      ])
      return CallsInFlight.of({
        enter,
        leave,
        admit: (caller, call) =>
          Effect.suspend(() => {
            const refusal = enter(caller)
            if (refusal !== undefined) return Effect.succeed(refusal)
            return Effect.ensuring(
              call,
              Effect.sync(() => leave(caller))
            )
          })
      })
    })
  )
}
