import { createECDH, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { probed } from "#bench/harness/Meter.ts"
import { cpuMillis, descendants } from "#bench/harness/ProcessUse.ts"
import { type BenchCase, sized, type Stage, type StageContext } from "#bench/harness/Suite.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { start as startPostgres } from "#src/infra/postgres/EmbeddedPostgres.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { limits } from "#src/Limits.ts"
import { curveName } from "#streams/notify/channels/PushEncryption.ts"
import { type Answer, ask, type Asked, textAt } from "#test/harness/ApiClient.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import { releaseAt, startSink } from "./PushSink.ts"

/** The whole server on a core of its own; its Postgres and a push service on the other. */
export interface Given {
  readonly url: string
  readonly adminKey: string
  readonly pid: number
  readonly databaseUrl: string
  /** of the process that started Postgres */
  readonly stagePid: number
  readonly sinkPort: number
  readonly hangingPort: number
  /** a project with so many push channels, each of a subscriber of its own */
  readonly crowd: string
  readonly crowdSize: number
  /** as many channels, and a single one, whose messages wait */
  readonly stillCrowd: string
  readonly still: string
  /** projects with a channel each */
  readonly walkers: ReadonlyArray<string>
  /** 50 channels whose service hangs, 50 whose service answers 429 */
  readonly noisy: string
}

/** Statements beside those of the server. */
export const onPostgres = <A>(
  { databaseUrl }: Pick<Given, "databaseUrl">,
  run: Effect.Effect<A, SqlError, SqlClient>
): Promise<A> => {
  const config = AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })
  return Effect.runPromise(Effect.provide(run, Layer.provide(Postgres.layer, config)))
}

type Asking = Pick<Given, "adminKey" | "url">

export const asked = async (
  { adminKey, url }: Asking,
  path: string,
  request: Asked & { readonly method?: string } = {}
): Promise<Answer> => {
  const { method = "POST", ...rest } = request
  const answer = await ask({ url, adminKey: () => adminKey }, method, `/api/v1${path}`, rest)
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

export const newProject = async (given: Asking): Promise<string> =>
  textAt(await asked(given, "/projects", { json: { name: `Bench ${randomBytes(4).toString("hex")}` } }), "id")

/** A key of its own, whose minute of sends begins with it. */
export const newKey = async (given: Asking, ...projects: ReadonlyArray<string>): Promise<string> => {
  const json = { name: "bench", projects, rateLimitPerMinute: 6_000 }
  return textAt(await asked(given, "/project-keys", { json }), "key")
}

export const text = "The nightly backup has ended, and all of its files were checked. ".repeat(4)

/** To a project, or to all of the key's. */
export const send = async (given: Asking, key: string, project?: string): Promise<void> => {
  const json = { app: "bench", message: text, ...(project === undefined ? {} : { project }) }
  await asked(given, "/messages", { key, json })
}

/** Subscribers of a project with a browser each, at this address. The names of their endpoints count up from 0. */
export const subscribe = async (
  given: Pick<Given, "databaseUrl">,
  project: string,
  {
    address,
    count,
    rests = false
  }: { readonly address: string; readonly count: number; readonly rests?: boolean }
): Promise<void> => {
  const curve = createECDH(curveName)
  const rows = Array.from({ length: count }, (_, n) => ({
    subscriber: newId("sbr"),
    channel: newId("chn"),
    target: JSON.stringify({
      endpoint: `${address}/${project}-${n}`,
      p256dh: curve.generateKeys("base64url", "uncompressed"),
      auth: randomBytes(16).toString("base64url")
    })
  }))
  const column = (name: keyof (typeof rows)[number]) => rows.map((row) => row[name])
  const inserted = Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`INSERT INTO subscribers (id, name, token_hash)
      SELECT s, 'Bench', sha256(s::bytea) FROM unnest(${column("subscriber")}::text[]) AS s`
    yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id)
      SELECT ${project}, s FROM unnest(${column("subscriber")}::text[]) AS s`
    yield* sql`INSERT INTO channels (id, subscriber_id, kind, address, target)
      SELECT c.id, c.subscriber, 'push', c.target::jsonb ->> 'endpoint', c.target::jsonb
      FROM unnest(${column("channel")}::text[], ${column("subscriber")}::text[], ${column("target")}::text[]) AS c(id, subscriber, target)`
    if (rests)
      yield* sql`INSERT INTO job_lanes (queue, lane, due_at, waiting, rests_until)
        SELECT 'deliveries', c, 'infinity', 0, now() + interval '1 day' FROM unnest(${column("channel")}::text[]) AS c`
  })
  await onPostgres(given, inserted)
}

/** Deliveries that ended before: their rows and outcomes. Afterwards Postgres knows how large all tables are. */
const fillEnded = (given: Pick<Given, "databaseUrl">, count: number): Promise<void> =>
  onPostgres(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind)
        SELECT 'msg_' || n / 1000, 'chn_' || n, 'dlv_' || n, 'sbr_' || n, 'push' FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`INSERT INTO jobs_ended
        SELECT 'deliveries', 'chn_' || n, nextval('job_seqs'), 'dlv_' || n, 'done', 1, false, NULL,
          jsonb_build_object('message', 'msg_' || n / 1000, 'owner', 'nobody'), now(), now()
        FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`ANALYZE`
      yield* sql`CHECKPOINT`
    })
  )

/** Repeats the statement until it answers no row. */
const untilNone = (
  given: Pick<Given, "databaseUrl">,
  rows: Effect.Effect<ReadonlyArray<unknown>, SqlError, SqlClient>
) => onPostgres(given, Effect.repeat(Effect.delay(rows, 50), { while: ({ length }) => length > 0 }))

