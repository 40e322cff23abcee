import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import { move, serverCore } from "#bench/harness/Cores.ts"
import { metered } from "#bench/harness/Meter.ts"
import { type BenchCase, type CaseContext, latencyOf, sized } from "#bench/harness/Suite.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { openLoop } from "./OpenLoop.ts"
import { type Given, newKey, onPostgres, send, text } from "./Stage.ts"

/** Accepting messages, against the same rows written by a transaction that does nothing else. */
type Run = BenchCase<Given>["run"]

/** The rows of a message to all subscribers of a project, as statements on the tables alone. */
const bare = (project: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const id = newId("msg")
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind)
          SELECT ${id}, c.id, delivery_id(${id}, c.id), c.subscriber_id, c.kind
          FROM project_subscriptions s JOIN channels c ON c.subscriber_id = s.subscriber_id WHERE s.project_id = ${project}`
        yield* sql`INSERT INTO job_lanes AS l (queue, lane, due_at, waiting)
          SELECT 'bare', channel_id, now(), 1 FROM deliveries WHERE message_id = ${id} ORDER BY channel_id
          ON CONFLICT (queue, lane) DO UPDATE SET waiting = l.waiting + 1`
        yield* sql`INSERT INTO jobs (queue, lane, seq, id, payload, offered_at)
          SELECT 'bare', channel_id, nextval('job_seqs'), id, jsonb_build_object('message', message_id, 'owner', 'bench'), now()
          FROM deliveries WHERE message_id = ${id} ORDER BY id`
        yield* sql`INSERT INTO messages (id, user_id, project_id, app, message, body_bytes, body_format, priority, attachments,
            recipients, queued_for_digest, link_hash)
          VALUES (${id}, 'bench', ${project}, 'bench', ${text}, 0, 'auto', 'normal', 0, 1, 0, ${randomBytes(32)})`
      })
    )
  })

const perSecond = 200

const countOf = (context: CaseContext): number => sized(context, { tiny: 20, quick: 600, full: 4_000 })

/** Removes the messages that the case before left waiting. */
const clear = ({ databaseUrl }: Given) =>
  onPostgres(
    { databaseUrl },
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`DELETE FROM jobs WHERE queue = 'bare'`
      yield* sql`DELETE FROM job_lanes WHERE queue = 'bare'`
      // Lanes that rest belong to no worker.
      yield* sql`DELETE FROM jobs j USING job_lanes l WHERE l.queue = 'deliveries' AND l.rests_until > now() + interval '1 hour'
        AND j.queue = l.queue AND j.lane = l.lane`
      yield* sql`UPDATE job_lanes SET waiting = 0, due_at = 'infinity'
        WHERE queue = 'deliveries' AND rests_until > now() + interval '1 hour'`
    })
  )

/** A pool like the server's, on the server's core: on the other one it would share the time of Postgres. */
const pooled = async <A>(
  { databaseUrl }: Given,
  use: (run: (project: string) => Promise<void>) => Promise<A>
): Promise<A> => {
  move(process.pid, serverCore)
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })
  const runtime = ManagedRuntime.make(Layer.provide(Postgres.layer, config))
  try {
    return await use((project) => runtime.runPromise(bare(project)))
  } finally {
    await runtime.dispose()
  }
}

export const oneBare: Run = async (context) => {
  const { given } = context
  await clear(given)
  return pooled(given, async (run) => {
    for (let n = 0; n < 20; n++) await run(given.still)
    const count = countOf(context)
    const [before, startedAt] = [process.cpuUsage(), performance.now()]
    const millis = await openLoop(perSecond, count, () => run(given.still))
    const { system, user } = process.cpuUsage(before)
    return {
      work: count,
      elapsedMillis: performance.now() - startedAt,
      cpuMillis: (user + system) / 1_000,
      latency: latencyOf(millis)
    }
  })
}

export const oneSent: Run = async (context) => {
  const { given } = context
  await clear(given)
  const key = await newKey(given, given.still)
  for (let n = 0; n < 20; n++) await send(given, key)
  const count = countOf(context)
  const startedAt = performance.now()
  const { result, use } = await metered(given.pid, () => openLoop(perSecond, count, () => send(given, key)))
  return { work: count, elapsedMillis: performance.now() - startedAt, use, latency: latencyOf(result) }
}

const crowdTimes = (context: CaseContext): number => sized(context, { tiny: 1, quick: 3, full: 6 })

const timed = async (times: number, once: () => Promise<unknown>) => {
  const millis = new Float64Array(times)
  for (let n = 0; n < times; n++) {
    const startedAt = performance.now()
    await once()
    millis[n] = performance.now() - startedAt
  }
  return millis
}

export const crowdBare: Run = async (context) => {
  const { given } = context
  await clear(given)
  return pooled(given, async (run) => {
    await run(given.stillCrowd)
    const millis = await timed(crowdTimes(context), () => run(given.stillCrowd))
    const elapsedMillis = millis.reduce((sum, one) => sum + one, 0)
    return { work: millis.length * given.crowdSize, elapsedMillis, latency: latencyOf(millis) }
  })
}

export const crowdSent: Run = async (context) => {
  const { given } = context
  await clear(given)
  const key = await newKey(given, given.stillCrowd)
  await send(given, key)
  const { result: millis, use } = await metered(given.pid, () =>
    timed(crowdTimes(context), () => send(given, key))
  )
  const elapsedMillis = millis.reduce((sum, one) => sum + one, 0)
  return { work: millis.length * given.crowdSize, elapsedMillis, use, latency: latencyOf(millis) }
}
