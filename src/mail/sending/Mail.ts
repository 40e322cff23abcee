import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Metering, Principal } from "#schemas/core/Authorization.ts"
import {
  Forbidden,
  invalidField,
  Problem,
  RateLimited,
  ServiceUnavailable,
  StorageFull
} from "#schemas/core/Problem.ts"
import { EmailId } from "#schemas/mail/Email.ts"
import { Admission } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import { sourceOf } from "#src/infra/blobs/GatheredSource.ts"
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { abandonedAfter } from "#src/infra/postgres/AbandonedAfter.ts"
import { Idempotency, isIdempotencyKey } from "#src/infra/postgres/Idempotency.ts"
import type { Mailbox, MailFields } from "#streams/mail/MailFields.ts"
import { MailComposer } from "../composing/MailComposer.ts"
import { MailDomains } from "../domains/MailDomains.ts"
import * as MailMetrics from "../MailMetrics.ts"
import { MailRoute } from "../transports/MailRoute.ts"
import { mailDeliveries } from "../delivery/MailDeliveries.ts"

/** A mail whose fields were read. */
export interface Sending {
  /** of an account key or a session */
  readonly caller: Principal
  readonly fields: MailFields
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

      const send = Effect.fn("Mail.send")(function* ({ caller, fields, idempotencyKey }: Sending) {
        if (idempotencyKey !== undefined && !isIdempotencyKey(idempotencyKey))
          return yield* invalidField("Idempotency-Key", "expected 1 to 255 characters of ASCII")
        yield* allowed(caller, fields.from.domain)
        const id = newId("eml")
        const headerId = `${id}@${fields.from.domain}`
        // Receivers distrust mail that is days old when it comes.
        const dateMillis = dueMillis(fields, yield* Clock.currentTimeMillis)
        const owner = caller.ownerId
        const composed = yield* composer.compose({ owner, fields, messageId: `<${headerId}>`, dateMillis })
        const written = yield* accept({ id, headerId, caller, fields, composed })
        const fresh = Effect.as(Effect.andThen(budget(caller, recipientsOf(fields).length), written), id)
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

const slow = ServiceUnavailable.of("The database is slow; nothing was sent")

interface Recipient extends Mailbox {
  readonly kind: "to" | "cc" | "bcc"
}

const recipientsOf = ({ bcc, cc, to }: MailFields): ReadonlyArray<Recipient> => [
  ...to.map((mailbox) => ({ ...mailbox, kind: "to" as const })),
  ...cc.map((mailbox) => ({ ...mailbox, kind: "cc" as const })),
  ...bcc.map((mailbox) => ({ ...mailbox, kind: "bcc" as const }))
]

const onceOf = ({ id, ownerId }: Principal, { attachments, ...fields }: MailFields, key: string) => ({
  scope: `mail:${id}`,
  userId: ownerId,
  key,
  request: [
    JSON.stringify(fields),
    ...attachments.flatMap(({ content, contentType, filename }) => [contentType, filename, content])
  ]
})

/** Real mail is from domains that its owner has verified; administrators may send from any. */
const makeAllowed = Effect.gen(function* () {
  const { mayTell } = yield* MailDomains
  const route = yield* MailRoute
  return Effect.fnUntraced(function* ({ ownerId, role }: Principal, domain: string) {
    if (route.name === "sandbox" || role === "admin" || (yield* mayTell(ownerId, domain))) return
    return yield* Forbidden.of(`from: ${domain} is not verified for this account`)
  })
})

/** Takes from what an owner may send: so many recipients a minute, and a day. */
const makeBudget = Effect.gen(function* () {
  const { takeFrom, takeWindow } = yield* Admission
  const { mailPerDay, mailRatePerMinute } = (yield* AppConfig).limits
  const reached = (limit: number, per: string, retryAfterSeconds: number) =>
    RateLimited.of(`Sending limit reached (${limit} recipients per ${per})`, { retryAfterSeconds })
  return Effect.fnUntraced(function* (caller: Principal, recipients: number) {
    const { refusal } = yield* takeFrom(
      { meter: { ...minute, limit: 2 * mailRatePerMinute }, cost: recipients },
      caller,
      { remoteAddress: "" }
    )
    if (refusal !== undefined) return yield* reached(mailRatePerMinute, "minute", minute.seconds / 2)
    const day = { subject: `mail:${caller.ownerId}`, limit: mailPerDay, seconds: daySeconds }
    const { allowed, resetSeconds } = yield* takeWindow({ ...day, cost: recipients })
    if (!allowed) return yield* reached(mailPerDay, "day", resetSeconds)
  })
})

/** A bucket of two minutes, so that bursts may be twice the rate. */
const minute: Omit<Metering["meter"], "limit"> = {
  name: "Mail recipients",
  per: "owner",
  shape: "bucket",
  seconds: 120
}
const daySeconds = 86_400

/** A mail that is ready to be written down. */
interface Ready extends Pick<Sending, "caller" | "fields"> {
  readonly id: string
  readonly headerId: string
  readonly composed: Buffer
}

/** Answers the transaction that accepts a mail: it, its deliveries and their jobs, and where it is long its blob. */
const makeAccept = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const blobs = yield* BlobStore
  const insert = yield* makeInsert

  return Effect.fnUntraced(function* (
    ready: Ready
  ): Effect.fn.Return<Effect.Effect<void, Problem | SqlError>, Problem, Scope.Scope> {
    const { caller, composed, fields, id } = ready
    if (composed.length <= limits.mailRowBytes) return sql.withTransaction(insert(ready, undefined))
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
        : Effect.andThen(insert(ready, blob), blobs.refer(`mail:${id}`, blob, owner))
    ).pipe(Effect.mapError(full))
  })
})

