import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { NotFound, type ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { Bounce } from "#schemas/mail/Bounce.ts"
import { type BounceFields, mailIdOf } from "#streams/mail/BounceJson.ts"
import { type MailReport, reportBytesMax, type ReportedRecipient } from "#streams/mail/MailReport.ts"
import { AppConfig } from "#src/Config.ts"
import { readInThread } from "#src/http/ReadInThread.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import * as MailMetrics from "../MailMetrics.ts"
import * as BounceRecords from "./BounceRecords.ts"
import type { ReadReport } from "./ReportThread.ts"
import { ReturnPaths } from "./ReturnPaths.ts"

/** Mails that came back, or were complained of. Source: contract/mail#bounces, RFC 3464, RFC 5965. */
export class Bounces extends Context.Service<
  Bounces,
  {
    /** Whether the token of a return path is of this installation. One that is forged is counted. */
    readonly takes: (token: string) => boolean
    /** Mail that came to the return path of a delivery. One that is no report changes nothing, and a forged token neither. */
    readonly received: (mail: {
      readonly token: string
      readonly raw: Uint8Array
    }) => Effect.Effect<void, ServiceUnavailable | SqlError>
    /** By the owner of the mail, with the report itself. Empty: it ends no delivery. */
    readonly reported: (
      owner: string,
      raw: Uint8Array
    ) => Effect.Effect<ReadonlyArray<Bounce>, NotFound | ServiceUnavailable | SqlError>
    /** By the owner of the mail. */
    readonly told: (owner: string, bounce: BounceFields) => Effect.Effect<Bounce, NotFound | SqlError>
  }
>()("signalbox/mail/Bounces") {
  static readonly layer = Layer.effect(
    Bounces,
    Effect.suspend(() => make)
  )
}

type Noted = readonly [delivery: BounceRecords.ReportedDelivery, recipient: ReportedRecipient]

/** The part of a report that is about one delivery: of its address, or of all that it was forwarded to. */
const ofDelivery = (
  { recipients }: MailReport,
  delivery: BounceRecords.ReportedDelivery
): ReadonlyArray<Noted> => {
  const address = delivery.address.toLowerCase()
  const own = recipients.find(({ addresses }) => addresses.includes(address))
  if (own !== undefined) return [[delivery, own]]
  // An alias of several people whom it did not reach is not at fault itself.
  const [first, ...others] = recipients
  if (first === undefined) return []
  return [[delivery, others.length > 0 && first.type === "hard" ? { ...first, type: "soft" } : first]]
}

/** The parts of a report that are about deliveries of one mail. */
const ofMail = (
  report: MailReport,
  deliveries: ReadonlyArray<BounceRecords.ReportedDelivery>
): ReadonlyArray<Noted> => {
  const [only, ...others] = deliveries
  if (only !== undefined && others.length === 0) return ofDelivery(report, only)
  return deliveries.flatMap((delivery) => {
    const address = delivery.address.toLowerCase()
    const own = report.recipients.find(({ addresses }) => addresses.includes(address))
    return own === undefined ? [] : [[delivery, own] as const]
  })
}

const module = new URL("./ReportThread.ts", import.meta.url)

/** Writes parts of reports down, as rows and as numbers. */
const makeNote = Effect.gen(function* () {
  const records = yield* BounceRecords.make
  const metrics = yield* MailMetrics.make
  return Effect.fnUntraced(function* ([delivery, recipient]: Noted): Effect.fn.Return<Bounce, SqlError> {
    const { isKnown, isSuppressed } = yield* records.note(delivery, recipient)
    if (!isKnown) metrics.bounce(recipient.type)
    return {
      message_id: delivery.message_id,
      recipient: delivery.address,
      type: recipient.type,
      known: isKnown,
      suppressed: isSuppressed
    }
  })
})

const makeReadReport = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const workers = yield* Workers
  return (owner: string, raw: Uint8Array) =>
    Effect.map(
      readInThread(workers, limits, {
        owner,
        module,
        bytes: new Uint8Array(raw.subarray(0, reportBytesMax))
      }),
      // ReportThread.ts is this module's other half.
      (answer) => (answer as ReadReport).report
    )
})

/** The deliveries of an owner that a report is about, with its parts. */
const makeFind = Effect.gen(function* () {
  const records = yield* BounceRecords.make
  const paths = yield* ReturnPaths

  const byReturnPath = Effect.fnUntraced(function* (owner: string, { returnPaths }: MailReport) {
    for (const address of returnPaths) {
      const id = paths.deliveryOf(paths.tokenOf(address) ?? "")
      const delivery = id === undefined ? undefined : yield* records.find(id)
      if (delivery?.user_id === owner) return delivery
    }
    return undefined
  })

  return Effect.fnUntraced(function* (owner: string, report: MailReport) {
    const delivery = yield* byReturnPath(owner, report)
    if (delivery !== undefined) return ofDelivery(report, delivery)
    const id = mailIdOf(report.messageId ?? "")
    return id === undefined ? [] : ofMail(report, yield* records.ofMail(id, owner))
  })
})

const make = Effect.gen(function* () {
  const records = yield* BounceRecords.make
  const paths = yield* ReturnPaths
  const metrics = yield* MailMetrics.make
  const note = yield* makeNote
  const find = yield* makeFind
  const reportIn = yield* makeReadReport

  const received = Effect.fn("Bounces.received")(function* (token: string, raw: Uint8Array) {
    const id = paths.deliveryOf(token)
    if (id === undefined) return metrics.bounce("forged")
    const delivery = yield* records.find(id)
    const report = delivery && (yield* reportIn(delivery.user_id, raw))
    const parts = report === undefined || delivery === undefined ? [] : ofDelivery(report, delivery)
    if (parts.length === 0) return metrics.bounce("ignored")
    yield* Effect.forEach(parts, note, { discard: true })
  })

  return Bounces.of({
    takes: (token) => {
      const isOurs = paths.deliveryOf(token) !== undefined
      if (!isOurs) metrics.bounce("forged")
      return isOurs
    },
    received: ({ raw, token }) => received(token, raw),
    reported: Effect.fn("Bounces.reported")(function* (owner, raw) {
      const report = yield* reportIn(owner, raw)
      if (report === undefined || report.recipients.length === 0) {
        metrics.bounce("ignored")
        return []
      }
      const parts = yield* find(owner, report)
      return parts.length === 0 ? yield* notFound("Mail") : yield* Effect.forEach(parts, note)
    }),
    told: Effect.fn("Bounces.told")(function* (owner, { detail, messageId, recipient, type }) {
      const deliveries = yield* records.ofMail(messageId, owner)
      if (deliveries.length === 0) return yield* noSuchMail
      const delivery = deliveries.find(({ address }) => address.toLowerCase() === recipient)
      if (delivery === undefined) return yield* noSuchRecipient
      const end = { type, isFailed: type === "hard", detail: detail ?? `reported as ${type}` }
      return yield* note([delivery, { ...end, addresses: [recipient] }])
    })
  })
})

const noSuchMail = NotFound.of("Mail not found", { code: "mail_not_found", param: "message_id" })
const noSuchRecipient = NotFound.of("recipient: the mail has no such recipient", {
  code: "recipient_not_found",
  param: "recipient"
})
