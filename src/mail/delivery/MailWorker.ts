import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { MailAttempt, MailStatus } from "#schemas/mail/Email.ts"
import { AppConfig } from "#src/Config.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import { again, busy, done, type Job, type Outcome, withdrawn } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import * as MailMetrics from "../MailMetrics.ts"
import { ReturnPaths } from "../bounces/ReturnPaths.ts"
import { MailDomains } from "../domains/MailDomains.ts"
import { signedHead } from "../signing/Dkim.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"
import { saysNoMailbox } from "../transports/SmtpReply.ts"
import { MailRoute } from "../transports/MailRoute.ts"
import type { Handed } from "../transports/Transport.ts"
import { UnsubscribeTokens } from "../unsubscribe/UnsubscribeTokens.ts"
import * as DeliveryRecords from "./DeliveryRecords.ts"
import { mailDeliveries } from "./MailDeliveries.ts"
import { MailGates } from "./MailGates.ts"

type MailJob = Job<(typeof mailDeliveries)["payload"]["Type"]>

const hourMillis = 3_600_000

const minuteMillis = 60_000

/** Pauses behind the first failed attempts; the later ones last an hour. */
const firstMinutes = [1, 5, 15, 30]
const laterMinutes = 60

/** The pause behind so many failed attempts, a tenth more or less, so that those that failed together come again apart. */
const retryMillis = (failed: number, random = Math.random()): number =>
  (firstMinutes[failed - 1] ?? laterMinutes) * minuteMillis * (0.9 + 0.2 * random)

/** The pause of a delivery while Postgres is away. */
const awayMillis = 1_000

/**
 * Hands mail over. Jobs (0022) say whose turn it is, once, whichever processes die; this makes the attempts and writes down
 * what each came to. Source: contract/mail#deliveries.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const jobs = yield* Jobs
    yield* jobs.work(mailDeliveries, {
      concurrency: limits.mailAttempts,
      attemptMillis: limits.mailAttemptMillis,
      handle: yield* makeHandle
    })
    const gates = yield* MailGates
    // Before the jobs wait for attempts under way: those that have not begun do not begin any more.
    yield* Effect.addFinalizer(() => Effect.sync(gates.stop))
  })
)

/** A delivery, and the attempt at it that is under way. */
interface Turn {
  readonly job: MailJob
  readonly row: DeliveryRecords.DeliveryRow
  readonly attempt: number
  readonly beganMillis: number
  /** the headers that this recipient's copy has of its own: the signature */
  head: Uint8Array
}

/** Further consequences of an attempt: a copy in the inbox of the sandbox, suppressions. */
const makeConsequences = Effect.gen(function* () {
  const records = yield* DeliveryRecords.make
  const route = yield* MailRoute
  const inboxed = ({ head, job, row }: Turn): Effect.Effect<unknown, SqlError> =>
    route.name === "sandbox" ? records.toInbox(row, job.payload.owner, head) : Effect.void

  const { suppress } = yield* Suppressions
  /** An address that is not there gets nothing more. */
  const bounced = ({ job, row }: Turn, reply: string): Effect.Effect<void, SqlError> =>
    saysNoMailbox(reply) ? suppress(job.payload.owner, row.address, "hard_bounce", reply) : Effect.void
  const complained = ({ job, row }: Turn): Effect.Effect<void, SqlError> =>
    route.name === "sandbox" && /^complaint@/i.test(row.address)
      ? suppress(job.payload.owner, row.address, "complaint")
      : Effect.void
  return { bounced, complained, inboxed }
})

/** Ends of deliveries, as rows and as numbers. */
const makeRecorded = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const metrics = yield* MailMetrics.make
  const records = yield* DeliveryRecords.make
  const route = yield* MailRoute

  const noted = ({ attempt, beganMillis, row }: Turn, outcome: MailAttempt["outcome"], reply: string) => ({
    id: row.id,
    attempt,
    route: route.name,
    outcome,
    reply,
    beganMillis
  })
  return {
    noted,
    ended: (turn: Turn, outcome: MailAttempt["outcome"], status: MailStatus, reply: string): Outcome => {
      metrics.ended(status)
      return done(records.attempted(noted(turn, outcome, reply), status, null))
    },
    suppressed: ({ row }: Turn, reason: string): Outcome => {
      metrics.ended("suppressed")
      return done(records.suppressed(row.id, reason))
    },
    /** how long it may still be tried */
    leftMillis: ({ row }: Turn): number =>
      row.due_millis + limits.mailRetryHours * hourMillis - row.now_millis
  }
})

/** Consequences of a next hop that cannot be used: no attempt, so that the pauses of the recipient's own do not grow. */
const makeRests = Effect.gen(function* () {
  const { mailRestMinMillis } = (yield* AppConfig).limits
  const records = yield* DeliveryRecords.make
  const { ended, leftMillis } = yield* makeRecorded
  return {
    down: Effect.fnUntraced(function* (turn: Turn, reply: string) {
      if (mailRestMinMillis >= leftMillis(turn)) return ended(turn, "route_down", "expired", reply)
      yield* records.untried(turn.row.id, reply, mailRestMinMillis)
      return withdrawn(mailRestMinMillis)
    }),
    refused: (turn: Turn, { isBusy, restMillis }: Refusal): Outcome => {
      if (isBusy) return busy(restMillis)
      return restMillis >= leftMillis(turn)
        ? ended(turn, "route_down", "expired", "its route was down until it was too old")
        : withdrawn(restMillis)
    }
  }
})

