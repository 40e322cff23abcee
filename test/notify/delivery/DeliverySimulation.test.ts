import { createECDH, randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import { EgressFailed } from "#src/infra/egress/EgressError.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { JobWorker } from "#src/infra/jobs/JobWorker.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { deliveries } from "#src/notify/delivery/Deliveries.ts"
import { makeHandle } from "#src/notify/delivery/DeliveryWorker.ts"
import { HostGates } from "#src/notify/delivery/HostGates.ts"
import { VapidKey } from "#src/notify/delivery/VapidKey.ts"
import { Links } from "#src/notify/Links.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"

/**
 * Deliveries against a plain model: services in trouble, workers that die or stop, settings that change and clocks that jump,
 * between any two steps. Postgres, jobs, gates and verdicts are the real ones; the services answer here.
 */
const limits = {
  jobLeaseMillis: 300,
  jobPollMillis: 20,
  jobStopMillis: 200,
  jobRetryMinMillis: 2,
  jobRetryMaxMillis: 10,
  deliveryPauseMillis: 5,
  deliveryTurnMillis: 10,
  deliveryRestMillis: 20,
  deliveriesPerPushOrigin: 3,
  deliveriesPerWebhookHost: 2,
  breakerFailures: 4,
  breakerMinMillis: 10,
  breakerMaxMillis: 40,
  deadInARow: 3
}

interface Request {
  readonly id: string
  readonly channel: string
  /** undefined: no answer came */
  readonly status: number | undefined
  readonly n: number
}

/** The services of all channels, and the requests that they got. */
class Services {
  readonly requests: Array<Request> = []
  /** channels whose service has said that they are gone */
  readonly gone = new Set<string>()
  isWell = false
  private readonly random: SeededRandom

  constructor(random: SeededRandom) {
    this.random = random
  }

  readonly egress = Egress.of({
    resolve: () => Effect.die("no simulated channel needs it"),
    connect: () => Effect.die("no simulated channel needs it"),
    open: () => Effect.void,
    check: () => Effect.void,
    isHttpAllowed: () => false,
    fetch: ({ headers = {}, url }) =>
      Effect.gen({ self: this }, function* () {
        const id = headers["topic"] ?? headers["webhook-id"] ?? ""
        const channel = new URL(url).pathname.slice(1)
        yield* Effect.sleep(this.random.below(this.random.chance(0.1) ? 60 : 8))
        const status = this.statusOf(channel)
        this.requests.push({ id, channel, status, n: this.requests.length })
        yield* Effect.sleep(this.random.below(4))
        if (status === undefined)
          return yield* new EgressFailed({ host: "service.test", kind: "answer", problem: "it broke off" })
        const retryAfter = status === 429 && this.random.chance(0.5) ? "0.01" : undefined
        return {
          url: String(url),
          status,
          header: (name) => (name === "retry-after" ? retryAfter : undefined),
          body: new Uint8Array(),
          isCut: false
        }
      })
  })

  private statusOf(channel: string): number | undefined {
    if (this.gone.has(channel)) return 410
    if (this.isWell || !this.random.chance(0.4)) return 201
    if (this.random.chance(0.05)) {
      this.gone.add(channel)
      return 410
    }
    return [500, 503, 429, 400, 413, 401, undefined][this.random.below(7)]
  }
}

/** A worker that can die: it renews and settles nothing more, and its attempts go on. */
const born = Effect.fnUntraced(function* (services: Services) {
  const [sql, config] = [yield* SqlClient, yield* AppConfig]
  const gates = new HostGates(config.limits)
  const handle = yield* Effect.provideService(
    makeHandle(gates, "https://signalbox.example"),
    Egress,
    services.egress
  )
  const worker = new JobWorker(
    deliveries,
    { concurrency: 6, attemptMillis: 150, handle },
    { store: new JobStore(sql), sql, holder: newId("wrk"), limits: config.limits }
  )
  const fibers = yield* Effect.forEach(
    [
      worker.run,
      Effect.forever(Effect.andThen(worker.renew, Effect.sleep(100))),
      Effect.forever(Effect.andThen(worker.expire, Effect.sleep(20)))
    ],
    (loop) => Effect.forkScoped(loop)
  )
  const stops = Effect.andThen(
    Effect.sync(() => gates.stop()),
    worker.stop
  )
  return { stops, dies: Fiber.interruptAll(fibers) }
})

const channelCount = 8
const project = "pjt_simulated"

/** A subscriber with two channels, a push and a webhook, all pushes at one service. */
const addSubscriber = Effect.fnUntraced(function* (n: number) {
  const sql = yield* SqlClient
  const subscriber = `sbr_${n}`
  yield* sql`INSERT INTO subscribers (id, name, token_hash) VALUES (${subscriber}, 'Ada', ${randomBytes(32)})`
  yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id) VALUES (${project}, ${subscriber})`
  for (const kind of ["push", "webhook"] as const) {
    const id = `chn_${kind}_${n}`
    const address = `https://${kind}.test/${id}`
    const target =
      kind === "push"
        ? {
            endpoint: address,
            p256dh: createECDH("prime256v1").generateKeys("base64url", "uncompressed"),
            auth: randomBytes(16).toString("base64url")
          }
        : { url: address, secret: `whsec_${randomBytes(24).toString("base64")}` }
    yield* sql`INSERT INTO channels (id, subscriber_id, kind, address, target)
      VALUES (${id}, ${subscriber}, ${kind}, ${address}, ${JSON.stringify(target)}::jsonb)`
  }
})

