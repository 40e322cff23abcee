import { createECDH, randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import { EgressFailed } from "#src/infra/egress/EgressError.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { JobWorker } from "#src/infra/jobs/JobWorker.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Deliveries, deliveries } from "#src/notify/delivery/Deliveries.ts"
import { makeHandle } from "#src/notify/delivery/DeliveryWorker.ts"
import { HostGates } from "#src/infra/gates/HostGates.ts"
import { gatesOptions } from "#src/notify/delivery/ChannelGates.ts"
import { VapidKey } from "#src/notify/delivery/VapidKey.ts"
import { TelegramBot } from "#src/notify/telegram/TelegramBot.ts"
import { Links } from "#src/notify/Links.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { jobsWith } from "#test/infra/jobs/JobStage.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { createLeaseLog, DeliveryModel, faultsOf, type SimulatedRequest } from "./DeliveryModel.ts"

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
  deadInARow: 3,
  deliveriesPerRedrive: 3
}

/** Asked for by `Retry-After`. */
const pauseMillis = 50

/** The attempt that a request belongs to. */
interface Attempt {
  readonly worker: string
  readonly epoch: string
  readonly repeated: boolean
}

const CurrentAttempt = Context.Reference<Attempt>("signalbox/test/CurrentAttempt", {
  defaultValue: () => ({ worker: "", epoch: "", repeated: false })
})

/** The services of all channels, and the requests that they got. */
class Services {
  readonly requests: Array<SimulatedRequest> = []
  readonly faults: Array<string> = []
  /** requests that left and have not come yet */
  underWay = 0
  isWell = false
  /** channels whose service has said that they are gone */
  private readonly gone = new Set<string>()
  /** by worker and host */
  private readonly open = new Map<string, number>()
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
        const attempt = yield* CurrentAttempt
        const { host, pathname } = new URL(url)
        const id = headers["topic"] ?? headers["webhook-id"] ?? ""
        const isFirst = !this.requests.some(({ epoch }) => epoch === attempt.epoch)
        if (isFirst && !this.isWell && this.random.chance(0.02))
          return yield* new EgressFailed({ host, kind: "busy", problem: "too many are under way" })
        const request = yield* Effect.acquireUseRelease(
          Effect.sync(() => this.enter(`${attempt.worker} ${host}`, host)),
          () => this.exchange(id, pathname.slice(1), attempt),
          (leave) => Effect.sync(leave)
        )
        const { restsUntil, status } = request
        if (status === undefined)
          return yield* new EgressFailed({ host, kind: "answer", problem: "it broke off" })
        return {
          url: String(url),
          status,
          header: (name) =>
            name === "retry-after" && restsUntil !== undefined ? String(pauseMillis / 1_000) : undefined,
          body: new Uint8Array(),
          isCut: false
        }
      })
  })

  /** Once it has left a request comes, whatever becomes of the attempt. */
  private exchange(
    id: string,
    channel: string,
    { epoch, repeated }: Attempt
  ): Effect.Effect<SimulatedRequest> {
    const [hangs, isSlow] = [!this.isWell && this.random.chance(0.02), this.random.chance(0.1)]
    const delay = this.random.below(hangs ? 450 : isSlow ? 60 : 8)
    const leaves = Effect.suspend(() => {
      this.underWay++
      return Effect.sleep(delay)
    })
    const comes = Effect.map(leaves, () => {
      this.underWay--
      const [status, atMillis] = [this.statusOf(channel), Date.now()]
      const restsUntil = status === 429 && this.random.chance(0.5) ? atMillis + pauseMillis : undefined
      const request = { id, channel, epoch, repeated, atMillis, status, restsUntil }
      this.requests.push(request)
      return request
    })
    return Effect.gen({ self: this }, function* () {
      const request = yield* Fiber.join(yield* Effect.forkDetach(comes))
      yield* Effect.sleep(this.random.below(4))
      return request
    })
  }

  private enter(place: string, host: string): () => void {
    const open = (this.open.get(place) ?? 0) + 1
    this.open.set(place, open)
    const most = host.startsWith("push") ? limits.deliveriesPerPushOrigin : limits.deliveriesPerWebhookHost
    if (open > most) this.faults.push(`${open} attempts at once at ${host}`)
    return () => void this.open.set(place, (this.open.get(place) ?? 0) - 1)
  }

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

/** Tells the lease under which a lane's attempt is made. */
class WatchedStore extends JobStore {
  readonly held = new Map<string, string>()

  override claim(...args: Parameters<JobStore["claim"]>) {
    return Effect.tap(super.claim(...args), (claimed) =>
      Effect.sync(() => claimed.forEach(({ epoch, lane }) => this.held.set(lane, epoch)))
    )
  }
}

