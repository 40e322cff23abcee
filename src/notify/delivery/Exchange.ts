import { Clock, Effect, Result, Schema } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import type { EgressFailed, EgressRefused } from "#src/infra/egress/EgressError.ts"
import type { HostHealth } from "#src/infra/gates/HostGates.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import type { Limits } from "#src/Limits.ts"
import type {
  Adjustments,
  ChannelAnswer,
  ChannelRequest,
  Notice,
  Verdict
} from "#streams/notify/channels/Channel.ts"
import { requestTo } from "#streams/notify/channels/Kinds.ts"
import type { Vapid } from "#streams/notify/channels/Vapid.ts"
import { type NetworkFault, verdictOf, verdictOfFault } from "#streams/notify/channels/Verdict.ts"
import type { BotUnreachable } from "../telegram/BotClient.ts"
import { TelegramBot } from "../telegram/TelegramBot.ts"
import type { DeliveryMetrics } from "./DeliveryMetrics.ts"
import type { DeliveryChannel } from "./DeliveryRows.ts"
import { VapidKey } from "./VapidKey.ts"

/** The end of an attempt, and how far it speaks for the host. */
export interface Exchanged {
  readonly verdict: Verdict
  readonly health: HostHealth
  /** no request left: too many are under way, for all rooms */
  readonly isBusy: boolean
}

interface Parts {
  readonly egress: Egress["Service"]
  readonly telegram: TelegramBot["Service"]
  readonly vapid: Vapid
  readonly limits: Limits
  readonly metrics: DeliveryMetrics
}

const dead = (error: string): Exchanged => ({
  verdict: { _tag: "Dead", error },
  health: "moot",
  isBusy: false
})

/** `TELEGRAM_BOT_TOKEN` was there when the chat joined, and may be again. */
const withoutBot: Exchanged = {
  verdict: { _tag: "Again", error: "this server has no bot of Telegram", isOwnFault: true },
  health: "moot",
  isBusy: false
}

/** Faults that speak against the host, not against the address or the answer's form. */
const isHostFault = (fault: NetworkFault): boolean =>
  fault._tag !== "EgressRefused" && ["name", "connect", "tls", "time", "answer"].includes(fault.kind)

/** A message of Telegram's has to have its turn first; what it waits for is no fault of the chat. */
const turning = ({ limits, telegram: { bot } }: Parts) =>
  Effect.fnUntraced(function* ({ kind, target }: DeliveryChannel) {
    if (kind !== "telegram" || bot === undefined) return undefined
    const refusal: Refusal | undefined = yield* Effect.catch(bot.turn(target), (error) =>
      Effect.as(Effect.logDebug("A message waits for Postgres", error.message), {
        restMillis: limits.deliveryPauseMillis,
        isBusy: true
      })
    )
    return refusal
  })

class NoBot extends Schema.TaggedError<NoBot>()("NoBot", {}) {}

/** To Telegram by its bot, else to an address that was checked. */
const carrying =
  ({ egress, telegram: { bot } }: Parts) =>
  (
    { kind }: DeliveryChannel,
    request: ChannelRequest,
    totalMillis: number
  ): Effect.Effect<ChannelAnswer, EgressRefused | EgressFailed | BotUnreachable | NoBot> => {
    if (kind !== "telegram") return egress.fetch({ ...request, isCutAllowed: true, totalMillis })
    return bot === undefined ? new NoBot() : bot.call("sendMessage", request.body, totalMillis)
  }

/**
 * The request of a delivery, and the one or two more that an answer may ask for: all of them within the time of one. An
 * answer counts by its status, however long its body is. A refusal says when Telegram has a turn for it.
 */
export const exchangeWith = (parts: Parts) => {
  const { limits, metrics, vapid } = parts
  const turn = turning(parts)
  const carry = carrying(parts)
  return Effect.fnUntraced(function* (channel: DeliveryChannel, notice: Notice) {
    const { kind } = channel
    const refusal = yield* turn(channel)
    if (refusal !== undefined) return refusal
    const began = performance.now()
    let adjustments: Adjustments = {}
    while (true) {
      const nowMillis = yield* Clock.currentTimeMillis
      const request = yield* Effect.try({
        try: () => requestTo(channel, notice, { vapid, nowMillis, adjustments }),
        catch: (error) => (error instanceof Error ? error.message : String(error))
      }).pipe(Effect.result)
      if (Result.isFailure(request)) return dead(`the request to it cannot be made: ${request.failure}`)
      const left = limits.egressTotalMillis - (performance.now() - began)
      const answer = yield* Effect.result(carry(channel, request.success, Math.max(left, 1)))
      if (Result.isFailure(answer)) {
        const fault = answer.failure
        if (fault._tag === "NoBot") return withoutBot
        metrics.attempted(kind, fault._tag === "EgressRefused" ? "refused" : fault.kind)
        return {
          verdict: verdictOfFault(fault),
          health: isHostFault(fault) ? "failed" : "moot",
          isBusy: fault._tag !== "EgressRefused" && fault.kind === "busy"
        } satisfies Exchanged
      }
      const { status } = answer.success
      metrics.attempted(kind, status)
      const verdict = verdictOf(kind, answer.success, { adjustments, nowMillis })
      if (verdict._tag === "Smaller") adjustments = { ...adjustments, isSmaller: true }
      else if (verdict._tag === "Plain") adjustments = { ...adjustments, isPlain: true }
      else if (verdict._tag === "NewSignature") adjustments = { ...adjustments, hasNewSignature: true }
      else
        return {
          verdict,
          health: status >= 500 || isOwnFault(verdict) ? "failed" : "well",
          isBusy: false
        } satisfies Exchanged
    }
  })
}

/** The service refuses this server as such: none of its channels is asked for a while. */
const isOwnFault = (verdict: Verdict): boolean => verdict._tag === "Again" && verdict.isOwnFault === true

/** With the services of this process. */
export const makeExchange = Effect.fnUntraced(function* (metrics: DeliveryMetrics) {
  const { limits } = yield* AppConfig
  return exchangeWith({
    egress: yield* Egress,
    telegram: yield* TelegramBot,
    vapid: yield* VapidKey,
    limits,
    metrics
  })
})
