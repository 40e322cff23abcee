import { Readable } from "node:stream"
import { Effect, Redacted } from "effect"
import SMTPConnection, { type SMTPConnectionOptions } from "nodemailer/lib/smtp-connection"
import type { SmtpLimits } from "./SmtpLimits.ts"
import { type ConnectionError, faultOf, lossOf, type SmtpFault, type TransactionEnd } from "./SmtpReply.ts"
import type { Handover } from "./Transport.ts"

/** Settings of a connection to one server. */
export interface SessionOptions {
  readonly connection: SMTPConnectionOptions
  readonly login: { readonly user: string; readonly password: Redacted.Redacted } | null
  readonly limits: SmtpLimits
}

/** A large part is handed on in pieces, so that no more of it is in memory twice than a slow server has taken. */
const pieceBytes = 64 * 1024

/**
 * The parts of a message, read as far as the connection takes them. It ends when it is told to: nodemailer sends the final
 * dot then, and no sooner.
 */
class MessageSource extends Readable {
  isDrained = false
  private readonly pieces: Iterator<Uint8Array>
  private readonly changed: () => void

  constructor(parts: ReadonlyArray<Uint8Array>, changed: () => void) {
    // It reads ahead of nothing, so it is drained when the connection has all of it.
    super({ highWaterMark: 1 })
    this.pieces = piecesOf(parts)
    this.changed = changed
  }

  override _read(): void {
    const { done, value } = this.pieces.next()
    if (done === true) this.isDrained = true
    else this.push(value)
    this.changed()
  }

  finish(): void {
    this.push(null)
  }
}

function* piecesOf(parts: ReadonlyArray<Uint8Array>): Iterator<Uint8Array> {
  for (const part of parts)
    for (let from = 0; from < part.length; from += pieceBytes) yield part.subarray(from, from + pieceBytes)
}

type Outcome = { readonly fault: SmtpFault } | { readonly response: string }

/** One connection, for one message after the other. */
export class SmtpSession {
  /** messages that were begun */
  messages = 0
  /** an envelope was refused, so RSET comes before the next one */
  needsReset = false
  private lost: SmtpFault | undefined
  /** looks again at the condition that is waited for */
  private changed = (): void => undefined
  private readonly connection: SMTPConnection
  private readonly options: SessionOptions

  constructor(options: SessionOptions) {
    this.options = options
    const { limits } = options
    this.connection = new SMTPConnection({
      ...options.connection,
      allowInternalNetworkInterfaces: true,
      connectionTimeout: limits.smtpOpeningMillis,
      greetingTimeout: limits.smtpOpeningMillis,
      dnsTimeout: limits.smtpOpeningMillis,
      socketTimeout: limits.smtpDataMillis,
      socketCloseTimeout: 0,
      maxResponseSize: limits.smtpReplyBytes
    })
    this.connection.on("error", (error: ConnectionError) => this.lose(faultOf(error)))
    // The callback of a command, which may know why, is called in the same turn.
    this.connection.on("end", () => setImmediate(() => this.lose(lossOf("the connection was closed"))))
  }

  get isOpen(): boolean {
    return this.lost === undefined
  }

  /** Whether the handshake of STARTTLS was begun and has not ended well. */
  get isUpgrading(): boolean {
    return this.connection.upgrading === true
  }

  /** Connects, up to EHLO over TLS where that is asked for, and logs in. */
  open(): Effect.Effect<void, SmtpFault> {
    const { limits, login } = this.options
    const connected = this.ask(
      (done) => this.connection.connect((error) => done(error ?? null)),
      limits.smtpOpeningMillis,
      "a greeting, EHLO and STARTTLS"
    )
    return login === null ? connected : Effect.andThen(connected, this.logIn(login))
  }

  /** RSET, which ends a refused envelope. */
  reset(): Effect.Effect<void, SmtpFault> {
    return this.ask(
      (done) => this.connection.reset(done),
      this.options.limits.smtpCommandMillis,
      "RSET"
    ).pipe(Effect.tap(() => Effect.sync(() => (this.needsReset = false))))
  }

