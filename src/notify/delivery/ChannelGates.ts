import { Context, Effect, Exit, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { HostGates, type HostGatesOptions, type Pass } from "#src/infra/gates/HostGates.ts"
import type { OwnerSharesOptions } from "#src/infra/gates/OwnerShares.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import type { Limits } from "#src/Limits.ts"
import type { ChannelOf } from "#streams/notify/channels/Channel.ts"
import { hostOf, kindOf } from "#streams/notify/channels/Kinds.ts"
import type { Exchanged } from "./Exchange.ts"

export const gatesOptions = (limits: Limits): HostGatesOptions & OwnerSharesOptions => ({
  attempts: limits.deliveryAttempts,
  hosts: limits.deliveryHosts,
  turnMillis: limits.deliveryTurnMillis,
  restMillis: limits.deliveryRestMillis,
  pauseMillis: limits.deliveryPauseMillis,
  failuresMax: limits.breakerFailures,
  openMinMillis: limits.breakerMinMillis,
  openMaxMillis: limits.breakerMaxMillis
})

/** The gates of this process: whatever is sent to a channel goes through them. */
export class ChannelGates extends Context.Service<ChannelGates, HostGates>()(
  "signalbox/notify/ChannelGates"
) {
  static readonly layer = Layer.effect(
    ChannelGates,
    Effect.map(AppConfig, ({ limits }) => new HostGates(gatesOptions(limits)))
  )
}

/** The host whose attempts are counted together, and how many of them it has at once. */
const gateOf = (channel: ChannelOf, limits: Limits): readonly [host: string, most: number] => {
  const { gate } = kindOf(channel.kind)
  const most = {
    push: limits.deliveriesPerPushOrigin,
    webhook: limits.deliveriesPerWebhookHost,
    telegram: limits.deliveriesAtTelegram
  }
  return [`${gate} ${hostOf(channel)}`, most[gate]]
}

/** Makes an attempt of an owner's at a channel, where its host has a turn for it. */
export const throughGates = (gates: HostGates, limits: Limits) => {
  /** Not to be interrupted: a pass that no fiber has would be lost. It comes within `deliveryTurnMillis`. */
  const enter = (owner: string, channel: ChannelOf) =>
    Effect.callback<Pass | Refusal>((resume) => {
      const [host, most] = gateOf(channel, limits)
      gates.enter(owner, host, most, (entry) => resume(Effect.succeed(entry)))
    })
  const use = (pass: Pass, attempt: Effect.Effect<Exchanged | Refusal>) =>
    Effect.onExit(attempt, (exit) =>
      Effect.sync(() =>
        pass.leave(Exit.isSuccess(exit) && "health" in exit.value ? exit.value.health : "moot")
      )
    )
  return (owner: string, channel: ChannelOf, attempt: Effect.Effect<Exchanged | Refusal>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(enter(owner, channel), (entry): Effect.Effect<Exchanged | Refusal> =>
        "restMillis" in entry ? Effect.succeed(entry) : use(entry, restore(attempt))
      )
    )
}