/** Waits until no delivery is due or under way. */
export const untilQuiet = (given: Pick<Given, "databaseUrl">) =>
  untilNone(
    given,
    Effect.flatMap(
      SqlClient,
      (sql) =>
        sql`SELECT 1 FROM job_lanes WHERE queue = 'deliveries' AND due_at < now() + interval '1 hour' LIMIT 1`
    )
  )

/** Takes away what waits for the channels in trouble, and ends the requests that hang. */
export const silence = (given: Pick<Given, "databaseUrl" | "hangingPort" | "noisy">) =>
  untilNone(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const lanes = sql`SELECT l.lane FROM project_subscriptions s JOIN channels c ON c.subscriber_id = s.subscriber_id
        JOIN job_lanes l ON l.queue = 'deliveries' AND l.lane = c.id WHERE s.project_id = ${given.noisy} AND l.waiting > 0`
      // Others belong to a worker until its attempt has ended.
      yield* sql`WITH free AS (${lanes} AND l.holder IS NULL FOR UPDATE OF l),
          gone AS (DELETE FROM jobs j USING free WHERE j.queue = 'deliveries' AND j.lane = free.lane)
        UPDATE job_lanes l SET waiting = 0, due_at = 'infinity' FROM free WHERE l.queue = 'deliveries' AND l.lane = free.lane`
      yield* Effect.promise(() => releaseAt(given.hangingPort))
      return yield* lanes
    })
  )

const noiseCount = 50

/** The projects of all cases, with their channels. */
const subscribed = async (
  reached: Asking & Pick<Given, "databaseUrl">,
  crowdSize: number,
  [sink, hanging, busy]: readonly [sink: number, hanging: number, busy: number]
) => {
  const pushes = `http://127.0.0.1:${sink}/push`
  const made = async (count: number, { address = pushes, rests = false } = {}): Promise<string> => {
    const project = await newProject(reached)
    await subscribe(reached, project, { address, count, rests })
    return project
  }
  const walkers: Array<string> = []
  for (let n = 0; n < Math.min(50, crowdSize / 10); n++) walkers.push(await made(1))
  const noisy = await made(noiseCount, { address: `http://127.0.0.1:${hanging}/hang` })
  await subscribe(reached, noisy, { address: `http://127.0.0.1:${busy}/busy`, count: noiseCount })
  return {
    crowd: await made(crowdSize),
    stillCrowd: await made(crowdSize, { rests: true }),
    still: await made(1, { rests: true }),
    walkers,
    noisy
  }
}

/** CPU time so far of Postgres and of the sink, which is little beside it. */
export const postgresMillis = ({ pid, stagePid }: Pick<Given, "pid" | "stagePid">): number => {
  const others = new Set([pid, process.pid, stagePid])
  return descendants(stagePid)
    .filter((one) => !others.has(one))
    .reduce((sum, one) => sum + cpuMillis(one), 0)
}

/** A push of a sentence, and the longest one that push services take; cases that only encrypt end with one of them. */
export const pushSizes = [300, 3_990] as const

/** Cases of uploads, which start a server of their own. */
export const uploadCases = { written: "write and hash", uploaded: "POST /attachments" } as const

const isAlone = (name: string): boolean =>
  Object.values<string>(uploadCases).includes(name) || pushSizes.some((bytes) => name.endsWith(`, ${bytes}`))

/** A case that asks the server. */
export const onServer =
  (run: BenchCase<Given>["run"]): BenchCase<Given | undefined>["run"] =>
  (context) => {
    const { given } = context
    if (given === undefined) throw new Error("the stage has no server")
    return run({ ...context, given })
  }

/** Some cases need none of it; their names say so. */
export const stage = async (context: StageContext): Promise<Stage<Given | undefined>> => {
  if (context.cases.every(isAlone)) return { given: undefined, leave: async () => undefined }
  const scope = Effect.runSync(Scope.make())
  const stops: Array<() => Promise<unknown>> = [() => Effect.runPromise(Scope.close(scope, Exit.void))]
  const leave = async (): Promise<void> => {
    for (const stop of stops.toReversed()) await stop()
  }
  try {
    const directory = join(context.directory, "data")
    const { url } = await Effect.runPromise(Scope.provide(startPostgres(directory, limits), scope))
    const databaseUrl = Redacted.value(url)
    for (const pid of descendants(process.pid)) move(pid, clientCore)
    const [sink, hanging, busy] = [await startSink(), await startSink(), await startSink()]
    stops.push(sink.stop, hanging.stop, busy.stop)
    const server = await startServer({
      env: {
        DATABASE_URL: databaseUrl,
        ROOMS: "accounts,notify",
        EGRESS_ALLOW: "127.0.0.1",
        NOTIFY_SANDBOX: "off",
        ...probed()
      }
    })
    stops.push(server.dispose)
    move(server.pid(), serverCore)
    const reached = { url: server.url, adminKey: server.adminKey(), databaseUrl }
    const crowdSize = sized(context, { tiny: 50, full: 10_000 })
    const projects = await subscribed(reached, crowdSize, [sink.port, hanging.port, busy.port])
    await fillEnded(reached, sized(context, { tiny: 100, quick: 50_000, full: 200_000 }))
    return {
      given: {
        ...reached,
        pid: server.pid(),
        stagePid: process.pid,
        sinkPort: sink.port,
        hangingPort: hanging.port,
        crowdSize,
        ...projects
      },
      leave
    }
  } catch (error) {
    await leave()
    throw error
  }
}
