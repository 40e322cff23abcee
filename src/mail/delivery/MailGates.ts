import { Context, Effect, Exit, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { HostGates, type HostHealth, type Pass } from "#src/infra/gates/HostGates.ts"
import { OwnerShares } from "#src/infra/gates/OwnerShares.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import type { Limits } from "#src/Limits.ts"
import { MailRoute } from "../transports/MailRoute.ts"
import { smtpLimits } from "../transports/SmtpLimits.ts"
import type { Handed, Transport } from "../transports/Transport.ts"

/** A delivery, as gates and shares count it. */
interface Entrant {
  readonly owner: string
  /** of the recipient */
  readonly address: string
}

/** The end of an attempt; "Missing": there was no message to hand over. */
type Attempted = Handed | { readonly _tag: "Missing" }

/**
 * The hand-overs of this process: so many at once to the relay, or to a domain where there is none, and none for a while to
 * one that is down. Owners take turns. Source: contract/mail#pauses.
 */
export class MailGates extends Context.Service<
  MailGates,
  {
    /** Makes an attempt where there is a turn for it, or tells when there may be one. */
    readonly through: <A extends Attempted, E>(
      entrant: Entrant,
      attempt: Effect.Effect<A, E>
    ) => Effect.Effect<A | Refusal, E>
    /** why the route of all mail takes none, while it rests; a single domain is no route */
    readonly paused: () => string | undefined
    /** Begins no attempt any more. */
    readonly stop: () => void
  }
>()("signalbox/mail/MailGates") {
  static readonly layer = Layer.effect(
    MailGates,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      return make(yield* MailRoute, limits)
    })
  )
}

const optionsOf = (limits: Limits, attempts: number) => ({
  attempts,
  hosts: limits.mailGates,
  turnMillis: limits.mailTurnMillis,
  restMillis: limits.mailTurnMaxMillis,
  pauseMillis: limits.mailProbeMillis,
  failuresMax: 1,
  openMinMillis: limits.mailRestMinMillis,
  openMaxMillis: limits.mailRestMaxMillis
})

/** The gate of a recipient, and how many hand-overs it lets through at once. */
const gateOf = (
  { name }: Transport,
  address: string,
  limits: Limits
): readonly [gate: string, most: number] => {
  if (name === "direct")
    return [address.slice(address.lastIndexOf("@") + 1).toLowerCase(), smtpLimits.smtpConnectionsPerDomain]
  return [name, name === "smtp" ? smtpLimits.smtpConnections : limits.mailAttempts]
}

/** A server that refuses a recipient is well. A lost reply tells nothing of the next message. */
const healthOf = (handed: Attempted): HostHealth => {
  switch (handed._tag) {
    case "RouteDown":
      return "failed"
    case "Unknown":
    case "Withdrawn":
    case "Missing":
      return "moot"
    default:
      return "well"
  }
}

const make = (route: Transport, limits: Limits): MailGates["Service"] => {
  const attempts = route.name === "smtp" ? smtpLimits.smtpConnections : limits.mailAttempts
  const options = optionsOf(limits, attempts)
  const gates = new HostGates(options)
  // A single owner has half of its shares under way, which leaves connections free for others, and as many again wait.
  const shares = new OwnerShares(
    route.name === "smtp"
      ? { ...options, attempts: 1.6 * attempts, waiting: limits.mailAttempts / 2 }
      : options
  )
  let problem: string | undefined

  /** Not to be interrupted: a pass that no fiber has would be lost. It comes within `mailTurnMillis`. */
  const enter = ({ address, owner }: Entrant) =>
    Effect.callback<Pass | Refusal>((resume) => {
      const [gate, most] = gateOf(route, address, limits)
      gates.enter(owner, gate, most, (entry) => resume(Effect.succeed(entry)))
    })

  const leave = (pass: Pass, exit: Exit.Exit<Attempted, unknown>) => {
    const health = Exit.isSuccess(exit) ? healthOf(exit.value) : "moot"
    if (health === "well") problem = undefined
    else if (Exit.isSuccess(exit) && exit.value._tag === "RouteDown" && route.name !== "direct")
      problem = exit.value.reply
    pass.leave(health)
  }

  const throughGate = <A extends Attempted, E>(
    entrant: Entrant,
    attempt: Effect.Effect<A, E>
  ): Effect.Effect<A | Refusal, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(enter(entrant), (entry): Effect.Effect<A | Refusal, E> =>
        "restMillis" in entry
          ? Effect.succeed(entry)
          : Effect.onExit(restore(attempt), (exit) => Effect.sync(() => leave(entry, exit)))
      )
    )

  return {
    through: (entrant, attempt) => shares.within(entrant.owner, throughGate(entrant, attempt)),
    // Once the pause is over and no mail is there to ask with, nothing is known against it.
    paused: () => (gates.isResting(route.name) ? problem : undefined),
    stop: () => gates.stop()
  }
}
