import { Clock, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { TimeoutError } from "effect/Cause"
import type { SqlError } from "effect/sql/SqlError"
import type { MailAttempt, MailStatus } from "#schemas/mail/Email.ts"
import { Users } from "#src/accounts/Users.ts"
import { AppConfig } from "#src/Config.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import { again, busy, done, type Job, type Outcome, withdrawn } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import * as MailMetrics from "../MailMetrics.ts"
import { gathering } from "#src/infra/postgres/Gathering.ts"
import { ReturnPaths } from "../bounces/ReturnPaths.ts"
import { makeReasons } from "../suppressions/SuppressedAddresses.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"
import { saysNoMailbox } from "../transports/SmtpReply.ts"
import { MailRoute } from "../transports/MailRoute.ts"
import type { Handed } from "../transports/Transport.ts"
import * as DeliveryRecords from "./DeliveryRecords.ts"
import { mailDeliveries } from "./MailDeliveries.ts"
import { MailGates } from "./MailGates.ts"
import * as RecipientHead from "./RecipientHead.ts"

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
  /** it was written down that its last byte leaves */
  isMarked: boolean
}

/** The store is away, or a connection to it hangs. */
type StoreFault = SqlError | TimeoutError

/** Further consequences of an attempt: a copy in the inbox of the sandbox, suppressions. */
const makeConsequences = Effect.fnUntraced(function* (records: DeliveryRecords.DeliveryRecords) {
  const route = yield* MailRoute
  const inboxed = ({ head, job, row }: Turn): Effect.Effect<unknown, SqlError> =>
    route.name === "sandbox" ? records.toInbox(row, job.payload.owner, head) : Effect.void

  const { suppress } = yield* Suppressions
  /** An address that is not there gets nothing more. */
  const bounced = ({ job, row }: Turn, reply: string): Effect.Effect<void, SqlError> =>
    saysNoMailbox(reply)
      ? records.insistently(suppress(job.payload.owner, row.address, "hard_bounce", reply))
      : Effect.void
  const complained = ({ job, row }: Turn): Effect.Effect<void, SqlError> =>
    route.name === "sandbox" && /^complaint@/i.test(row.address)
      ? suppress(job.payload.owner, row.address, "complaint")
      : Effect.void
  return { bounced, complained, inboxed }
})

const turnOf = ({ attempt, isMarked, job, row }: Turn) => ({
  id: row.id,
  attempt,
  isMarked,
  jobId: job.id,
  jobAttempt: job.attempt
})

/** Ends of deliveries, as rows and as numbers. */
const makeRecorded = Effect.fnUntraced(function* (records: DeliveryRecords.DeliveryRecords) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const metrics = yield* MailMetrics.make
  const route = yield* MailRoute

  const noted = (turn: Turn, outcome: MailAttempt["outcome"], reply: string) => ({
    ...turnOf(turn),
    route: route.name,
    outcome,
    reply,
    beganMillis: turn.beganMillis
  })
  /** An end that is written in a transaction counts once that is committed. */
  const counted = (status: MailStatus, write: Effect.Effect<boolean, SqlError>) =>
    Effect.flatMap(write, (isWritten) =>
      isWritten ? sql.afterCommit(Effect.sync(() => metrics.ended(status))) : Effect.void
    )
  return {
    noted,
    /**
     * The row has its end before the job does: where this process dies between, the job's next turn finds the delivery
     * ended.
     */
    ended: (turn: Turn, outcome: MailAttempt["outcome"], status: MailStatus, reply: string) =>
      Effect.map(
        records.attempted({ ...noted(turn, outcome, reply), status, nextMillis: null }),
        (isWritten) => {
          if (isWritten) metrics.ended(status)
          return done()
        }
      ),
    endedUntried: ({ row }: Turn, status: "suppressed" | "canceled", reason: string): Outcome =>
      done(counted(status, records.endedUntried(row.id, status, reason))),
    counted,
    /** how long it may still be tried */
    leftMillis: ({ row }: Turn): number =>
      row.due_millis + limits.mailRetryHours * hourMillis - row.now_millis
  }
})