const begin = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* setClock(0)
  yield* sql`TRUNCATE jobs, jobs_ended, job_lanes, deliveries, messages, channels, project_subscriptions, subscribers, projects CASCADE`
  const [user] = yield* sql<{ id: string }>`INSERT INTO users (id, email, name, role)
    VALUES (${newId("usr")}, ${`${newId("x")}@example.org`}, 'Ada', 'user') RETURNING id`
  yield* sql`INSERT INTO projects (id, user_id, slug, name, description, joining, join_hash)
    VALUES (${project}, ${user?.id ?? ""}, 'p', 'P', '', 'link', ${randomBytes(32)})`
  for (let n = 0; n < channelCount / 2; n++) yield* addSubscriber(n)
})

const setClock = (seconds: number) =>
  Effect.flatMap(SqlClient, (sql) =>
    sql.unsafe(`CREATE OR REPLACE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS $$ SELECT clock_timestamp() + interval '${seconds} seconds' $$`)
  )

/** Accepts a message as a send does; answers the channels that it is for. */
const accept = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT * FROM deliveries_fan_out('usr', ${[id]}::text[], ${[project]}::text[], 1000)`
      yield* sql`INSERT INTO messages (id, user_id, project_id, app, message, body_bytes, body_format, priority, attachments,
          recipients, queued_for_digest, link_hash)
        VALUES (${id}, 'usr', ${project}, 'app', 'text', 0, 'auto', 'normal', 0, 0, 0, ${randomBytes(32)})`
      return yield* sql<{
        id: string
        channel: string
      }>`SELECT id, channel_id AS channel FROM deliveries WHERE message_id = ${id}`
    })
  )
})

/** The model: what was accepted for whom, and what may have kept it from being sent. */
interface Model {
  readonly accepted: Map<string, { readonly channel: string; readonly message: string; readonly n: number }>
  readonly deleted: Set<string>
  /** channels that were off, or whose subscriber had left, at some time */
  readonly left: Set<string>
  /** seconds by which the clock was ahead at most */
  ahead: number
}

/** A change of settings, as the endpoints make it. */
const change = Effect.fnUntraced(function* (model: Model, random: SeededRandom) {
  const sql = yield* SqlClient
  const n = random.below(channelCount / 2)
  const messages = [...model.accepted.values()].map(({ message }) => message)
  switch (random.below(4)) {
    case 0: {
      const channel = `chn_${random.chance(0.5) ? "push" : "webhook"}_${n}`
      model.left.add(channel)
      yield* sql`UPDATE channels SET state = CASE state WHEN 'off' THEN 'active' ELSE 'off' END
        WHERE id = ${channel} AND state IN ('active', 'off')`
      break
    }
    case 1: {
      for (const kind of ["push", "webhook"]) model.left.add(`chn_${kind}_${n}`)
      yield* random.chance(0.5)
        ? sql`DELETE FROM project_subscriptions WHERE subscriber_id = ${`sbr_${n}`}`
        : sql`INSERT INTO project_subscriptions (project_id, subscriber_id) VALUES (${project}, ${`sbr_${n}`}) ON CONFLICT DO NOTHING`
      break
    }
    case 2: {
      const message = messages[random.below(Math.max(messages.length, 1))]
      if (message === undefined) break
      model.deleted.add(message)
      yield* sql`DELETE FROM messages WHERE id = ${message}`
      yield* sql`DELETE FROM deliveries WHERE message_id = ${message}`
      break
    }
    default: {
      const seconds = random.chance(0.1) ? 80 * 3_600 : random.below(1_200) - 600
      model.ahead = Math.max(model.ahead, seconds)
      yield* setClock(seconds)
    }
  }
})

interface Ended {
  readonly id: string
  readonly seq: string
  readonly outcome: "done" | "dead"
  readonly repeated: boolean
  readonly last_error: string | null
  readonly isDropped: boolean | null
}

/** Everything that contradicts the model, a line each. */
const faultsOf = Effect.fnUntraced(function* (model: Model, { gone, requests }: Services) {
  const sql = yield* SqlClient
  const rows =
    yield* sql<Ended>`SELECT e.id, e.seq::text, e.outcome, e.repeated, e.last_error, d.dropped_at IS NOT NULL AS "isDropped"
    FROM jobs_ended e LEFT JOIN deliveries d ON d.id = e.id WHERE e.queue = 'deliveries'`
  const ends = new Map(rows.map((row) => [row.id, row]))
  const faults: Array<string> = []
  if (ends.size !== rows.length || rows.length !== model.accepted.size)
    faults.push(`${rows.length} outcomes of ${ends.size} deliveries, ${model.accepted.size} accepted`)
  for (const [id, { channel, message }] of model.accepted) {
    const end = ends.get(id)
    const own = requests.filter((request) => request.id === id)
    const arrivals = own.filter(({ status }) => status === 201).length
    const isDropped =
      end?.isDropped === true || (model.deleted.has(message) && end?.outcome === "done" && arrivals === 0)
    const said = `${id} on ${channel}: ${JSON.stringify(end)}, answers ${own.map(({ status }) => status).join(" ")}`
    if (end === undefined) faults.push(`no outcome: ${said}`)
    else if (arrivals > 1 && !end.repeated) faults.push(`came twice without a mark: ${said}`)
    else if (isDropped && !(model.left.has(channel) || gone.has(channel) || model.deleted.has(message)))
      faults.push(`dropped without a reason: ${said}`)
    else if (!isDropped && end.outcome === "done" && arrivals === 0) faults.push(`never came: ${said}`)
    else if (
      end.outcome === "dead" &&
      !own.some(({ status }) => status === 400 || status === 413 || status === 401) &&
      !(model.ahead > 72 * 3_600)
    )
      faults.push(`given up without a reason: ${said}`)
    else if (end.outcome === "dead" && arrivals > 0 && !end.repeated)
      faults.push(`given up though it came: ${said}`)
  }
  const last = new Map<string, number>()
  const seen = new Set<string>()
  for (const { channel, id } of requests) {
    // The attempt of a worker that had lost its lane, by its death or by the clock, may come behind its repetition.
    if (seen.has(id) && ends.get(id)?.repeated === true) continue
    seen.add(id)
    const { n } = model.accepted.get(id) ?? { n: -1 }
    if (n < (last.get(channel) ?? 0)) faults.push(`out of order on ${channel}: ${id}`)
    last.set(channel, n)
  }
  const stuck =
    yield* sql`SELECT lane FROM job_lanes WHERE queue = 'deliveries' AND (waiting <> 0 OR holder IS NOT NULL)`
  return [...faults, ...stuck.map((row) => `a lane is not free: ${JSON.stringify(row)}`)]
})

const simulate = Effect.fnUntraced(function* (random: SeededRandom, seed: number) {
  const sql = yield* SqlClient
  yield* begin
  const services = new Services(random)
  const model: Model = { accepted: new Map(), deleted: new Set(), left: new Set(), ahead: 0 }
  const workers = [yield* born(services), yield* born(services)]
  for (let n = 0; n < 20; n++) {
    const message = `msg_${seed}_${n}`
    for (const { channel, id } of yield* accept(message)) model.accepted.set(id, { channel, message, n })
    yield* Effect.sleep(random.below(20))
    if (random.chance(0.4)) yield* change(model, random)
    const which = random.below(2)
    if (random.chance(0.1)) yield* workers[which]!.dies
    else if (random.chance(0.05)) yield* Effect.andThen(workers[which]!.stops, workers[which]!.dies)
    else continue
    workers[which] = yield* born(services)
  }
  services.isWell = true
  // A clock that stays behind would hold up what was due when it was ahead.
  yield* setClock(model.ahead + 600)
  yield* eventually(
    "all have ended",
    Effect.map(sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' LIMIT 1`, ({ length }) => length === 0)
  )
  yield* Effect.sleep(50)
  const faults = yield* faultsOf(model, services)
  assert.isEmpty(faults, faults.join("\n"))
  assert.isAbove(model.accepted.size, 0)
  yield* Effect.forEach(workers, ({ dies }) => dies)
}, Effect.scoped)

const served = Layer.mergeAll(Links.layer, VapidKey.layer).pipe(
  Layer.provideMerge(Secrets.layer),
  Layer.provideMerge(TestStores.layerWith({ limits }))
)

layer(served, { excludeTestServices: true, timeout: 120_000 })("deliveries, simulated", (it) => {
  it.effect("come once and in order, whatever happens to workers, services, settings and clocks", () =>
    forSeeds(1, simulate)
  )
})