/** A worker that can die: it renews and settles nothing more, and its attempts go on. */
const born = Effect.fnUntraced(function* (services: Services) {
  const [sql, config] = [yield* SqlClient, yield* AppConfig]
  const gates = new HostGates(gatesOptions(config.limits))
  const store = new WatchedStore(sql)
  const holder = newId("wrk")
  const handle = yield* Effect.provideService(
    makeHandle(gates, "https://signalbox.example"),
    Egress,
    services.egress
  )
  const worker = new JobWorker(
    deliveries,
    {
      concurrency: 6,
      attemptMillis: 150,
      handle: (job) =>
        Effect.provideService(handle(job), CurrentAttempt, {
          worker: holder,
          epoch: store.held.get(job.lane) ?? "",
          repeated: job.repeated
        })
    },
    { store, sql, holder, limits: config.limits }
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
const channels = Array.from(
  { length: channelCount },
  (_, n) => `chn_${n % 2 === 0 ? "push" : "webhook"}_${Math.floor(n / 2)}`
)
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
  yield* sql`TRUNCATE lease_log, jobs, jobs_ended, job_lanes, deliveries, messages, channels, project_subscriptions, subscribers, projects CASCADE`
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

/** Dead deliveries of a channel wait again, behind the others. */
const redrive = Effect.fnUntraced(function* (model: DeliveryModel, channel: string) {
  const [sql, service] = [yield* SqlClient, yield* Deliveries]
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const [last] = yield* sql<{ seq: string }>`SELECT last_value::text AS seq FROM job_seqs`
      const dead = yield* sql<{ id: string }>`SELECT e.id FROM jobs_ended e JOIN deliveries d ON d.id = e.id
        WHERE e.queue = 'deliveries' AND e.outcome = 'dead' AND e.lane = ${channel} ORDER BY e.seq`
      const redriven = yield* service.redrive("usr", { channel })
      const rows = yield* sql<{ id: string }>`SELECT id FROM jobs
        WHERE queue = 'deliveries' AND lane = ${channel} AND seq > ${last?.seq ?? "0"}::bigint`
      // The oldest ones, so many at a time; more may have died meanwhile.
      const ids = rows.map(({ id }) => id)
      assert.lengthOf(ids, redriven)
      for (const { id } of dead.slice(0, limits.deliveriesPerRedrive))
        assert.include(ids, id, "an older one stays dead")
      model.redrive(ids)
      return redriven
    })
  )
})

/** A change of settings, as the endpoints make it. */
const change = Effect.fnUntraced(function* (model: DeliveryModel, random: SeededRandom) {
  const sql = yield* SqlClient
  const n = random.below(channelCount / 2)
  const messages = [...model.accepted.values()].map(({ message }) => message)
  switch (random.below(5)) {
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
    case 3: {
      yield* redrive(model, `chn_${random.chance(0.5) ? "push" : "webhook"}_${n}`)
      break
    }
    default: {
      const seconds = random.chance(0.1) ? 80 * 3_600 : random.below(1_200) - 600
      yield* model.setClock(seconds, setClock(seconds))
    }
  }
})

const simulate = Effect.fnUntraced(function* (random: SeededRandom, seed: number) {
  const sql = yield* SqlClient
  yield* begin
  const services = new Services(random)
  const model = new DeliveryModel()
  const workers = [yield* born(services), yield* born(services)]
  for (let n = 0; n < 20; n++) {
    const message = `msg_${seed}_${n}`
    for (const { channel, id } of yield* accept(message)) model.accept(id, channel, message)
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
  const last = model.ahead + 600
  yield* model.setClock(last, setClock(last))
  const allEnd = eventually(
    "all have ended",
    Effect.map(
      sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' LIMIT 1`,
      ({ length }) => length === 0 && services.underWay === 0
    )
  )
  yield* allEnd
  for (const channel of channels) while ((yield* redrive(model, channel)) > 0);
  yield* allEnd
  yield* Effect.sleep(50)
  const faults = [...services.faults, ...(yield* faultsOf(model, services.requests, limits.jobLeaseMillis))]
  assert.isEmpty(faults, faults.join("\n"))
  assert.isAbove(model.accepted.size, 0)
  yield* Effect.forEach(workers, ({ dies }) => dies)
}, Effect.scoped)

const served = Deliveries.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Links.layer,
      VapidKey.layer,
      Layer.succeed(TelegramBot, { bot: undefined }),
      Layer.effectDiscard(createLeaseLog(limits.jobLeaseMillis))
    )
  ),
  Layer.provideMerge(Secrets.layer),
  Layer.provideMerge(jobsWith(limits))
)

layer(served, { excludeTestServices: true })("deliveries, simulated", (it) => {
  it.effect("come once and in order, whatever happens to workers, services, settings and clocks", () =>
    forSeeds(1, simulate)
  )
})
