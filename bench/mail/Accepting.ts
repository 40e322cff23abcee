import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { closedLoop } from "#bench/harness/ClosedLoop.ts"
import { move, serverCore } from "#bench/harness/Cores.ts"
import { answered, load as loadOf, startLoad } from "#bench/harness/HttpLoad.ts"
import { type BenchCase, latencyOf, sized } from "#bench/harness/Suite.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { clear, type Given, mail, portOf, sendRequest, withServer } from "./Stage.ts"

/** Accepting mails that are to be sent tomorrow, against the same rows written by a transaction that does nothing else. */
type Run = BenchCase<Given>["run"]

const connections = 32

const dayMillis = 86_400_000

/** As long as the composed mail of the other case. */
const composedBytes = 3_000

/** The rows of a mail to one recipient. */
const bare = ({ owner }: Given, at: Date) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [id, delivery] = [newId("eml"), newId("mdl")]
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`INSERT INTO mail_messages (id, user_id, header_id, from_address, subject, is_bulk, size, bytes, send_at)
          VALUES (${id}, ${owner}, ${id}, ${mail.from}, ${mail.subject}, false, ${composedBytes},
            ${Buffer.alloc(composedBytes, id)}, ${at})`
        yield* sql`INSERT INTO mail_deliveries (id, message_id, place, user_id, kind, address, next_attempt_at)
          VALUES (${delivery}, ${id}, 1, ${owner}, 'to', ${mail.to}, ${at})`
        yield* sql`SELECT jobs_offer('bare', ARRAY[${delivery}::text], ARRAY[${delivery}::text],
          ARRAY[${JSON.stringify({ message: id, owner })}::text], ARRAY[${at.toISOString()}::text])`
      })
    )
  })

/** By a pool like the server's, on the server's core. */
export const bareRows: Run = async (context) => {
  const { given, windowMillis } = context
  await clear(given)
  move(process.pid, serverCore)
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(given.databaseUrl) })
  const runtime = ManagedRuntime.make(Layer.provide(Postgres.layer, config))
  const at = new Date(Date.now() + dayMillis)
  const during = async (millis: number): Promise<Array<number>> => {
    const took: Array<number> = []
    const end = performance.now() + millis
    const one = async (): Promise<void> => {
      for (let began = performance.now(); began < end; began = performance.now()) {
        await runtime.runPromise(bare(given, at))
        took.push(performance.now() - began)
      }
    }
    await Promise.all(Array.from({ length: connections }, one))
    return took
  }
  try {
    await during(sized(context, { tiny: 50, quick: 2_000, full: 4_000 }))
    const [before, startedAt] = [process.cpuUsage(), performance.now()]
    const took = await during(windowMillis)
    const { system, user } = process.cpuUsage(before)
    return {
      work: took.length,
      elapsedMillis: performance.now() - startedAt,
      cpuMillis: (user + system) / 1_000,
      latency: latencyOf(Float64Array.from(took))
    }
  } finally {
    await runtime.dispose()
  }
}

/** Share of its own highest rate at which latency is measured. */
const steadyShare = 0.8

export const accepted: Run = (context) =>
  withServer(context.given, async (server) => {
    const { given, windowMillis } = context
    const request = sendRequest(given, { send_at: new Date(Date.now() + dayMillis).toISOString() })
    const common = { port: portOf(server), connections, requests: [request] }
    const running = await startLoad(common)
    const most = await closedLoop(context, { pid: server.pid(), load: running, status: "200" })
    await running.stop()
    // A comparison looks at no latency.
    if (context.parts > 1) return most
    const warmUpMillis = sized(context, { tiny: 50, full: 1_000 })
    const steady = await loadOf({
      ...common,
      durationMillis: windowMillis + warmUpMillis,
      ratePerSecond: ((most.work * 1_000) / most.elapsedMillis) * steadyShare,
      warmUpMillis
    })
    const { maxMillis, p50Millis, p99Millis } = answered(steady, "200").latency
    return {
      ...most,
      latency: { p50Millis, p99Millis, maxMillis },
      figures: { ...most.figures, "steady/s": steady.requestsPerSecond }
    }
  })
