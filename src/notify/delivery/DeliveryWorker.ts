import { isDeepStrictEqual } from "node:util"
import { Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { HostGates } from "#src/infra/gates/HostGates.ts"
import { OwnerShares } from "#src/infra/gates/OwnerShares.ts"
import { again, busy, done, type Outcome, withdrawn } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { serverUrl } from "#src/ServerUrl.ts"
import { ChannelGates, gatesOptions, throughGates } from "./ChannelGates.ts"
import { deliveries } from "./Deliveries.ts"
import { type Attempted, type DeliveryJob, makeEnds } from "./DeliveryEnds.ts"
import * as DeliveryMetrics from "./DeliveryMetrics.ts"
import * as DeliveryRows from "./DeliveryRows.ts"
import { makeExchange } from "./Exchange.ts"
import { makeMigrate } from "../telegram/ChatMoves.ts"

/**
 * Sends messages to channels. Jobs (0022) say whose turn it is, in order, once, whichever processes die; this makes the
 * attempts and says how they ended. Source: contract/notify#deliveries.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const jobs = yield* Jobs
    const gates = yield* ChannelGates
    yield* jobs.work(deliveries, {
      concurrency: limits.deliveryAttempts,
      attemptMillis: limits.deliveryAttemptMillis,
      handle: yield* makeHandle(gates, yield* serverUrl)
    })
    // Before the jobs wait for attempts under way: those that have not begun do not begin any more.
    yield* Effect.addFinalizer(() => Effect.sync(() => gates.stop()))
  })
)

/** `url`: of this server, for links */
export const makeHandle = Effect.fnUntraced(function* (gates: HostGates, url: string) {
  const { limits } = yield* AppConfig
  const metrics = yield* DeliveryMetrics.make
  const ends = yield* makeEnds(metrics)
  const read = yield* DeliveryRows.make(url)
  const exchange = yield* makeExchange(metrics)
  const migrate = yield* makeMigrate
  const through = throughGates(gates, limits)
  const shares = new OwnerShares(gatesOptions(limits))

  const hasMoved = (job: DeliveryJob, { target }: DeliveryRows.DeliveryChannel) =>
    Effect.map(
      read(job.payload.message, job.lane),
      (row) => row?.channel !== undefined && !isDeepStrictEqual(row.channel.target, target)
    )

  const attempt = Effect.fnUntraced(function* (job: DeliveryJob) {
    const row = yield* read(job.payload.message, job.lane)
    // It went with the message.
    if (row === undefined) return done()
    const { channel, message, nowMillis } = row
    if (channel === undefined) return ends.dropped(job)
    const acceptedMillis = job.offeredAt.getTime()
    const expiresAtMillis = acceptedMillis + limits.deliveryMillis
    const attempted: Attempted = { job, channel, lifeMillis: expiresAtMillis - nowMillis }
    if (attempted.lifeMillis <= 0)
      return ends.given(attempted, "it was not delivered in time", { isAged: true })
    const began = performance.now()
    const { owner } = job.payload
    const sent = yield* through(
      owner,
      channel,
      shares.within(
        owner,
        exchange(channel, { ...message, deliveryId: job.id, settingsUrl: `${url}/n/me`, expiresAtMillis })
      )
    )
    if ("restMillis" in sent) return (sent.isBusy ? busy : withdrawn)(sent.restMillis)
    if (sent.isBusy) return busy(limits.deliveryPauseMillis)
    if (sent.verdict._tag === "Delivered")
      metrics.arrived(nowMillis - acceptedMillis + performance.now() - began)
    // The browser has subscribed anew while its old address answered: the message goes to the new one.
    if (sent.verdict._tag === "Gone" && (yield* hasMoved(job, channel))) return again(sent.verdict.error, 0)
    if (sent.verdict._tag === "Moved" && channel.kind === "telegram") {
      yield* migrate(channel.target.chatId, sent.verdict.chatId)
      return again(sent.verdict.error, 0)
    }
    return ends.of(attempted, sent.verdict)
  })

  return (job: DeliveryJob): Effect.Effect<Outcome> =>
    Effect.catch(attempt(job), (error: SqlError) =>
      Effect.as(
        Effect.logDebug("A delivery waits for Postgres", error.message),
        busy(limits.deliveryPauseMillis)
      )
    )
})
