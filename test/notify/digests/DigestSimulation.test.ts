import { randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Digests } from "#src/notify/digests/Digests.ts"
import { Holds } from "#src/notify/digests/Holds.ts"
import { Links } from "#src/notify/Links.ts"
import { makeDropWaiting } from "#src/notify/subscribers/DropWaiting.ts"
import { jobsWith } from "#test/infra/jobs/JobStage.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { type Choice, DigestModel } from "./DigestModel.ts"
import { acceptAs, settingsOf, type SubscriberSettings, writeSettings } from "./DigestStage.ts"

/**
 * Digests against a model that looks at the clock on the wall minute by minute: messages, settings that change, clocks that jump,
 * over changes of clocks. Postgres with its functions and the services are the real ones. SIMULATION_RUNS=1000 by hand.
 */

/** Both changes of a year in five zones, and one kind of its own. */
const changes = [
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00:00Z"],
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["America/Sao_Paulo", "2018-02-18T02:00:00Z"],
  ["America/Sao_Paulo", "2018-11-04T03:00:00Z"],
  ["Pacific/Chatham", "2026-04-04T14:00:00Z"],
  ["Pacific/Chatham", "2026-09-26T14:00:00Z"],
  ["Africa/Casablanca", "2026-03-22T02:00:00Z"]
] as const

const minuteMillis = 60_000
const hourMillis = 60 * minuteMillis
const projects = ["pjt_one", "pjt_two"]
const subscriberCount = 3
const steps = 40

/** The clock of Postgres stands where it was set. */
const setClock = (millis: number) =>
  Effect.flatMap(SqlClient, (sql) => sql`UPDATE simulated_clock SET at = ${new Date(millis)}`)

const withClock = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`CREATE TABLE simulated_clock (at timestamptz NOT NULL)`
    yield* sql`INSERT INTO simulated_clock VALUES (now())`
    yield* sql`CREATE OR REPLACE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS $$ SELECT at FROM simulated_clock $$`
  })
)

/** Times near what the clock shows at its change, and any others. */
const someTime = (random: SeededRandom, zone: string, change: number): string => {
  const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, timeStyle: "short" }).format(change - 1)
  const [hour = 0, minute = 0] = shown.split(":").map(Number)
  const near = hour * 60 + minute + random.below(180) - 90 + 1_440
  const chosen = random.chance(0.6) ? near : random.below(1_440)
  return new Date((chosen % 1_440) * minuteMillis).toISOString().slice(11, 16)
}

const pick = <const A>(random: SeededRandom, values: ReadonlyArray<A>): A =>
  values[random.below(values.length)]!

const someSettings = (random: SeededRandom, zone: string, change: number): SubscriberSettings => {
  const isQuiet = random.chance(0.5)
  return settingsOf({
    delivery: pick(random, ["instant", "hourly", "daily"]),
    digestAt: random.chance(0.1) ? null : someTime(random, zone, change),
    quietFrom: isQuiet ? someTime(random, zone, change) : null,
    quietTo: isQuiet ? someTime(random, zone, change) : null,
    timezone: random.chance(0.8) ? zone : pick(random, changes)[0],
    highPasses: random.chance(0.5)
  })
}

