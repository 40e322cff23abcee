import { Array, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Principal } from "#schemas/core/Authorization.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { gathering } from "#src/infra/postgres/Gathering.ts"
import type { Mailbox, MailFields } from "#streams/mail/MailFields.ts"
import { mailDeliveries } from "../delivery/MailDeliveries.ts"
import { MailGates } from "../delivery/MailGates.ts"
import * as MailMetrics from "../MailMetrics.ts"
import { makeReasons } from "../suppressions/SuppressedAddresses.ts"

export interface Recipient extends Mailbox {
  readonly kind: "to" | "cc" | "bcc"
}

/** A mail that is ready to be written down. */
export interface NewMail {
  readonly id: string
  readonly headerId: string
  readonly caller: Principal
  readonly fields: MailFields
  readonly recipients: ReadonlyArray<Recipient>
  readonly composed: Buffer
}

/** Mails that one transaction accepts. */
const mailsTogether = 32

/** A delivery for each recipient. */
const deliveriesOf = ({ caller, fields, id: message, recipients }: NewMail) => {
  const sendAt = fields.sendAtMillis === null ? undefined : new Date(fields.sendAtMillis)
  return recipients.map(({ address, kind }, index) => ({
    id: newId("mdl"),
    message,
    place: index + 1,
    owner: caller.ownerId,
    isBulk: fields.isBulk,
    kind,
    address,
    sendAt
  }))
}

type Delivery = ReturnType<typeof deliveriesOf>[number]

/** The rows of accepted mails: they, their deliveries and their jobs. */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const offer = yield* makeOffer
  const metrics = yield* MailMetrics.make
  const insertMessages = yield* makeInsertMessages
  const reasonsOf = yield* makeReasons

  const insertAll = Effect.fnUntraced(function* (
    mails: Array.NonEmptyReadonlyArray<NewMail>,
    blob?: NewBlob
  ) {
    yield* insertMessages(mails, blob)
    const recipients = mails.flatMap(deliveriesOf)
    const reasons = yield* reasonsOf(recipients)
    const deliveries = recipients.map((recipient, index) => ({ ...recipient, reason: reasons[index] ?? "" }))
    const column = (name: "id" | "message" | "owner" | "kind" | "address" | "reason") =>
      deliveries.map((delivery) => delivery[name])
    const [{ now_millis: nowMillis = 0 } = {}] = yield* sql<{
      now_millis: number
    }>`INSERT INTO mail_deliveries
        (id, message_id, place, user_id, kind, address, status, last_reply, next_attempt_at, ended_at)
      SELECT d.id, d.message, d.place, d.owner, d.kind, d.address,
        CASE d.reason WHEN '' THEN 'queued' ELSE 'suppressed' END, nullif(d.reason, ''),
        CASE d.reason WHEN '' THEN coalesce(nullif(d.send_at, '')::timestamptz, now()) END,
        CASE d.reason WHEN '' THEN NULL ELSE now() END
      FROM unnest(${column("id")}::text[], ${column("message")}::text[], ${deliveries.map(({ place }) => place)}::integer[],
        ${column("owner")}::text[], ${column("kind")}::text[], ${column("address")}::text[], ${column("reason")}::text[],
        ${deliveries.map(({ sendAt }) => sendAt?.toISOString() ?? "")}::text[])
        AS d(id, message, place, owner, kind, address, reason, send_at)
      RETURNING extract(epoch FROM jobs_now())::float8 * 1000 AS now_millis`
    const due = deliveries.filter(({ reason }) => reason === "")
    const suppressed = deliveries.length - due.length
    yield* sql.afterCommit(
      Effect.sync(() => {
        for (let n = 0; n < suppressed; n++) metrics.ended("suppressed")
      })
    )
    yield* offer(due, nowMillis)
  })

  /** Sends that come together share a transaction. A send that was given up meanwhile is not written. */
  const insertTogether = yield* gathering(
    { most: mailsTogether, atOnce: 2, millis: limits.mailSendMillis },
    (mails: Array.NonEmptyReadonlyArray<NewMail>, areWanted) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* insertAll(mails)
          if (!areWanted()) return yield* ServiceUnavailable.of("The send was given up")
          return mails.map(() => undefined)
        })
      )
  )

  return {
    /** in a transaction that it may share with others */
    insertTogether,
    /** in the caller's transaction */
    insert: (mail: NewMail, blob?: NewBlob) => insertAll([mail], blob)
  }
})

/** The jobs of deliveries. `nowMillis`: by the clock of Postgres, which those of jobs go by. */
const makeOffer = Effect.gen(function* () {
  const jobs = yield* Jobs
  const gates = yield* MailGates
  // A thousand mails to a domain that hangs would be refused one after the other, before anybody else's had a turn.
  const dueAt = ({ address, owner, sendAt }: Delivery, nowMillis: number): Date | undefined => {
    const untilTurn = sendAt === undefined ? gates.untilTurn(owner, address) : 0
    return untilTurn > 0 ? new Date(nowMillis + untilTurn) : sendAt
  }
  return (deliveries: ReadonlyArray<Delivery>, nowMillis: number) =>
    jobs.offer(
      mailDeliveries,
      deliveries.map((delivery) => {
        const { id, message, owner } = delivery
        const notBefore = dueAt(delivery, nowMillis)
        return { id, lane: id, payload: { message, owner }, ...(notBefore !== undefined && { notBefore }) }
      })
    )
})

const makeInsertMessages = Effect.gen(function* () {
  const sql = yield* SqlClient
  const blobs = yield* BlobStore
  return (mails: Array.NonEmptyReadonlyArray<NewMail>, blob: NewBlob | undefined) =>
    sql`INSERT INTO mail_messages ${sql.insert(
      Array.map(mails, ({ caller, composed, fields, headerId, id }) => ({
        id,
        user_id: caller.ownerId,
        key_id: caller.id,
        header_id: headerId,
        from_address: fields.from.address,
        from_name: fields.from.name,
        subject: fields.subject,
        campaign: fields.campaign,
        is_bulk: fields.isBulk,
        unsubscribe_url: fields.unsubscribeUrl,
        size: composed.length,
        bytes: blob === undefined ? composed : null,
        store: blob === undefined ? null : blobs.id,
        sha256: blob === undefined ? null : Buffer.from(blob.sha256, "hex"),
        send_at: fields.sendAtMillis === null ? null : new Date(fields.sendAtMillis)
      }))
    )}`
})
