import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer, Result } from "effect"
import { type Principal, unmetered } from "#schemas/core/Authorization.ts"
import { invalidField, type Problem, RateLimited, Unauthorized } from "#schemas/core/Problem.ts"
import { SendMailApi } from "#schemas/mail/SendMailApi.ts"
import { type Access, accessOf, Admission } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { addressBlock } from "#src/front/ClientAddress.ts"
import { readInThread } from "#src/http/ReadInThread.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import {
  readSubmission,
  type ReadSubmission,
  type Submission,
  type SubmissionAsk
} from "#streams/mail/Submission.ts"
import { Mail } from "../sending/Mail.ts"

/** A client that has shown a key. */
export interface Submitter {
  /** the key itself: it may end while the client is connected */
  readonly secret: string
  readonly owner: string
}

interface Submitted {
  readonly by: Submitter
  readonly address: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** the addresses of RCPT, each as `readAddress` gives it */
  readonly envelope: ReadonlyArray<string>
}

/** Messages that clients of the listener hand over: they go the way of `POST /send`. Source: contract/mail#submission. */
export class Submissions extends Context.Service<
  Submissions,
  {
    /** With an account key as the password; the name does not count. */
    readonly login: (secret: string, address: string) => Effect.Effect<Submitter, Problem>
    /** answers the id of the mail */
    readonly send: (submitted: Submitted) => Effect.Effect<string, Problem>
  }
>()("signalbox/mail/Submissions") {
  static readonly layer = Layer.effect(
    Submissions,
    Effect.gen(function* () {
      const { enter, record, takeWindow } = yield* Admission
      const { mailSmtpLoginsPerMinute: limit } = (yield* AppConfig).limits
      const mail = yield* Mail
      const read = yield* makeReader

      const login = Effect.fnUntraced(function* (secret: string, address: string) {
        const window = { subject: subjectOf(address), limit, seconds: 60 }
        // It takes nothing: right ones are not counted.
        const { remaining, resetSeconds } = yield* takeWindow({ ...window, cost: 0 })
        if (remaining < 1) return yield* tooManyLogins(resetSeconds)
        const { key, refusal } = yield* Effect.tapError(
          enter(`Bearer ${secret}`, atLogin, { remoteAddress: address }),
          ({ _tag }) => (_tag === "Unauthorized" ? takeWindow({ ...window, cost: 1 }) : Effect.void)
        )
        if (refusal !== undefined) return yield* refusal
        if (key.kind !== "account") return yield* notAccount
        return { secret, owner: key.ownerId }
      })

      const send = Effect.fnUntraced(function* (submitted: Submitted) {
        const { address, by } = submitted
        const { key, refusal } = yield* enter(`Bearer ${by.secret}`, access, { remoteAddress: address })
        const sent = refusal === undefined ? sendAs(key, submitted) : Effect.fail(refusal)
        return yield* sent.pipe(
          Effect.tap(() => Effect.sync(() => record(key, 200))),
          Effect.tapError(({ status }) => Effect.sync(() => record(key, status)))
        )
      })

      const sendAs = Effect.fnUntraced(function* (
        caller: Principal,
        submitted: Submitted
      ): Effect.fn.Return<string, Problem> {
        const { fields, onceKey, only } = yield* read(submitted)
        const { id } = yield* mail.send({ caller, fields, only, idempotencyKey: onceKey ?? undefined })
        return id
      })
      return Submissions.of({ login, send })
    })
  )
}

/** A key may do by SMTP what it may by HTTP. */
const access: Access = accessOf(SendMailApi.endpoints.sendMail, SendMailApi)
const atLogin: Access = { ...access, metering: unmetered }

const notAccount = Unauthorized.of("Log in with an account key as the password")

const tooManyLogins = (retryAfterSeconds: number) =>
  RateLimited.of(`Too many wrong passwords from your address; try again in ${retryAfterSeconds} s`, {
    retryAfterSeconds
  })

/** Shared stores may see the names of windows: no address is in them. */
const subjectOf = (address: string): string =>
  `Logins by SMTP ${hash("sha256", `smtp ${addressBlock(address)}`, "base64url").slice(0, 22)}`

/** Longer ones are read in a thread. */
const inPlaceBytes = 64 * 1024

const module = new URL("./SubmissionThread.ts", import.meta.url)

const makeReader = Effect.gen(function* () {
  const workers = yield* Workers
  const { limits } = yield* AppConfig

  const inThread = (owner: string, { bytes, ...more }: Ask): Effect.Effect<ReadSubmission, Problem> =>
    // SubmissionThread.ts is this module's other half. A thread gives buffers as `Uint8Array`.
    Effect.map(readInThread(workers, limits, { owner, module, bytes, more }), (answer) =>
      withBuffers(answer as ReadSubmission)
    )

  return Effect.fnUntraced(function* ({
    by: { owner },
    bytes,
    envelope
  }: Submitted): Effect.fn.Return<Submission, Problem> {
    const nowMillis = yield* Clock.currentTimeMillis
    const ask = { bytes, envelope, nowMillis }
    const read: ReadSubmission =
      bytes.length > inPlaceBytes ? yield* inThread(owner, ask) : yield* Effect.promise(() => inPlace(ask))
    if ("fault" in read) return yield* invalidField(read.fault.field, read.fault.text)
    return read.submission
  })
})

interface Ask extends SubmissionAsk {
  readonly bytes: Uint8Array<ArrayBuffer>
}

const inPlace = async (ask: SubmissionAsk): Promise<ReadSubmission> =>
  Result.match(await readSubmission(ask), {
    onSuccess: (submission) => ({ submission }),
    onFailure: (fault) => ({ fault })
  })

const withBuffers = (read: ReadSubmission): ReadSubmission => {
  if ("fault" in read) return read
  const { fields, ...submission } = read.submission
  const attachments = fields.attachments.map((attachment) => ({
    ...attachment,
    content: Buffer.from(attachment.content.buffer, attachment.content.byteOffset, attachment.content.length)
  }))
  return { submission: { ...submission, fields: { ...fields, attachments } } }
}