const begin = Effect.fnUntraced(function* (
  model: DigestModel,
  random: SeededRandom,
  zone: string,
  change: number
) {
  const sql = yield* SqlClient
  yield* sql`TRUNCATE jobs, jobs_ended, job_lanes, deliveries, digests, hold_instants, messages, channels, project_subscriptions,
    subscribers, projects CASCADE`
  const [user] = yield* sql<{ id: string }>`INSERT INTO users (id, email, name, role)
    VALUES ('usr_simulated', 'simulated@example.org', 'Ada', 'user') ON CONFLICT (id) DO UPDATE SET name = 'Ada' RETURNING id`
  for (const id of projects)
    yield* sql`INSERT INTO projects (id, user_id, slug, name, description, joining, join_hash)
      VALUES (${id}, ${user?.id ?? ""}, ${id.slice(4)}, 'P', '', 'link', ${randomBytes(32)})`
  for (let n = 0; n < subscriberCount; n++) {
    const id = `sbr_${n}`
    const settings = someSettings(random, zone, change)
    const channels = [`chn_${n}_0`, `chn_${n}_1`]
    yield* sql`INSERT INTO subscribers (id, name, token_hash) VALUES (${id}, 'Ada', ${randomBytes(32)})`
    yield* writeSettings(id, settings)
    for (const project of projects)
      yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id) VALUES (${project}, ${id})`
    for (const channel of channels)
      yield* sql`INSERT INTO channels (id, subscriber_id, kind, address, target)
        VALUES (${channel}, ${id}, 'push', ${channel}, '{}'::jsonb)`
    model.subscribers.set(id, {
      settings,
      choices: new Map(projects.map((project) => [project, "inherit"])),
      channels: new Map(channels.map((channel) => [channel, true]))
    })
  }
})

/** A change of settings, as the endpoints make it, in Postgres and in the model. */
const change = Effect.fnUntraced(function* (
  model: DigestModel,
  random: SeededRandom,
  {
    change: instant,
    nowMillis,
    zone
  }: { readonly change: number; readonly nowMillis: number; readonly zone: string }
) {
  const sql = yield* SqlClient
  const holds = yield* Holds
  const [id, subscriber] = pick(random, [...model.subscribers])
  const project = pick(random, projects)
  switch (random.below(4)) {
    case 0: {
      const settings = someSettings(random, zone, instant)
      yield* holds.changing(id, writeSettings(id, settings))
      subscriber.settings = settings
      return model.settle(id, nowMillis)
    }
    case 1: {
      if (!subscriber.choices.has(project)) return
      const choice = pick<Choice>(random, ["inherit", "instant", "hourly", "daily", "muted"])
      yield* holds.changing(
        id,
        sql`UPDATE project_subscriptions SET delivery = ${choice} WHERE project_id = ${project} AND subscriber_id = ${id}`
      )
      subscriber.choices.set(project, choice)
      return model.settle(id, nowMillis)
    }
    case 2: {
      if (!subscriber.choices.delete(project)) {
        yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id, after_seq)
          VALUES (${project}, ${id}, nextval('job_seqs'))`
        // To join a project changes nothing for those of others that are held.
        return void subscriber.choices.set(project, "inherit")
      }
      yield* holds.changing(
        id,
        sql`DELETE FROM project_subscriptions WHERE project_id = ${project} AND subscriber_id = ${id}`
      )
      return model.settle(id, nowMillis)
    }
    default: {
      const dropWaiting = yield* makeDropWaiting
      const [channel, isOn] = pick(random, [...subscriber.channels])
      yield* sql.withTransaction(
        isOn
          ? Effect.andThen(
              dropWaiting([channel]),
              sql`UPDATE channels SET state = 'off' WHERE id = ${channel}`
            )
          : sql`UPDATE channels SET state = 'active', after_seq = nextval('job_seqs') WHERE id = ${channel}`
      )
      if (isOn) model.turnOff(channel)
      subscriber.channels.set(channel, !isOn)
    }
  }
})

interface Row {
  readonly key: string
  readonly held: Date | null
  readonly dropped: boolean
  readonly digest: string | null
  readonly wasHeld: boolean
  readonly jobs: number
}

/** The outcome of each message on each channel, as Postgres has it. */
const outcomes = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql<Row>`SELECT d.message_id || ' ' || d.channel_id AS key, d.held_until AS held,
      d.dropped_at IS NOT NULL AS dropped, d.held_seq IS NOT NULL AS "wasHeld",
      CASE WHEN g.id IS NOT NULL THEN g.subscriber_id || ' ' || (extract(epoch FROM g.due_at) * 1000)::bigint END AS digest,
      (SELECT count(*) FROM jobs j WHERE j.id = d.id OR j.id = delivery_id(g.id, d.channel_id))::int AS jobs
    FROM deliveries d LEFT JOIN digests g ON g.id = d.digest_id WHERE d.message_id NOT LIKE 'dig%'`
  return new Map(
    rows.map(({ digest, dropped, held, jobs, key, wasHeld }) => {
      if (held !== null) return [key, jobs === 0 ? `held until ${held.toISOString()}` : "held with a job"]
      if (digest !== null) return [key, jobs === 1 ? `digest ${digest}` : `in a digest with ${jobs} jobs`]
      if (jobs === 1) return [key, wasHeld ? "alone" : "at once"]
      return [key, dropped && jobs === 0 ? "dropped" : `lost, with ${jobs} jobs`]
    })
  )
})