  /** Says QUIT, and closes the connection after the reply or without it. */
  quit(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isOpen) this.connection.quit()
      return this.untilWithin(() => !this.isOpen, this.options.limits.smtpQuitMillis)
    }).pipe(Effect.ensuring(Effect.sync(() => this.close())))
  }

  close(): void {
    this.connection.close()
    this.lose(lossOf("the connection was closed"))
  }

  /** One transaction. Its final dot leaves once the rest has, if `ending` says so then and nothing was lost meanwhile. */
  readonly transact = Effect.fnUntraced(
    { self: this },
    function* (this: SmtpSession, { ending, envelope, message }: Handover): Effect.fn.Return<TransactionEnd> {
      const { limits } = this.options
      this.messages++
      let replied: Outcome | undefined
      let goAhead: string | undefined
      const source = new MessageSource(message, () => {
        goAhead ??= String(this.connection.lastServerResponse)
        this.changed()
      })
      const size = message.reduce((sum, part) => sum + part.length, 0)
      this.connection.send({ from: envelope.from, to: [envelope.to], size }, source, (error, info) => {
        replied ??= error === null ? { response: info?.response ?? "" } : { fault: faultOf(error) }
        this.changed()
      })
      const outcome = (): Outcome | undefined => replied ?? (this.lost && { fault: this.lost })
      const ended = (what: string, millis: number): Outcome => outcome() ?? { fault: noReply(what, millis) }
      const reach = (is: () => boolean, millis: number) =>
        this.untilWithin(() => is() || outcome() !== undefined, millis)

      yield* reach(() => goAhead !== undefined, limits.smtpEnvelopeMillis)
      if (goAhead === undefined)
        return { phase: "envelope", fault: faultIn(ended("MAIL, RCPT and DATA", limits.smtpEnvelopeMillis)) }
      // nodemailer takes a 2xx for leave to go on. That may be a reply to an earlier command.
      if (!/^354(?!\d)/.test(goAhead))
        return { phase: "data", fault: lossOf(`not a 354 to DATA: ${goAhead}`) }
      yield* reach(() => source.isDrained, limits.smtpDataMillis)
      if (!source.isDrained || outcome() !== undefined)
        return { phase: "data", fault: faultIn(ended("the message", limits.smtpDataMillis)) }
      if (!(yield* ending)) return { phase: "withdrawn" }
      yield* queuedReplies
      const lost = outcome()
      if (lost !== undefined) return { phase: "data", fault: faultIn(lost) }
      source.finish()
      yield* reach(() => false, limits.smtpEndMillis)
      return { phase: "ended", ...ended("the final dot", limits.smtpEndMillis) }
    }
  )

  private logIn({ password, user }: NonNullable<SessionOptions["login"]>): Effect.Effect<void, SmtpFault> {
    const pass = Redacted.value(password)
    const secrets = [pass, base64(pass), base64(`\0${user}\0${pass}`)]
    return this.ask(
      (done) => this.connection.login({ user, pass }, done),
      this.options.limits.smtpCommandMillis,
      "the login"
    ).pipe(
      // Some servers repeat a command that they do not take.
      Effect.mapError((fault) => ({
        ...fault,
        text: secrets.reduce((text, secret) => text.replaceAll(secret, "…"), fault.text)
      }))
    )
  }

  /** A command by its callback; it fails with the connection, too, and after `millis`. */
  private ask(
    start: (done: (error: ConnectionError | null) => void) => void,
    millis: number,
    what: string
  ): Effect.Effect<void, SmtpFault> {
    return Effect.suspend(() => {
      let answer: { readonly error: ConnectionError | null } | undefined
      start((error) => {
        answer ??= { error }
        this.changed()
      })
      return Effect.flatMap(
        this.untilWithin(() => answer !== undefined || !this.isOpen, millis),
        () =>
          answer?.error === null && this.isOpen
            ? Effect.void
            : Effect.fail(answer?.error ? faultOf(answer.error) : (this.lost ?? noReply(what, millis)))
      )
    })
  }

  /** Waits for a condition, which is looked at after every event, or for the time to pass. */
  private untilWithin(is: () => boolean, millis: number): Effect.Effect<void> {
    return Effect.suspend(() =>
      is()
        ? Effect.void
        : Effect.callback<void>((resume) => {
            const timer = setTimeout(() => resume(Effect.void), millis)
            const look = (): void => {
              if (!is()) return
              clearTimeout(timer)
              resume(Effect.void)
            }
            this.changed = look
            return Effect.sync(() => clearTimeout(timer))
          })
    )
  }

  private lose(fault: SmtpFault): void {
    this.lost ??= fault
    this.changed()
  }
}

/** nodemailer reads one reply a turn. One that came with the 354 is none to the final dot. */
const queuedReplies = Effect.callback<void>((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})

const noReply = (what: string, millis: number): SmtpFault => lossOf(`no reply to ${what} in ${millis} ms`)

const base64 = (text: string): string => Buffer.from(text).toString("base64")

/** A reply that takes the message before its end is none that can be relied on. */
const faultIn = (outcome: Outcome): SmtpFault =>
  "fault" in outcome
    ? outcome.fault
    : lossOf(`the reply came before the end of the message: ${outcome.response}`)
