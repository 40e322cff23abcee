import { Clock, Context, Effect, Layer, type Scope } from "effect"
import type { TimeoutError } from "effect/Cause"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, Problem, ServiceUnavailable, StorageFull } from "#schemas/core/Problem.ts"
import { EmailId } from "#schemas/mail/Email.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import { sourceOf } from "#src/infra/blobs/GatheredSource.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"
import { Idempotency, isIdempotencyKey } from "#src/infra/postgres/Idempotency.ts"
import type { MailFields } from "#streams/mail/MailFields.ts"
import { MailComposer } from "../composing/MailComposer.ts"
import * as MailMetrics from "../MailMetrics.ts"
import * as MailRows from "./MailRows.ts"
import type { NewMail, Recipient } from "./MailRows.ts"
import { makeAllowed, makeBudget } from "./SendingRights.ts"

/** A mail whose fields were read. */
export interface Sending {
  /** of an account key or a session */
  readonly caller: Principal
  readonly fields: MailFields
  /** addresses in lower case: of those who are named, they alone get it; absent: all */
  readonly only?: ReadonlySet<string>
  /** as it came */
  readonly idempotencyKey: string | undefined
}

/** An accepted mail. `isReplay`: it was accepted before, under the same Idempotency-Key. */
export interface Accepted {
  readonly id: string
  readonly isReplay: boolean
}

/** Accepts mail: once this answers, each recipient gets it or is known not to, whatever dies. Source: contract/mail#sending. */
export class Mail extends Context.Service<
  Mail,
  { readonly send: (sending: Sending) => Effect.Effect<Accepted, Problem> }
>()("signalbox/mail/Mail") {
  static readonly layer = Layer.effect(
    Mail,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const composer = yield* MailComposer
      const idempotency = yield* Idempotency
      const accept = yield* makeAccept
      const budget = yield* makeBudget
      const allowed = yield* makeAllowed
      const metrics = yield* MailMetrics.make

      const send = Effect.fn("Mail.send")(function* (sending: Sending) {
        const { caller, fields, idempotencyKey } = sending
        const recipients = recipientsOf(sending)
        if (idempotencyKey !== undefined && !isIdempotencyKey(idempotencyKey))
          return yield* invalidField("Idempotency-Key", "expected 1 to 255 characters of ASCII")
        yield* allowed(caller, fields.from.domain)
        const id = newId("eml")
        const headerId = `${id}@${fields.from.domain}`
        // Receivers distrust mail that is days old when it comes.
        const dateMillis = dueMillis(fields, yield* Clock.currentTimeMillis)
        const owner = caller.ownerId
        const composed = yield* composer.compose({ owner, fields, messageId: `<${headerId}>`, dateMillis })
        const written = yield* accept(
          { id, headerId, caller, fields, recipients, composed },
          idempotencyKey === undefined
        )
        const fresh = Effect.as(Effect.andThen(budget(caller, recipients.length), written), id)
        if (idempotencyKey === undefined) {
          yield* fresh
          metrics.accepted()
          return { id, isReplay: false }
        }
        const once = { ...onceOf(caller, fields, idempotencyKey), waitMillis: limits.mailSendMillis }
        const accepted = yield* idempotency.inTransaction(once, EmailId, fresh)
        if (accepted === id) metrics.accepted()
        return { id: accepted, isReplay: accepted !== id }
      })
      return Mail.of({
        send: (sending) =>
          // A transaction on a connection that hangs is not waited for: its end hangs, too.
          abandonedAfter(storeAwayUntimed(Effect.scoped(send(sending))), limits.mailSendMillis).pipe(
            Effect.catchTag("TimeoutError", () => Effect.fail(slow))
          )
      })
    })
  )
}

/** When the first try is made. */
const dueMillis = ({ sendAtMillis }: MailFields, nowMillis: number): number =>
  Math.max(sendAtMillis ?? nowMillis, nowMillis)

const slow = ServiceUnavailable.of(
  "The database is slow; the mail may have been accepted: repeat the call with its Idempotency-Key"
)

const recipientsOf = ({ fields: { bcc, cc, to }, only }: Sending): ReadonlyArray<Recipient> =>
  [
    ...to.map((mailbox) => ({ ...mailbox, kind: "to" as const })),
    ...cc.map((mailbox) => ({ ...mailbox, kind: "cc" as const })),
    ...bcc.map((mailbox) => ({ ...mailbox, kind: "bcc" as const }))
  ].filter(({ address }) => only === undefined || only.has(address.toLowerCase()))

const onceOf = ({ id, ownerId }: Principal, { attachments, ...fields }: MailFields, key: string) => ({
  scope: `mail:${id}`,
  userId: ownerId,
  key,
  request: [
    JSON.stringify(fields),
    ...attachments.flatMap(({ content, contentType, filename }) => [contentType, filename, content])
  ]
})

const daySeconds = 86_400

/**
 * Answers the transaction that accepts a mail: it, its deliveries and their jobs, and where it is long its blob. `isAlone`:
 * it is no part of the caller's.
 */
const makeAccept = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const blobs = yield* BlobStore
  const { insert, insertTogether } = yield* MailRows.make

  return Effect.fnUntraced(function* (
    mail: NewMail,
    isAlone: boolean
  ): Effect.fn.Return<Effect.Effect<void, Problem | SqlError | TimeoutError>, Problem, Scope.Scope> {
    const { caller, composed, fields, id } = mail
    if (composed.length <= limits.mailRowBytes) return isAlone ? insertTogether(mail) : insert(mail)
    const { length } = composed
    const incoming = { userId: caller.ownerId, pool: "mail" as const, maxBytes: length, quotaBytes: null }
    const { publish, stage } = yield* Effect.mapError(blobs.staging(incoming), full)
    const staged = yield* Effect.mapError(stage(sourceOf(composed)), full)
    // A day behind its row, which a sweep makes forget it.
    const keptMillis = (limits.mailBodyDays + 1) * daySeconds * 1_000
    const expiresAt = new Date(dueMillis(fields, yield* Clock.currentTimeMillis) + keptMillis)
    const owner = { userId: caller.ownerId, pool: "mail" as const, source: "mail", expiresAt }
    return publish([staged], ([blob]) =>
      blob === undefined
        ? Effect.void
        : Effect.andThen(insert(mail, blob), blobs.refer(`mail:${id}`, blob, owner))
    ).pipe(Effect.mapError(full))
  })
})

const full = <E extends { readonly _tag: string }>(fault: E | Problem): Problem =>
  fault instanceof Problem ? fault : StorageFull.of("The disk is full; nothing was sent")