/** Each digest is the only one of its subscriber and instant, unless that instant came twice, and says what is in it. */
const faultsOfDigests = (isOnce: boolean) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`SELECT g.subscriber_id, g.due_at, array_agg(g.id) FROM digests g WHERE ${isOnce}
    GROUP BY 1, 2 HAVING count(*) > 1
    UNION ALL
    SELECT g.subscriber_id, g.due_at, g.messages FROM digests g WHERE EXISTS (
      SELECT FROM deliveries d WHERE d.digest_id = g.id AND NOT d.message_id = ANY (g.messages))`
  )

const simulate = Effect.fnUntraced(function* (random: SeededRandom, seed: number) {
  const digests = yield* Digests
  const sql = yield* SqlClient
  const [zone, iso] = changes[seed % changes.length]!
  const instant = Date.parse(iso)
  const model = new DigestModel()
  yield* begin(model, random, zone, instant)
  let nowMillis = instant - random.below(30 * hourMillis)
  let [latest, isOnce] = [nowMillis, true]
  yield* setClock(nowMillis)
  const messages: Array<string> = []
  for (let n = 0; n < steps; n++) {
    if (random.chance(0.5)) {
      const [project, isHigh] = [pick(random, projects), random.chance(0.2)]
      const id = `msg_${n}`
      yield* acceptAs(project, id, isHigh)
      model.accept(id, project, isHigh, nowMillis)
      messages.push(id)
    }
    if (random.chance(0.25)) yield* change(model, random, { change: instant, nowMillis, zone })
    if (random.chance(0.05) && messages.length > 0) {
      const [message] = messages.splice(random.below(messages.length), 1)
      yield* sql`DELETE FROM messages WHERE id = ${message ?? ""}`
      yield* sql`DELETE FROM deliveries WHERE message_id = ${message ?? ""}`
      model.delete(message ?? "")
    }
    // Minutes mostly; at times the clock jumps by hours, back too.
    nowMillis += random.chance(0.1)
      ? random.below(10 * hourMillis) - 3 * hourMillis
      : random.below(70 * minuteMillis)
    isOnce &&= nowMillis >= latest
    latest = Math.max(latest, nowMillis)
    yield* setClock(nowMillis)
    // A digest may be late.
    if (random.chance(0.7)) {
      yield* digests.closeDue
      model.close(nowMillis)
    }
  }
  const compare = Effect.gen(function* () {
    const [found, expected] = [yield* outcomes, model.outcomes]
    const differing = [...new Set([...found.keys(), ...expected.keys()])].flatMap((key) =>
      found.get(key) === expected.get(key) ? [] : [`${key}: ${found.get(key)}, not ${expected.get(key)}`]
    )
    assert.isEmpty(differing, differing.join("\n"))
  })
  yield* compare
  nowMillis = latest + 72 * hourMillis
  yield* setClock(nowMillis)
  yield* digests.closeDue
  model.close(nowMillis)
  yield* compare
  const faults = yield* faultsOfDigests(isOnce)
  assert.isEmpty(faults, JSON.stringify(faults))
  assert.isAbove(messages.length, 0)
})

const services = Layer.mergeAll(Digests.layer, Holds.layer, withClock).pipe(
  Layer.provideMerge(Links.layer),
  Layer.provideMerge(Secrets.layer),
  Layer.provideMerge(jobsWith({ digestItemsAtOnce: 5 }))
)

layer(services, { excludeTestServices: true, timeout: 60 * 60_000 })("digests, simulated", (it) => {
  it.effect(
    "have each message once, in the digest of the minute that the clock on the wall says",
    () => forSeeds(changes.length, simulate),
    { timeout: 60 * 60_000 }
  )
})