/** Consequences of attempts for their deliveries. */
const makeEnds = Effect.gen(function* () {
  const { mailOnUnknown } = yield* AppConfig
  const metrics = yield* MailMetrics.make
  const records = yield* DeliveryRecords.make
  const { ended, leftMillis, noted, suppressed } = yield* makeRecorded
  const { down, refused } = yield* makeRests

  /** It is tried again, unless it is too old by then. */
  const deferred = Effect.fnUntraced(function* (turn: Turn, outcome: "deferred" | "unknown", reply: string) {
    const afterMillis = retryMillis(turn.attempt)
    if (afterMillis >= leftMillis(turn)) return ended(turn, outcome, "expired", reply)
    yield* records.attempted(noted(turn, outcome, reply), "deferred", afterMillis)
    return again(reply, afterMillis)
  })
  const unknown = (turn: Turn, reply: string): Effect.Effect<Outcome, SqlError> => {
    metrics.unknown()
    return mailOnUnknown === "hold"
      ? Effect.succeed(ended(turn, "unknown", "unknown", reply))
      : deferred(turn, "unknown", reply)
  }
  const { bounced, complained, inboxed } = yield* makeConsequences

  const of = (turn: Turn, handed: Handed): Effect.Effect<Outcome, SqlError> => {
    switch (handed._tag) {
      case "Sent": {
        metrics.ended("sent")
        const recorded = records.attempted(noted(turn, "sent", handed.reply), "sent", null)
        return Effect.succeed(
          done(Effect.all([inboxed(turn), complained(turn), recorded], { discard: true }))
        )
      }
      case "Bounced":
        return Effect.as(bounced(turn, handed.reply), ended(turn, "bounced", "bounced", handed.reply))
      case "Deferred":
        return deferred(turn, "deferred", handed.reply)
      case "Unknown":
        return Effect.andThen(inboxed(turn), unknown(turn, handed.reply))
      case "RouteDown":
        return down(turn, handed.reply)
      case "Withdrawn":
        return Effect.succeed(withdrawn(0))
    }
  }
  return {
    of,
    unknown,
    refused,
    suppressed,
    tooOld: (turn: Turn) => ended(turn, "deferred", "expired", "its body is not kept any more")
  }
})

/** The headers of one recipient's copy: the way to opt out of bulk mail, and the signature. Source: RFC 8058, RFC 6376. */
const makeHead = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const domains = yield* MailDomains
  const { pathOf } = yield* UnsubscribeTokens
  return (row: DeliveryRecords.DeliveryRow, owner: string, message: Uint8Array): Buffer => {
    const raw = Buffer.from(message.buffer, message.byteOffset, message.length)
    const keys = domains.signingKeys(owner, row.from_address.slice(row.from_address.lastIndexOf("@") + 1))
    // One click is believed of signed mail alone (RFC 8058, 4), and over https.
    const isOneClick = row.is_bulk && keys.length > 0 && baseUrl?.startsWith("https:") === true
    const url = isOneClick ? `${baseUrl}${pathOf(row.id)}` : row.unsubscribe_url
    const extra = [
      ...(url === null ? [] : [["List-Unsubscribe", `<${url}>`] as const]),
      ...(isOneClick ? [["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"] as const] : [])
    ]
    return signedHead({ raw, extra, keys })
  }
})

const makeHandle = Effect.gen(function* () {
  const returnPaths = yield* ReturnPaths
  const records = yield* DeliveryRecords.make
  const route = yield* MailRoute
  const suppressions = yield* Suppressions
  const headOf = yield* makeHead
  const ends = yield* makeEnds
  const gates = yield* MailGates
  const metrics = yield* MailMetrics.make

  const handOver = Effect.fnUntraced(function* (turn: Turn) {
    const { job, row } = turn
    const message = yield* records.messageOf(row)
    if (message === undefined) return missing
    turn.head = headOf(row, job.payload.owner, message)
    const began = performance.now()
    const handed = yield* route.handOver({
      deliveryId: row.id,
      owner: job.payload.owner,
      messageId: row.message_id,
      envelope: { from: returnPaths.addressOf(row.id) ?? row.from_address, to: row.address },
      message: [turn.head, message],
      ending: Effect.orDie(records.ending(row.id, job.attempt, turn.attempt))
    })
    metrics.attempted(performance.now() - began)
    return handed
  })

  const attempt = Effect.fnUntraced(function* (job: MailJob) {
    const row = yield* records.read(job.id)
    if (row === undefined || isEnded(row.status)) return done()
    const beganMillis = yield* Clock.currentTimeMillis
    const turn: Turn = { job, row, attempt: row.attempts + 1, beganMillis, head: noHead }
    // An earlier attempt was about to hand over its last byte, and its process died before the reply was written down.
    if (row.ending_attempt !== null) return yield* ends.unknown(turn, "the process died before the reply")
    const { owner } = job.payload
    const reason = (yield* suppressions.of(owner, [row.address], row.is_bulk)).get(row.address)
    if (reason !== undefined) return ends.suppressed(turn, reason)
    const handed = yield* gates.through({ owner, address: row.address }, handOver(turn))
    if ("restMillis" in handed) return ends.refused(turn, handed)
    return yield* handed._tag === "Missing" ? Effect.succeed(ends.tooOld(turn)) : ends.of(turn, handed)
  })

  return (job: MailJob): Effect.Effect<Outcome> =>
    Effect.catch(attempt(job), (error: SqlError | ServiceUnavailable) =>
      Effect.as(Effect.logDebug("A mail waits for its store", error.message), withdrawn(awayMillis))
    )
})

/** The message is not kept any more. */
const missing = { _tag: "Missing" } as const

/** A copy has no headers of its own. */
const noHead = Buffer.alloc(0)

const isEnded = (status: MailStatus): boolean => !["queued", "sending", "deferred"].includes(status)
