import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, Problem, ServiceUnavailable, StorageFull } from "#schemas/core/Problem.ts"
import { EmailId } from "#schemas/mail/Email.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import { sourceOf } from "#src/infra/blobs/GatheredSource.ts"
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Idempotency, isIdempotencyKey } from "#src/infra/postgres/Idempotency.ts"
import type { Mailbox, MailFields } from "#streams/mail/MailFields.ts"
import { MailComposer } from "../composing/MailComposer.ts"
import * as MailMetrics from "../MailMetrics.ts"
import { mailDeliveries } from "../delivery/MailDeliveries.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"
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
        const written = yield* accept({ id, headerId, caller, fields, recipients, composed })
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
          Effect.scoped(send(sending)).pipe(
            storeAwayUntimed,
            Effect.timeoutOrElse({
              duration: limits.mailSendMillis,
              orElse: () => Effect.fail(slow)
            })
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

/** A mail that is ready to be written down. */
interface Ready extends Pick<Sending, "caller" | "fields"> {
  readonly id: string
  readonly headerId: string
  readonly recipients: ReadonlyArray<Recipient>
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
  const suppressions = yield* Suppressions
  const metrics = yield* MailMetrics.make

  return Effect.fnUntraced(function* (
    { caller, composed, fields, headerId, id, recipients: named }: Ready,
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
    const recipients = named.map((recipient) => ({ ...recipient, delivery: newId("mdl") }))
    const addresses = recipients.map(({ address }) => address)
    const suppressed = yield* suppressions.of(owner, addresses, isBulk)
    yield* sql`INSERT INTO mail_deliveries
        (id, message_id, place, user_id, kind, address, status, last_reply, next_attempt_at, ended_at)
      SELECT d.id, ${id}, d.place, ${owner}, d.kind, d.address,
        CASE d.reason WHEN '' THEN 'queued' ELSE 'suppressed' END, nullif(d.reason, ''),
        CASE d.reason WHEN '' THEN coalesce(${sendAt}::timestamptz, now()) END, CASE d.reason WHEN '' THEN NULL ELSE now() END
      FROM unnest(${recipients.map(({ delivery }) => delivery)}::text[], ${recipients.map(({ kind }) => kind)}::text[],
        ${addresses}::text[], ${addresses.map((address) => suppressed.get(address) ?? "")}::text[])
        WITH ORDINALITY AS d(id, kind, address, reason, place)`
    yield* sql.afterCommit(Effect.sync(() => suppressed.forEach(() => metrics.ended("suppressed"))))
    const due = recipients.filter(({ address }) => !suppressed.has(address))
    if (due.length === 0) return
    yield* jobs.offer(
      mailDeliveries,
      due.map(({ delivery }) => ({
        id: delivery,
        lane: delivery,
        payload: { message: id, owner },
        ...(sendAt !== null && { notBefore: sendAt })
      }))
    )
  })
})
