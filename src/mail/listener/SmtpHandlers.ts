import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from "smtp-server"
import { Cause, Effect, FiberSet, Metric, Predicate, Result } from "effect"
import { PayloadTooLarge, Problem, ServerError, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { GatheredBytes, type Reserve, tooMuch } from "#src/http/WholeBody.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { readAddress } from "#streams/mail/Addresses.ts"
import { Bounces } from "../bounces/Bounces.ts"
import { ReturnPaths } from "../bounces/ReturnPaths.ts"
import type { SmtpClients } from "./SmtpClients.ts"
import { Submissions, type Submitter } from "./Submissions.ts"

type Options = Required<
  Pick<
    SMTPServerOptions,
    "onAuth" | "onClose" | "onConnect" | "onData" | "onMailFrom" | "onRcptTo" | "onSecure"
  >
>

interface Handlers {
  readonly options: Options
  /** From now on there are no new clients, and no new messages. */
  readonly stop: () => void
}

const stops = (): Error => refusal(421, "The server stops; try again later")
const noLogin = (): Error =>
  refusal(550, "Log in to send mail; without that, only mail to return paths is taken")

/** The work at each step of a session. */
export const makeHandlers = Effect.fnUntraced(function* (
  clients: SmtpClients,
  disabled: ReadonlyArray<string>
) {
  const submissions = yield* Submissions
  const paths = yield* ReturnPaths
  const { takes } = yield* Bounces
  const take = yield* makeTake(clients)
  const answer = yield* makeAnswer(clients)
  let isStopping = false

  const options: Options = {
    onConnect: (session, done) => {
      if (isStopping) return done(stops())
      if (!clients.enter(session.id, session.remoteAddress))
        return done(refusal(421, "Too many connections from your address"))
      // Passwords are not asked for in plain text, but within this machine.
      if (!isLoopback(session.remoteAddress)) session.disabledCommands = [...disabled, "AUTH"]
      done()
    },
    onSecure: (_, session, done) => {
      delete session.disabledCommands
      done()
    },
    onClose: ({ id }) => clients.leave(id),
    onAuth: ({ password }, { id, remoteAddress }, done) =>
      answer(id, "login", submissions.login(password ?? "", remoteAddress), (refused, user) =>
        done(refused, { user })
      ),
    onMailFrom: (_, __, done) => done(isStopping ? stops() : null),
    onRcptTo: ({ address }, session, done) => {
      const refused = submitterOf(session) === undefined ? openRefusal(address) : addressRefusal(address)
      if (refused !== null) clients.refused(session.id)
      done(refused)
    },
    onData: (stream, session, done) => {
      const by = submitterOf(session)
      const kind = by === undefined ? "bounce" : "submission"
      answer(session.id, kind, take(stream, session, by), done)
    }
  }

  const openRefusal = (address: string): Error | null => {
    const token = paths.tokenOf(address)
    if (token === undefined) return noLogin()
    return takes(token) ? null : refusal(550, "No such return path")
  }
  return { options, stop: () => (isStopping = true) } satisfies Handlers
})

const makeAnswer = Effect.fnUntraced(function* (clients: SmtpClients) {
  const count = yield* makeCount
  const run = yield* FiberSet.makeRuntime()

  /** Runs it, and calls back with its value or a refusal, which is counted. */
  return <A>(
    id: string,
    kind: "bounce" | "login" | "submission",
    work: Effect.Effect<A, Problem>,
    done: (refused: Error | null, value?: A) => void
  ): void =>
    void run(
      Effect.matchCauseEffect(work, {
        onSuccess: (value) =>
          Effect.sync(() => {
            count(kind, "taken")
            done(null, value)
          }),
        onFailure: (cause) =>
          Effect.map(problemOf(cause), (problem) => {
            const refused = kind === "login" ? loginRefusalOf(problem) : refusalOf(problem)
            count(kind, refused.responseCode < 500 ? "deferred" : "refused")
            clients.refused(id)
            done(refused)
          })
      })
    )
})

const isLoopback = (address: string): boolean => address === "::1" || address.startsWith("127.")

const isSubmitter = (user: unknown): user is Submitter => Predicate.hasProperty(user, "secret")

/** Undefined: it has not logged in. */
const submitterOf = ({ user }: SMTPServerSession): Submitter | undefined =>
  isSubmitter(user) ? user : undefined

const addressRefusal = (address: string): Error | null => {
  const read = readAddress("RCPT TO", address)
  return Result.isSuccess(read) ? null : refusal(553, `${read.failure.field}: ${read.failure.text}`)
}

const ended = ServiceUnavailable.of("The connection ended before the message did")

/** Reads a message to its end. */
const whole = (
  stream: SMTPServerDataStream,
  add: (piece: Uint8Array) => void
): Effect.Effect<void, ServiceUnavailable> =>
  Effect.callback((resume) => {
    stream.on("data", add)
    stream.once("end", () => resume(Effect.void))
    stream.once("close", () => resume(Effect.fail(ended)))
    stream.once("error", () => resume(Effect.fail(ended)))
  })

/** The ways to take a message. Answers the text of the reply. */
const makeTake = Effect.fnUntraced(function* (clients: SmtpClients) {
  const { limits } = yield* AppConfig
  const { received } = yield* Bounces
  const { tokenOf } = yield* ReturnPaths
  const submissions = yield* Submissions
  const shares = new FairShares(limits.mailSmtpBytes)

  const bounce = Effect.fnUntraced(function* (stream: SMTPServerDataStream, tokens: ReadonlyArray<string>) {
    const most = limits.mailSmtpBounceBytes
    const gathered = new GatheredBytes(() => true, most)
    // Reports begin with what they tell; the mail that they are about comes behind it.
    yield* whole(stream, (piece) => void gathered.add(piece.subarray(0, most - gathered.length)))
    const raw = gathered.bytes
    yield* Effect.forEach(tokens, (token) => storeAwayAbandoned(received({ token, raw })), { discard: true })
    return "Received"
  })

  const submission = Effect.fnUntraced(function* (
    stream: SMTPServerDataStream,
    by: Submitter,
    sender: Sender,
    reserve: Reserve
  ) {
    const gathered = new GatheredBytes(reserve, limits.mailBytes)
    let isBusy = false
    yield* whole(stream, (piece) => {
      if (!stream.sizeExceeded && !isBusy) isBusy = !gathered.add(piece)
    })
    if (stream.sizeExceeded) return yield* tooLarge
    if (isBusy) return yield* tooMuch
    clients.handedOver(sender.id)
    const { bytes } = gathered
    return `Accepted as ${yield* submissions.send({ by, bytes, ...sender })}`
  })

  const taken = (
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    by: Submitter | undefined
  ): Effect.Effect<string, Problem> => {
    const { envelope, id, remoteAddress } = session
    const addresses = envelope.rcptTo.map(({ address }) => address)
    if (by === undefined) return bounce(stream, addresses.map(tokenOf).filter(Predicate.isNotUndefined))
    const { owner } = by
    let heldBytes = 0
    const reserve: Reserve = (bytes) => {
      const isTaken = shares.take(owner, bytes)
      if (isTaken) heldBytes += bytes
      return isTaken
    }
    const read = addresses.map((address) => readAddress("RCPT TO", address))
    const sender = {
      id,
      address: remoteAddress,
      envelope: read.filter(Result.isSuccess).map(({ success }) => success.address)
    }
    return Effect.ensuring(
      submission(stream, by, sender, reserve),
      Effect.sync(() => shares.release(owner, heldBytes))
    )
  }
  return (...message: Parameters<typeof taken>) =>
    Effect.tap(taken(...message), () => Effect.sync(() => clients.took(message[1].id)))
})

interface Sender {
  /** of the session */
  readonly id: string
  readonly address: string
  readonly envelope: ReadonlyArray<string>
}

const tooLarge = PayloadTooLarge.of("The message is larger than 25 MiB")

const handled = Metric.counter("signalbox_mail_smtp_total", {
  description: "Logins, mails to return paths and submissions by SMTP, by what came of them",
  incremental: true
})

const makeCount = Effect.map(
  Effect.context<never>(),
  (context) => (kind: string, outcome: "deferred" | "refused" | "taken") =>
    Metric.withAttributes(handled, { kind, outcome }).updateUnsafe(1, context)
)

/** A refusal with the code of its reply, as smtp-server takes it. */
interface SmtpRefusal extends Error {
  readonly responseCode: number
}

const refusal = (responseCode: number, text: string): SmtpRefusal =>
  Object.assign(new Error(shown(text)), { responseCode })

/** A line of a reply has 512 bytes with its code and CRLF, in ASCII. Source: RFC 5321, 4.5.3.1.5. */
const textMax = 400

const shown = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?").slice(0, textMax)

/** A refusal for good is 5xx; the client keeps the message where it is 4xx, and comes again. Source: RFC 5321, 4.2. */
const codes: Readonly<Record<number, number>> = { 400: 554, 401: 535, 403: 550, 413: 552, 507: 452 }

const refusalOf = ({ message, status }: Problem): SmtpRefusal => refusal(codes[status] ?? 451, message)

/** Source: RFC 4954, 6. */
const loginRefusalOf = ({ message, status }: Problem): SmtpRefusal =>
  refusal(status === 401 || status === 403 ? 535 : 454, message)

/** A fault of this server itself is logged; of work that was given up the client hears to come again. */
const problemOf = (cause: Cause.Cause<Problem>): Effect.Effect<Problem> => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined) return Effect.succeed(failure)
  if (Cause.hasInterruptsOnly(cause))
    return Effect.succeed(ServiceUnavailable.of("The server stops; try again later"))
  return Effect.as(
    Effect.logError("A message that came by SMTP could not be handled", cause),
    ServerError.of("Internal error; try again later")
  )
}
