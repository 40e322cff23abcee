import { Clock, Effect, Result } from "effect"
import type { Egress } from "#src/infra/egress/Egress.ts"
import type { HostHealth } from "#src/infra/gates/HostGates.ts"
import type { Limits } from "#src/Limits.ts"
import type { Adjustments, ChannelRequest, Notice, Verdict } from "#streams/notify/channels/Channel.ts"
import { pushRequest } from "#streams/notify/channels/PushRequest.ts"
import type { Vapid } from "#streams/notify/channels/Vapid.ts"
import { type NetworkFault, verdictOf, verdictOfFault } from "#streams/notify/channels/Verdict.ts"
import { webhookRequest } from "#streams/notify/channels/Webhook.ts"
import type { DeliveryMetrics } from "./DeliveryMetrics.ts"
import type { DeliveryChannel } from "./DeliveryRows.ts"

/** The end of an attempt, and how far it speaks for the host. */
export interface Exchanged {
  readonly verdict: Verdict
  readonly health: HostHealth
  /** no request left: too many are under way, for all rooms */
  readonly isBusy: boolean
}

interface Parts {
  readonly egress: Egress["Service"]
  readonly vapid: Vapid
  readonly limits: Limits
  readonly metrics: DeliveryMetrics
}

const dead = (error: string): Exchanged => ({
  verdict: { _tag: "Dead", error },
  health: "moot",
  isBusy: false
})

/** Faults that speak against the host, not against the address or the answer's form. */
const isHostFault = (fault: NetworkFault): boolean =>
  fault._tag === "EgressFailed" && ["name", "connect", "tls", "time", "answer"].includes(fault.kind)

/**
 * The request of a delivery, and the one or two more that an answer may ask for: all of them within the time of one. An
 * answer counts by its status, however long its body is.
 */
export const makeExchange = ({ egress, limits, metrics, vapid }: Parts) => {
  const requestOf = (
    channel: DeliveryChannel,
    notice: Notice,
    nowMillis: number,
    adjustments: Adjustments
  ): ChannelRequest =>
    channel.kind === "push"
      ? pushRequest(channel.target, notice, { vapid, nowMillis, adjustments })
      : webhookRequest(channel.target, notice, { nowMillis, adjustments })

  return Effect.fnUntraced(function* (channel: DeliveryChannel, notice: Notice) {
    const { kind } = channel
    const began = performance.now()
    let adjustments: Adjustments = {}
    while (true) {
      const nowMillis = yield* Clock.currentTimeMillis
      const request = yield* Effect.try({
        try: () => requestOf(channel, notice, nowMillis, adjustments),
        catch: (error) => (error instanceof Error ? error.message : String(error))
      }).pipe(Effect.result)
      if (Result.isFailure(request)) return dead(`the request to it cannot be made: ${request.failure}`)
      const left = limits.egressTotalMillis - (performance.now() - began)
      const answer = yield* Effect.result(
        egress.fetch({ ...request.success, isCutAllowed: true, totalMillis: Math.max(left, 1) })
      )
      if (Result.isFailure(answer)) {
        const fault = answer.failure
        metrics.attempted(kind, fault._tag === "EgressRefused" ? "refused" : fault.kind)
        return {
          verdict: verdictOfFault(fault),
          health: isHostFault(fault) ? "failed" : "moot",
          isBusy: fault._tag === "EgressFailed" && fault.kind === "busy"
        } satisfies Exchanged
      }
      const { status } = answer.success
      metrics.attempted(kind, status)
      const verdict = verdictOf(kind, answer.success, { adjustments, nowMillis })
      if (verdict._tag === "Smaller") adjustments = { ...adjustments, isSmaller: true }
      else if (verdict._tag === "NewSignature") adjustments = { ...adjustments, hasNewSignature: true }
      else
        return {
          verdict,
          health: status >= 500 ? "failed" : "well",
          isBusy: false
        } satisfies Exchanged
    }
  })
}
