import type { Socket } from "node:net"
import { Effect, Result, type Scope, Semaphore } from "effect"
import type { Egress } from "#src/infra/egress/Egress.ts"
import { type MxLookup, mxHostsOf } from "./MxHosts.ts"
import type { SmtpLimits } from "./SmtpLimits.ts"
import { cleaned, handedOf } from "./SmtpReply.ts"
import { SmtpSession } from "./SmtpSession.ts"
import type { Handed, Handover, Transport } from "./Transport.ts"

export interface DirectOptions {
  readonly egress: Egress["Service"]
  readonly lookUp: MxLookup
  /** `MAIL_HOSTNAME`, by which this server is known: the name in EHLO */
  readonly hostname: string
  readonly limits: SmtpLimits
  /** unset: 25 */
  readonly port?: number
}

/** The next server is to be tried. */
interface Failed {
  readonly problem: string
  /** it has an address that strangers may not name */
  readonly isForbidden: boolean
  /** its TLS is broken */
  readonly isTls: boolean
}

type Tried = { readonly handed: Handed } | Failed

const failed = (problem: string): Failed => ({ problem, isForbidden: false, isTls: false })

/**
 * TLS wherever the server offers it, with any certificate: mail servers have seldom one for their MX name, and the
 * alternative is plain text (RFC 7435).
 */
const sessionTo = ({ hostname, limits }: DirectOptions, socket: Socket, host: string, isPlain: boolean) =>
  new SmtpSession({
    connection: {
      connection: socket,
      host,
      name: hostname,
      secure: false,
      ...(isPlain ? { ignoreTLS: true } : { opportunisticTLS: true }),
      tls: { rejectUnauthorized: false }
    },
    login: null,
    limits
  })

/** A message to one server, over a connection of its own. */
const tryHost = Effect.fnUntraced(function* (
  options: DirectOptions,
  handover: Handover,
  { host, isPlain }: { readonly host: string; readonly isPlain: boolean }
): Effect.fn.Return<Tried, never, Scope.Scope> {
  const connected = yield* Effect.result(options.egress.connect(host, options.port ?? 25))
  if (Result.isFailure(connected)) {
    const fault = connected.failure
    if (fault._tag === "EgressRefused") return { ...failed(fault.message), isForbidden: true }
    // This server has too much to do, which says nothing of the other one.
    return fault.kind === "busy"
      ? { handed: { _tag: "Deferred", reply: fault.message } }
      : failed(fault.message)
  }
  const session = yield* Effect.acquireRelease(
    Effect.sync(() => sessionTo(options, connected.success, host, isPlain)),
    (opened) => Effect.sync(() => opened.close())
  )
  const opened = yield* Effect.result(session.open())
  if (Result.isFailure(opened)) return { ...failed(opened.failure.text), isTls: session.isUpgrading }
  let isEnding = false
  const ending = Effect.suspend(() => {
    isEnding = true
    return handover.ending
  })
  const end = yield* session.transact({ ...handover, ending })
  const handed = handedOf(end, options.limits.smtpReplyCharacters)
  return handed._tag === "RouteDown" && !isEnding ? failed(handed.reply) : { handed }
}, Effect.scoped)

/** One server after the other, until one has an answer; in plain text where its TLS is broken. */
const tryHosts = Effect.fnUntraced(function* (
  options: DirectOptions,
  handover: Handover,
  hosts: ReadonlyArray<string>
): Effect.fn.Return<Handed> {
  const problems: Array<string> = []
  let areForbidden = true
  for (const host of hosts) {
    let tried = yield* tryHost(options, handover, { host, isPlain: false })
    if ("problem" in tried && tried.isTls) tried = yield* tryHost(options, handover, { host, isPlain: true })
    if ("handed" in tried) return tried.handed
    areForbidden &&= tried.isForbidden
    problems.push(tried.problem.includes(host) ? tried.problem : `${host}: ${tried.problem}`)
  }
  // The first one is the best server, and its problem the one to be solved.
  const reply = cleaned(problems.join("; "), options.limits.smtpReplyCharacters)
  return { _tag: areForbidden ? "Bounced" : "RouteDown", reply }
})

/** Lets `most` hand-overs to one domain be under way; others wait for their turn. */
const makeDomainGates = (most: number) => {
  const gates = new Map<string, { readonly gate: Semaphore.Semaphore; users: number }>()
  return <A>(domain: string, use: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.suspend(() => {
      const entry = gates.get(domain) ?? { gate: Semaphore.makeUnsafe(most), users: 0 }
      gates.set(domain, entry)
      entry.users++
      const leave = Effect.sync(() => {
        if (--entry.users === 0) gates.delete(domain)
      })
      return Effect.ensuring(entry.gate.withPermits(1)(use), leave)
    })
}

/**
 * Mail to the servers of the recipient's domain, at addresses that strangers may name. A domain without a server, or with
 * none at a public address, bounces.
 */
export const makeDirect = (options: DirectOptions): Transport => {
  const { hostname: own, limits, lookUp } = options
  const inTurn = makeDomainGates(limits.smtpConnectionsPerDomain)
  return {
    name: "direct",
    handOver: (handover) => {
      const domain = handover.envelope.to.slice(handover.envelope.to.lastIndexOf("@") + 1).toLowerCase()
      const found = mxHostsOf(lookUp, domain, { own, most: limits.smtpHostsPerDomain })
      const handed = Effect.flatMap(found, (mx): Effect.Effect<Handed> => {
        if (mx._tag === "Hosts") return tryHosts(options, handover, mx.hosts)
        return Effect.succeed({ _tag: mx._tag === "None" ? "Bounced" : "RouteDown", reply: mx.reason })
      })
      return inTurn(domain, handed)
    }
  }
}