/** Consequences of a next hop that cannot be used: no attempt, so that the pauses of the recipient's own do not grow. */
const makeRests = Effect.fnUntraced(function* (records: DeliveryRecords.DeliveryRecords) {
  const { mailRestMinMillis } = (yield* AppConfig).limits
  const { ended, leftMillis } = yield* makeRecorded(records)
  return {
    down: Effect.fnUntraced(function* (turn: Turn, reply: string) {
      if (mailRestMinMillis >= leftMillis(turn)) return yield* ended(turn, "route_down", "expired", reply)
      yield* records.untried({ ...turnOf(turn), reply, nextMillis: mailRestMinMillis })
      return withdrawn(mailRestMinMillis)
    }),
    refused: (turn: Turn, { isBusy, restMillis }: Refusal): Effect.Effect<Outcome, StoreFault> => {
      if (isBusy) return Effect.succeed(busy(restMillis))
      return restMillis >= leftMillis(turn)
        ? ended(turn, "route_down", "expired", "its route was down until it was too old")
        : Effect.succeed(withdrawn(restMillis))
    }
  }
})

/** Consequences of attempts for their deliveries. */
const makeEnds = Effect.fnUntraced(function* (records: DeliveryRecords.DeliveryRecords) {
  const { mailOnUnknown } = yield* AppConfig
  const metrics = yield* MailMetrics.make
  const route = yield* MailRoute
  const { counted, ended, endedUntried, leftMillis, noted } = yield* makeRecorded(records)
  const { down, refused } = yield* makeRests(records)

  /** It is tried again, unless it is too old by then. */
  const deferred = Effect.fnUntraced(function* (turn: Turn, outcome: "deferred" | "unknown", reply: string) {
    const afterMillis = retryMillis(turn.attempt)
    if (afterMillis >= leftMillis(turn)) return yield* ended(turn, outcome, "expired", reply)
    yield* records.attempted({ ...noted(turn, outcome, reply), status: "deferred", nextMillis: afterMillis })
    return again(reply, afterMillis)
  })
  const unknown = (turn: Turn, reply: string): Effect.Effect<Outcome, StoreFault> =>
    Effect.tap(
      mailOnUnknown === "hold" ? ended(turn, "unknown", "unknown", reply) : deferred(turn, "unknown", reply),
      () => Effect.sync(metrics.unknown)
    )
  const { bounced, complained, inboxed } = yield* makeConsequences(records)

  /** The copy in the inbox is there with the end of its delivery, so that it is there once. */
  const sentToInbox = (turn: Turn, reply: string): Outcome => {
    const end = { ...noted(turn, "sent", reply), status: "sent", nextMillis: null } as const
    const recorded = counted("sent", records.attemptedWithin(end))
    return done(Effect.all([inboxed(turn), complained(turn), recorded], { discard: true }))
  }

  const of = (turn: Turn, handed: Handed): Effect.Effect<Outcome, StoreFault> => {
    switch (handed._tag) {
      case "Sent":
        return route.name === "sandbox"
          ? Effect.sync(() => sentToInbox(turn, handed.reply))
          : ended(turn, "sent", "sent", handed.reply)
      case "Bounced":
        return Effect.andThen(bounced(turn, handed.reply), ended(turn, "bounced", "bounced", handed.reply))
      case "Deferred":
        return deferred(turn, "deferred", handed.reply)
      case "Unknown":
        return Effect.andThen(inboxed(turn), unknown(turn, handed.reply))
      case "RouteDown":
      case "SenderRefused":
        return down(turn, handed.reply)
      case "Withdrawn":
        return Effect.succeed(withdrawn(0))
    }
  }
  return {
    of,
    unknown,
    refused,
    endedUntried,
    /** The store of its body, or what signs it, is away: it waits as for a next hop. */
    unreadable: (turn: Turn) => down(turn, "its body cannot be read now"),
    /**
     * An error in the program, which may come again each time: the pauses grow, and there is an end. Behind the mark the
     * message may have gone.
     */
    broken: (turn: Turn) =>
      turn.isMarked ? unknown(turn, internalError) : deferred(turn, "deferred", internalError),
    tooOld: (turn: Turn) => ended(turn, "deferred", "expired", "its body is not kept any more")
  }
})

/** Whether a user is deleted. Memory hears a moment later of one that another process has made. */
const makeIsDeleted = Effect.gen(function* () {
  const users = yield* Users
  const sql = yield* SqlClient
  return (owner: string): Effect.Effect<boolean, SqlError> =>
    users.find(owner).pipe(
      Effect.as(false),
      Effect.catchTag("NotFound", () =>
        Effect.map(
          sql`SELECT FROM users WHERE id = ${owner} AND deleted_at IS NULL`,
          ({ length }) => length === 0
        )
      )
    )
})

