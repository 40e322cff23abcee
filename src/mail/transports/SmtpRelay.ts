import { Effect, Exit, Result, type Scope, Semaphore } from "effect"
import type { SmtpLimits } from "./SmtpLimits.ts"
import { cleaned, handedOf, type SmtpFault, staysUsable, type TransactionEnd } from "./SmtpReply.ts"
import { type SessionOptions, SmtpSession } from "./SmtpSession.ts"
import type { SmtpServer } from "./SmtpUrl.ts"
import type { Handed, Handover, Transport } from "./Transport.ts"

export interface SmtpRelayOptions {
  readonly server: SmtpServer
  /** the name in EHLO; unset: this machine's, or its address */
  readonly hostname?: string
  /** certificates that are trusted, as PEM; unset: Node's */
  readonly certificates?: string
  readonly limits: SmtpLimits
}

const sessionOptionsOf = ({ certificates, hostname, limits, server }: SmtpRelayOptions): SessionOptions => ({
  connection: {
    host: server.host,
    port: server.port,
    secure: server.tls === "implicit",
    requireTLS: server.tls === "required",
    ignoreTLS: server.tls === "none",
    ...(hostname === undefined ? {} : { name: hostname }),
    // NODE_TLS_REJECT_UNAUTHORIZED does not count.
    tls: { rejectUnauthorized: true, ...(certificates === undefined ? {} : { ca: certificates }) }
  },
  login: server.login,
  limits
})

/** A connection that had carried messages may have been closed by its server meanwhile: that is no fault of the route. */
const isStale = (end: TransactionEnd): boolean =>
  end.phase === "envelope" && !end.fault.isOfMessage && [undefined, 421].includes(end.fault.code)

/** The connections to the relay: those that wait for a message, the last used first. */
class Connections {
  private readonly waiting: Array<{ readonly session: SmtpSession; readonly timer: NodeJS.Timeout }> = []
  private isClosed = false
  private readonly options: SessionOptions
  /** runs the end of a connection that was idle for too long */
  private readonly run: (effect: Effect.Effect<void>) => void

  constructor(options: SessionOptions, run: (effect: Effect.Effect<void>) => void) {
    this.options = options
    this.run = run
  }

  /** A connection that is ready for a message. It is in `held` from its beginning, so that it can be closed at any time. */
  take(held: Held): Effect.Effect<SmtpSession, SmtpFault> {
    return Effect.gen({ self: this }, function* (this: Connections) {
      for (let idle = this.waiting.pop(); idle !== undefined; idle = this.waiting.pop()) {
        clearTimeout(idle.timer)
        const { session } = idle
        held.session = session
        if (session.messages >= this.options.limits.smtpMessagesPerConnection) yield* session.quit()
        else if (session.isOpen && session.needsReset) yield* Effect.result(session.reset())
        if (session.isOpen && !session.needsReset) return session
        session.close()
      }
      const session = new SmtpSession(this.options)
      held.session = session
      yield* session.open()
      return session
    })
  }

  give(session: SmtpSession): void {
    if (this.isClosed) return session.close()
    const timer = setTimeout(() => {
      const at = this.waiting.findIndex((idle) => idle.session === session)
      if (at < 0) return
      this.waiting.splice(at, 1)
      this.run(session.quit())
    }, this.options.limits.smtpIdleMillis)
    this.waiting.push({ session, timer })
  }

  end(): void {
    this.isClosed = true
    this.closeIdle()
  }

  closeIdle(): void {
    for (const { session, timer } of this.waiting.splice(0)) {
      clearTimeout(timer)
      session.close()
    }
  }
}

interface Held {
  session: SmtpSession | undefined
  /** it may carry another message */
  isUsable: boolean
}

/** Mail to the relay of `SMTP_URL`, until the scope closes. Source: RFC 5321. */
export const makeSmtpRelay = (options: SmtpRelayOptions): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { limits } = options
    const characters = limits.smtpReplyCharacters
    const gate = (yield* Semaphore.make(limits.smtpConnections)).withPermits(1)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const connections = new Connections(sessionOptionsOf(options), (effect) => void run(effect))
    yield* Effect.addFinalizer(() => Effect.sync(() => connections.end()))

    const attempt = Effect.fnUntraced(function* (handover: Handover, held: Held): Effect.fn.Return<Handed> {
      while (true) {
        const taken = yield* Effect.result(connections.take(held))
        // Refused or not, it says nothing of the message: that has not been named.
        if (Result.isFailure(taken))
          return { _tag: "RouteDown", reply: cleaned(taken.failure.text, characters) }
        const session = taken.success
        const wasUsed = session.messages > 0
        const end = yield* session.transact(handover)
        if (wasUsed && isStale(end)) {
          // The others are as old.
          connections.closeIdle()
          session.close()
          continue
        }
        held.isUsable = session.isOpen && staysUsable(end)
        session.needsReset = end.phase === "envelope"
        return handedOf(end, characters)
      }
    })

    const handOver = (handover: Handover): Effect.Effect<Handed> =>
      Effect.suspend(() => {
        const held: Held = { session: undefined, isUsable: false }
        return attempt(handover, held).pipe(
          Effect.onExit((exit) =>
            Effect.sync(() => {
              if (held.session === undefined) return
              if (Exit.isSuccess(exit) && held.isUsable) connections.give(held.session)
              else held.session.close()
            })
          )
        )
      })
    return { name: "smtp", handOver: (handover) => gate(handOver(handover)) }
  })
