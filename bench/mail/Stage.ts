import { join } from "node:path"
import { Effect, Exit, Layer, ManagedRuntime, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { requestBytes } from "#bench/harness/HttpLoad.ts"
import { probed } from "#bench/harness/Meter.ts"
import { cpuMillis, descendants } from "#bench/harness/ProcessUse.ts"
import type { Stage, StageContext } from "#bench/harness/Suite.ts"
import { AppConfig } from "#src/Config.ts"
import { start as startPostgres } from "#src/infra/postgres/EmbeddedPostgres.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { limits } from "#src/Limits.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { resetSink, startSink } from "./Sink.ts"

/** A Postgres and a relay on one core; a server of mail on the other one, for the cases that need it. */
export interface Given {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly sinkPort: number
  /** of the process that started Postgres */
  readonly stagePid: number
  readonly owner: string
  readonly key: string
}

/** The domain of signed mail. */
export const signedDomain = "bench.test"

const sentence = "The nightly backup has ended, and all of its files were checked. "

/** A mail of about 3 KB. */
export const mail = {
  from: `shop@${signedDomain}`,
  to: "ada@example.org",
  subject: "The nightly backup has ended",
  text: sentence.repeat(12),
  html: `<!doctype html><p>${sentence.repeat(12)}</p>`
}

const environmentOf = ({ databaseUrl, sinkPort }: Pick<Given, "databaseUrl" | "sinkPort">) => ({
  DATABASE_URL: databaseUrl,
  ROOMS: "accounts,mail",
  SMTP_URL: `smtp://127.0.0.1:${sinkPort}?tls=none`,
  MAIL_FROM_DOMAINS: "*",
  MAIL_RATE_PER_MINUTE: "10000000",
  MAIL_PER_DAY: "1000000000"
})

/** Statements beside those of the server. */
export const onPostgres = <A>(
  { databaseUrl }: Pick<Given, "databaseUrl">,
  run: Effect.Effect<A, SqlError, SqlClient>
): Promise<A> => {
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })
  return Effect.runPromise(Effect.provide(run, Layer.provide(Postgres.layer, config)))
}

/** Starts a server with no mail but that which the case makes. */
export const withServer = async <A>(given: Given, use: (server: ServerProcess) => Promise<A>): Promise<A> => {
  await clear(given)
  await resetSink(given.sinkPort)
  const server = await startServer({
    dataDir: given.dataDir,
    env: { ...environmentOf(given), ...probed() }
  })
  try {
    move(server.pid(), serverCore)
    return await use(server)
  } finally {
    await server.dispose()
  }
}

/** Removes all mail. */
export const clear = (given: Pick<Given, "databaseUrl">) =>
  onPostgres(
    given,
    Effect.flatMap(
      SqlClient,
      (sql) => sql`TRUNCATE mail_messages, mail_deliveries, mail_attempts, jobs, jobs_ended, job_lanes`
    )
  )

/** Counts the deliveries that the relay has taken, as their rows say, over a connection of its own. */
export const withSentCount = async <A>(
  { databaseUrl }: Given,
  use: (count: () => Promise<number>) => Promise<A>
): Promise<A> => {
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })
  const runtime = ManagedRuntime.make(Layer.provide(Postgres.layer, config))
  const counted = Effect.flatMap(
    SqlClient,
    (sql) => sql<{ count: number }>`SELECT count(*)::int AS count FROM mail_deliveries WHERE status = 'sent'`
  )
  try {
    return await use(async () => (await runtime.runPromise(counted))[0]?.count ?? 0)
  } finally {
    await runtime.dispose()
  }
}

/** `POST /send` as bytes. */
export const sendRequest = ({ key }: Given, changes: object = {}): Uint8Array =>
  requestBytes(
    "POST",
    "/send",
    { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    JSON.stringify({ ...mail, ...changes })
  )

export const portOf = ({ url }: Pick<ServerProcess, "url">): number => Number(new URL(url).port)

/** CPU time so far of Postgres and of the relay, which is little beside it; `pid`: of the server. */
export const postgresMillis = (stagePid: number, pid: number): number => {
  const others = new Set([pid, process.pid, stagePid])
  return descendants(stagePid)
    .filter((one) => !others.has(one))
    .reduce((sum, one) => sum + cpuMillis(one), 0)
}

/** The administrator's key, and a domain of theirs that is signed. */
const prepared = async (given: Pick<Given, "databaseUrl" | "dataDir" | "sinkPort">) => {
  const server = await startServer({ dataDir: given.dataDir, env: environmentOf(given) })
  try {
    const json = { name: "bench", kind: "account", rate_limit_per_minute: 1_000_000 }
    const made = await ask(server, "POST", "/api/v1/keys", { json })
    const domain = textAt(
      await ask(server, "POST", "/api/v1/emails/domains", { json: { name: signedDomain } }),
      "id"
    )
    // Nothing is published: it is taken to have been looked up.
    const owner = await onPostgres(
      given,
      Effect.flatMap(SqlClient, (sql) =>
        Effect.map(
          sql<{
            user_id: string
          }>`UPDATE mail_domains SET verified_at = now(), looked_up_at = now() + interval '1 day'
            WHERE id = ${domain} RETURNING user_id`,
          ([row]) => row?.user_id ?? ""
        )
      )
    )
    return { owner, key: textAt(made, "key") }
  } finally {
    await server.dispose()
  }
}

export const stage = async ({ directory }: StageContext): Promise<Stage<Given>> => {
  const scope = Effect.runSync(Scope.make())
  const stops: Array<() => Promise<unknown>> = [() => Effect.runPromise(Scope.close(scope, Exit.void))]
  const leave = async (): Promise<void> => {
    for (const stop of stops.toReversed()) await stop()
  }
  try {
    const { url } = await Effect.runPromise(
      Scope.provide(startPostgres(join(directory, "postgres"), limits), scope)
    )
    const databaseUrl = Redacted.value(url)
    for (const pid of descendants(process.pid)) move(pid, clientCore)
    const sink = await startSink()
    stops.push(sink.stop)
    const given = { databaseUrl, dataDir: join(directory, "server"), sinkPort: sink.port }
    return { given: { ...given, ...(await prepared(given)), stagePid: process.pid }, leave }
  } catch (error) {
    await leave()
    throw error
  }
}
