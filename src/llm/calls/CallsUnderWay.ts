import { Context, Deferred, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import * as CallFault from "./CallFault.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"

/**
 * Counts the calls under way and bounds them. When the server ends, those whose clients were sent away are still settled
 * before the log of calls is closed.
 */
export class CallsUnderWay extends Context.Service<
  CallsUnderWay,
  {
    /** Makes the call if there is room for it, and it can be booked. */
    readonly admit: (
      call: Effect.Effect<CallFault.CallFault | undefined>
    ) => Effect.Effect<CallFault.CallFault | undefined>
    readonly count: () => number
  }
>()("signalbox/llm/CallsUnderWay") {
  static readonly layer = Layer.effect(
    CallsUnderWay,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const log = yield* CallLog
      const allOver = yield* Deferred.make<void>()
      let count = 0
      let isEnding = false
      const leave = Effect.suspend(() => {
        count--
        return isEnding && count === 0 ? Deferred.succeed(allOver, undefined) : Effect.void
      })
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
      return CallsUnderWay.of({
        count: () => count,
        admit: (call) =>
          Effect.suspend(() => {
            if (count >= limits.callsInFlight)
              return Effect.succeed(CallFault.overloaded("Too many calls are under way; try again"))
            if (log.isFailing())
              return Effect.succeed(CallFault.overloaded("Calls cannot be booked at the moment; try again"))
            count++
            return Effect.ensuring(call, leave)
          })
      })
    })
  )
}