const full = <E extends { readonly _tag: string }>(fault: E | Problem): Problem =>
  fault instanceof Problem ? fault : StorageFull.of("The disk is full; nothing was sent")

const makeInsert = Effect.gen(function* () {
  const sql = yield* SqlClient
  const jobs = yield* Jobs
  const blobs = yield* BlobStore

  return Effect.fnUntraced(function* (
    { caller, composed, fields, headerId, id }: Ready,
    blob: NewBlob | undefined
  ) {
    const owner = caller.ownerId
    const { campaign, from, isBulk, sendAtMillis, subject, unsubscribeUrl } = fields
    const sendAt = sendAtMillis === null ? null : new Date(sendAtMillis)
    yield* sql`INSERT INTO mail_messages ${sql.insert({
      id,
      user_id: owner,
      key_id: caller.id,
      header_id: headerId,
      from_address: from.address,
      from_name: from.name,
      subject,
      campaign,
      is_bulk: isBulk,
      unsubscribe_url: unsubscribeUrl,
      size: composed.length,
      bytes: blob === undefined ? composed : null,
      store: blob === undefined ? null : blobs.id,
      sha256: blob === undefined ? null : Buffer.from(blob.sha256, "hex"),
      send_at: sendAt
    })}`
    const recipients = recipientsOf(fields).map((recipient) => ({ ...recipient, delivery: newId("mdl") }))
    yield* sql`INSERT INTO mail_deliveries (id, message_id, place, user_id, kind, address, next_attempt_at)
      SELECT d.id, ${id}, d.place, ${owner}, d.kind, d.address, coalesce(${sendAt}::timestamptz, now())
      FROM unnest(${recipients.map(({ delivery }) => delivery)}::text[], ${recipients.map(({ kind }) => kind)}::text[],
        ${recipients.map(({ address }) => address)}::text[]) WITH ORDINALITY AS d(id, kind, address, place)`
    yield* jobs.offer(
      mailDeliveries,
      recipients.map(({ delivery }) => ({
        id: delivery,
        lane: delivery,
        payload: { message: id, owner },
        ...(sendAt !== null && { notBefore: sendAt })
      }))
    )
  })
})
