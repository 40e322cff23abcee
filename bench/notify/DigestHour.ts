import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { metered } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import { type BenchCase, type CaseContext, latencyOf, sized } from "#bench/harness/Suite.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { notifyLimits } from "#src/notify/Limits.ts"
import { openLoop } from "./OpenLoop.ts"
import { arrivalsAt, resetSink } from "./PushSink.ts"
import { type Given, newKey, onPostgres, send, subscribe, text, untilQuiet } from "./Stage.ts"

/** An hour at which many digests are due, among many more messages that are held; and sends meanwhile. */
type Run = BenchCase<Given>["run"]

const messagesEach = 10
const perSecond = 50

const subscribersOf = (context: CaseContext): number => sized(context, { tiny: 40, full: 100_000 })
const dueOf = (context: CaseContext): number => sized(context, { tiny: 10, full: 20_000 })
const sendsOf = (context: CaseContext): number => sized(context, { tiny: 20, full: 1_500 })
/** More than it takes to make them due. */
const leadSecondsOf = (context: CaseContext): number => sized(context, { tiny: 2, full: 15 })

const projectName = "Bench of digests"

/** A project of an owner of its own: one owner's sends end with a million of their deliveries. */
const newOwnersProject = (given: Given): Promise<string> =>
  onPostgres(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [id, owner] = [newId("pjt"), newId("usr")]
      yield* sql`INSERT INTO users (id, email, name, role) VALUES (${owner}, ${`${owner}@example.org`}, 'Bench', 'user')`
      yield* sql`INSERT INTO projects (id, user_id, slug, name, description, joining, join_hash)
        VALUES (${id}, ${owner}, 'bench', 'Bench', '', 'link', sha256(${id}::bytea))`
      return id
    })
  )

/** Holds so many messages for each of a new project's subscribers, for days. */
const fillProject = async (given: Given, count: number): Promise<void> => {
  const project = await newOwnersProject(given)
  await subscribe(given, project, { address: `http://127.0.0.1:${given.sinkPort}/push`, count })
  await onPostgres(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`ANALYZE`
      const held = sql`SELECT subscriber_id FROM project_subscriptions WHERE project_id = ${project}`
      yield* sql`UPDATE subscribers SET delivery = 'daily' WHERE id IN (${held})`
      yield* sql`INSERT INTO messages (id, user_id, project_id, app, message, body_bytes, body_format, priority, attachments,
          recipients, queued_for_digest, link_hash)
        SELECT 'msg_held_' || p.id || n, p.user_id, p.id, 'bench', ${text}, 0, 'auto', 'normal', 0, 1, 1,
          sha256((p.id || n)::bytea)
        FROM projects p, generate_series(1, ${messagesEach}::integer) AS n WHERE p.id = ${project}`
      yield* sql`INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind, held_until, held_seq)
        SELECT m.id, c.id, delivery_id(m.id, c.id), c.subscriber_id, 'push', now() + interval '3 days', nextval('job_seqs')
        FROM messages m, channels c JOIN (${held}) AS h ON h.subscriber_id = c.subscriber_id WHERE m.project_id = ${project}`
      yield* sql`UPDATE projects SET description = ${projectName} WHERE id = ${project}`
    })
  )
}

/** Subscribers with a browser each, as many in a project as it may have; made once a stage. */
const fill = async (context: CaseContext<Given>): Promise<void> => {
  const { given } = context
  const found = await onPostgres(
    given,
    Effect.flatMap(SqlClient, (sql) => sql`SELECT 1 FROM projects WHERE description = ${projectName}`)
  )
  if (found.length > 0) return
  for (let left = subscribersOf(context); left > 0; left -= notifyLimits.subscribersPerProject)
    await fillProject(given, Math.min(left, notifyLimits.subscribersPerProject))
  await onPostgres(
    given,
    Effect.flatMap(SqlClient, (sql) => Effect.andThen(sql`ANALYZE`, sql`CHECKPOINT`))
  )
}

/** Has digests of so many subscribers become due in so many seconds; answers the instant, in epoch milliseconds. */
const makeDue = (given: Given, count: number, leadSeconds: number): Promise<number> =>
  onPostgres(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const rows = yield* sql<{
        millis: number
      }>`UPDATE deliveries SET held_until = (SELECT date_trunc('second', jobs_now()) + ${leadSeconds} * interval '1 second')
        WHERE subscriber_id IN (SELECT DISTINCT subscriber_id FROM (SELECT subscriber_id FROM deliveries
          WHERE held_until > now() + interval '1 day' ORDER BY subscriber_id LIMIT ${count * messagesEach}) AS q)
        RETURNING extract(epoch FROM held_until)::float8 * 1000 AS millis`
      yield* sql`CHECKPOINT`
      const [row] = rows
      if (row === undefined || rows.length !== count * messagesEach)
        throw new Error(`${rows.length} deliveries of ${count} digests`)
      return row.millis
    })
  )

const sending = async (context: CaseContext<Given>, digests: number) => {
  const { given } = context
  const { pid, sinkPort, walkers } = given
  await fill(context)
  await untilQuiet(given)
  const key = await newKey(given, ...walkers)
  const project = (n: number) => walkers[n % walkers.length] ?? ""
  for (const one of walkers) await send(given, key, one)
  await untilQuiet(given)
  await resetSink(sinkPort)
  if (digests > 0) {
    const dueMillis = await makeDue(given, digests, leadSecondsOf(context))
    await sleep(Math.max(0, dueMillis - Date.now()))
  }
  const count = sendsOf(context)
  const startedAt = performance.now()
  const beginning = performance.timeOrigin + startedAt
  let most = 0
  const watch = setInterval(() => (most = Math.max(most, residentMiB(pid))), 200)
  const { result, use } = await metered(pid, async () => {
    const [millis, arrivals] = await Promise.all([
      openLoop(perSecond, count, (n) => send(given, key, project(n))),
      arrivalsAt(sinkPort, count + digests)
    ])
    return { millis, arrivals }
  })
  clearInterval(watch)
  const ended = result.arrivals.names.flatMap((name, n) =>
    walkers.some((walker) => name.startsWith(walker)) ? [] : [result.arrivals.atMillis[n] ?? 0]
  )
  if (ended.length !== digests) throw new Error(`${ended.length} digests came, not ${digests}`)
  return {
    work: count,
    elapsedMillis: performance.now() - startedAt,
    use,
    latency: latencyOf(result.millis),
    figures: {
      "s to the last digest": (ended.reduce((last, at) => Math.max(last, at), beginning) - beginning) / 1_000,
      "most RSS MiB": most
    }
  }
}

export const sendsAlone: Run = (context) => sending(context, 0)
export const sendsBesideDigests: Run = (context) => sending(context, dueOf(context))