/** Hands a delivery's copy to the next hop. */
const makeHandOver = Effect.fnUntraced(function* (records: DeliveryRecords.DeliveryRecords) {
  const route = yield* MailRoute
  const headOf = yield* RecipientHead.make
  const metrics = yield* MailMetrics.make

  /** The parts of the copy; undefined: they are not kept any more. */
  const partsOf = Effect.fnUntraced(function* ({ job, row }: Turn) {
    const message = yield* records.messageOf(row)
    return message && ([yield* headOf(row, job.payload.owner, message), message] as const)
  })

  return Effect.fnUntraced(function* (turn: Turn, from: string) {
    const { job, row } = turn
    const parts = yield* Effect.result(partsOf(turn))
    if (Result.isFailure(parts)) {
      yield* Effect.logDebug("A mail waits for its body", parts.failure)
      return unreadable
    }
    if (parts.success === undefined) return missing
    turn.head = parts.success[0]
    const began = performance.now()
    const handed = yield* route.handOver({
      deliveryId: row.id,
      owner: job.payload.owner,
      messageId: row.message_id,
      envelope: { from, to: row.address },
      message: parts.success,
      ending: records.ending(turnOf(turn)).pipe(
        Effect.tap((isMarked) => Effect.sync(() => (turn.isMarked = isMarked))),
        // The last byte stays here. Where the mark was set nonetheless, the next turn tells of it.
        Effect.catch((error) => Effect.as(waitsForStore(error), false))
      )
    })
    metrics.attempted(performance.now() - began)
    return handed
  })
})

const waitsForStore = ({ message }: StoreFault) => Effect.logDebug("A mail waits for its store", message)

const makeHandle = Effect.gen(function* () {
  const returnPaths = yield* ReturnPaths
  const records = yield* DeliveryRecords.make
  const { limits } = yield* AppConfig
  const reasonOf = yield* gathering(DeliveryRecords.gatheringBounds(limits), yield* makeReasons)
  const isDeleted = yield* makeIsDeleted
  const handOver = yield* makeHandOver(records)
  const ends = yield* makeEnds(records)
  const gates = yield* MailGates

  const attempt = Effect.fnUntraced(function* (job: MailJob) {
    const row = yield* records.read(job.lane)
    if (row === undefined || isEnded(row.status)) return done()
    const beganMillis = yield* Clock.currentTimeMillis
    const turn: Turn = { job, row, attempt: row.attempts + 1, beganMillis, head: noHead, isMarked: false }
    // An earlier attempt was about to hand over its last byte, and its process died before the reply was written down.
    if (row.ending_attempt !== null) return yield* ends.unknown(turn, "the process died before the reply")
    const { owner } = job.payload
    if (yield* isDeleted(owner)) return ends.endedUntried(turn, "canceled", "its sender was deleted")
    const reason = yield* reasonOf({ owner, address: row.address, isBulk: row.is_bulk })
    if (reason !== undefined) return ends.endedUntried(turn, "suppressed", reason)
    const from = returnPaths.addressOf(row.id) ?? row.from_address
    const bytes = row.bytes === null ? row.size : 0
    const entrant = { owner, address: row.address, senderDomain: domainOf(from), bytes }
    const handed = yield* Effect.catchDefect(gates.through(entrant, handOver(turn, from)), (defect) =>
      Effect.as(Effect.logError("An attempt at a mail failed", defect), broken)
    )
    if ("restMillis" in handed) return yield* ends.refused(turn, handed)
    if (handed._tag === "Missing") return yield* ends.tooOld(turn)
    if (handed._tag === "Unreadable") return yield* ends.unreadable(turn)
    return yield* handed._tag === "Broken" ? ends.broken(turn) : ends.of(turn, handed)
  })

  return (job: MailJob): Effect.Effect<Outcome> =>
    Effect.catch(attempt(job), (error) => Effect.as(waitsForStore(error), withdrawn(awayMillis)))
})

/** The message is not kept any more. */
const missing = { _tag: "Missing" } as const

const unreadable = { _tag: "Unreadable" } as const

const broken = { _tag: "Broken" } as const

const internalError = "an internal error; the log of the server has it"

const domainOf = (address: string): string => address.slice(address.lastIndexOf("@") + 1).toLowerCase()

/** A copy has no headers of its own. */
const noHead = Buffer.alloc(0)

const isEnded = (status: MailStatus): boolean => !["queued", "sending", "deferred"].includes(status)
