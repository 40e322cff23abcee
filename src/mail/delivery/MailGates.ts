import { Context, Effect, Exit, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { HostGates, type HostHealth, type Pass } from "#src/infra/gates/HostGates.ts"
import { OwnerShares } from "#src/infra/gates/OwnerShares.ts"
import { type Refusal, Turns } from "#src/infra/gates/Turns.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Limits } from "#src/Limits.ts"
import { MailRoute } from "../transports/MailRoute.ts"
import { smtpLimits } from "../transports/SmtpLimits.ts"
import type { Handed, Transport } from "../transports/Transport.ts"

/** A delivery, as gates and shares count it. */
interface Entrant {
  readonly owner: string
  /** of the recipient */
  readonly address: string
  /** the domain of the envelope's sender */
  readonly senderDomain: string
  /** that its message needs of memory once it is handed over, beside what is there already */
  readonly bytes: number
}

/** The end of an attempt; "Missing", "Unreadable": there was no message to hand over. */
type Attempted = Handed | { readonly _tag: "Missing" | "Unreadable" }

/**
 * The hand-overs of this process: so many at once to the relay, or to a domain where there is none, and none for a while to
 * one that is down, nor by an owner from a domain that it refuses. Their messages have so many bytes together. Owners take
 * turns. Source: contract/mail#pauses.
 */
export class MailGates extends Context.Service<
  MailGates,
  {
    /** Makes an attempt where there is a turn for it, or tells when there may be one. */
    readonly through: <A extends Attempted, E>(
      entrant: Entrant,
      attempt: Effect.Effect<A, E>
    ) => Effect.Effect<A | Refusal, E>
    /** Milliseconds until the turn of a new delivery, where `through` would refuse it now for its recipient's domain; else 0. */
    readonly untilTurn: (owner: string, address: string) => number
    /**
     * Why the route of all mail takes none: it rests, or refuses a sender and has taken nothing since. A single domain is no
     * route.
     */
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

/** A sender at a gate: an owner's mails from one domain. */
const senderOf = (gate: string, { owner, senderDomain }: Entrant): string =>
  `${owner} ${senderDomain} ${gate}`

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
    case "Unreadable":
      return "moot"
    default:
      return "well"
  }
}

/** A hand-over as it speaks for its sender. One that found the route down says nothing of it. */
const senderHealthOf = (handed: Attempted | Refusal): HostHealth => {
  if ("restMillis" in handed) return "moot"
  return handed._tag === "SenderRefused" ? "failed" : healthOf(handed) === "well" ? "well" : "moot"
}

const restOf = (limits: Limits) => ({
  hosts: limits.mailGates,
  turnMillis: limits.mailTurnMillis,
  restMillis: limits.mailTurnMaxMillis,
  pauseMillis: limits.mailProbeMillis,
  failuresMax: 1,
  openMinMillis: limits.mailRestMinMillis,
  openMaxMillis: limits.mailRestMaxMillis
})

/** Attempts whose messages have so many bytes in memory together; the others are refused until their turn. */
const makeMemory = ({ mailMessagesBytes, mailTurnMaxMillis, mailTurnMillis }: Limits) => {
  const shares = new FairShares(mailMessagesBytes)
  const turns = new Turns()
  const most = (owner: string, bytes: number): number => Math.max(1, Math.floor(shares.held(owner) / bytes))
  const options = { turnMillis: mailTurnMillis, restMillis: mailTurnMaxMillis }
  return <A, E>(
    { bytes, owner }: Entrant,
    attempt: Effect.Effect<A | Refusal, E>
  ): Effect.Effect<A | Refusal, E> =>
    bytes === 0
      ? attempt
      : Effect.acquireUseRelease(
          Effect.sync(() => (shares.take(owner, bytes) ? performance.now() : undefined)),
          (began): Effect.Effect<A | Refusal, E> =>
            began === undefined
              ? Effect.sync(() => turns.next(owner, performance.now(), most(owner, bytes), options))
              : attempt,
          (began) =>
            Effect.sync(() => {
              if (began === undefined) return
              shares.release(owner, bytes)
              turns.ended(performance.now() - began)
            })
        )
}

/** A gate that an attempt passes: `enter` refuses, or gives a pass, within `mailTurnMillis`. */
const throughGate = <A extends Attempted, E>(
  enter: (end: (entry: Pass | Refusal) => void) => void,
  attempt: Effect.Effect<A | Refusal, E>,
  leave: (pass: Pass, exit: Exit.Exit<A | Refusal, E>) => void
): Effect.Effect<A | Refusal, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      // Not to be interrupted: a pass that no fiber has would be lost.
      Effect.callback<Pass | Refusal>((resume) => enter((entry) => resume(Effect.succeed(entry)))),
      (entry): Effect.Effect<A | Refusal, E> =>
        "restMillis" in entry
          ? Effect.succeed(entry)
          : Effect.onExit(restore(attempt), (exit) => Effect.sync(() => leave(entry, exit)))
    )
  )

const make = (route: Transport, limits: Limits): MailGates["Service"] => {
  const attempts = route.name === "smtp" ? smtpLimits.smtpConnections : limits.mailAttempts
  const options = restOf(limits)
  const gates = new HostGates(options)
  const senders = new HostGates(options)
  // A single owner has half of its shares under way, which leaves connections free for others, and as many again wait.
  const shares = new OwnerShares(
    route.name === "smtp"
      ? { ...options, attempts: 1.6 * attempts, waiting: limits.mailAttempts / 2 }
      : { ...options, attempts }
  )
  const withinMemory = makeMemory(limits)
  /** why the route takes nothing, and the sender that it refuses, where that is why */
  let problem: { readonly reply: string; readonly sender?: string } | undefined

  const note = (handed: Attempted | Refusal, sender: string): void => {
    if ("restMillis" in handed || route.name === "direct") return
    if (handed._tag === "RouteDown") problem = { reply: handed.reply }
    else if (handed._tag === "SenderRefused") problem = { reply: handed.reply, sender }
    else if (healthOf(handed) === "well") problem = undefined
  }

  return {
    through: (entrant, attempt) => {
      const { address, owner } = entrant
      const [gate, most] = gateOf(route, address, limits)
      const sender = senderOf(gate, entrant)
      const atRoute = throughGate(
        (end) => gates.enter(owner, gate, most, end),
        attempt,
        (pass, exit) => {
          if (Exit.isSuccess(exit)) note(exit.value, sender)
          pass.leave(Exit.isSuccess(exit) && !("restMillis" in exit.value) ? healthOf(exit.value) : "moot")
        }
      )
      return throughGate(
        (end) => senders.enter(owner, sender, Infinity, end),
        shares.within(owner, withinMemory(entrant, atRoute)),
        (pass, exit) => pass.leave(Exit.isSuccess(exit) ? senderHealthOf(exit.value) : "moot")
      )
    },
    untilTurn: (owner, address) =>
      route.name === "direct" ? gates.untilTurn(owner, ...gateOf(route, address, limits)) : 0,
    // Once the pause is over and no mail is there to ask with, nothing is known against it.
    paused: () => {
      if (problem === undefined) return undefined
      const { reply, sender } = problem
      return (sender === undefined ? gates.isResting(route.name) : senders.isResting(sender))
        ? reply
        : undefined
    },
    stop: () => {
      senders.stop()
      gates.stop()
    }
  }
}
