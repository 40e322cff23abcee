import { randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Digests } from "#src/notify/digests/Digests.ts"
import { Holds } from "#src/notify/digests/Holds.ts"
import { Links } from "#src/notify/Links.ts"
import { jobsWith } from "#test/infra/jobs/JobStage.ts"
import { live } from "../Stage.ts"
import { acceptAs, heldOf, makeDue, newProject, nowOfStore, subscribeWith } from "./DigestStage.ts"

/** No worker and no sweep is here: tests make digests themselves. */
const closing = Layer.merge(Digests.layer, Holds.layer).pipe(
  Layer.provideMerge(Links.layer),
  Layer.provideMerge(Secrets.layer),
  Layer.provideMerge(jobsWith({ digestItemsAtOnce: 4 }))
)

interface Job {
  readonly lane: string
  readonly id: string
  readonly message: string
  readonly owner: string
}

/** Jobs on channels, in the order of each. */
const jobsOn = (channels: ReadonlyArray<string>) =>
  Effect.flatMap(
    SqlClient,
    (
      sql
    ) => sql<Job>`SELECT lane, id, payload ->> 'message' AS message, payload ->> 'owner' AS owner FROM jobs
      WHERE queue = 'deliveries' AND lane = ANY(${[...channels]}::text[]) ORDER BY lane, seq`
  )

const digestsOf = (subscriber: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql<{
      id: string
      items: number
      messages: ReadonlyArray<string>
    }>`SELECT id, items, messages FROM digests
      WHERE subscriber_id = ${subscriber} ORDER BY due_at, id`
  )

const close = Effect.flatMap(Digests, ({ closeDue }) => closeDue)

layer(closing, live)("a digest", (it) => {
  it.effect("is one for a subscriber, over all projects and channels, in the order of messages", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* newProject, yield* newProject]
      const { channels, id } = yield* subscribeWith([one, two], { delivery: "hourly" }, { channels: 2 })
      const messages = [yield* acceptAs(one), yield* acceptAs(two), yield* acceptAs(one)]
      assert.strictEqual(yield* close, 0)
      yield* makeDue(id)
      assert.strictEqual(yield* close, 1)
      const [digest, ...more] = yield* digestsOf(id)
      assert.isEmpty(more)
      assert.deepStrictEqual(digest?.messages, messages)
      assert.strictEqual(digest?.items, 3)
      const jobs = yield* jobsOn(channels)
      assert.deepStrictEqual(
        jobs.map(({ lane, message, owner }) => ({ lane, message, owner })),
        channels.toSorted().map((lane) => ({ lane, message: digest?.id ?? "", owner: "digests" }))
      )
      const rows = yield* heldOf(id)
      assert.isTrue(rows.every(({ dueMillis, isDropped }) => dueMillis === null && !isDropped))
      assert.strictEqual(yield* close, 0)
    })
  )

  it.effect("of one message is that message, and counts by channel", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const project = yield* newProject
      const { channels, id } = yield* subscribeWith([project], { delivery: "hourly" }, { channels: 2 })
      const first = yield* acceptAs(project)
      yield* makeDue(id)
      assert.strictEqual(yield* close, 0)
      assert.deepStrictEqual(
        (yield* jobsOn(channels)).map(({ message }) => message),
        [first, first]
      )
      // The second channel had no part in one of two.
      yield* sql`DELETE FROM jobs WHERE lane = ANY(${[...channels]}::text[])`
      const [second, third] = [yield* acceptAs(project), yield* acceptAs(project)]
      yield* sql`DELETE FROM deliveries WHERE message_id = ${second} AND channel_id = ${channels[1]!}`
      yield* makeDue(id)
      assert.strictEqual(yield* close, 1)
      const [digest] = yield* digestsOf(id)
      const made = yield* jobsOn(channels)
      assert.strictEqual(made.find(({ lane }) => lane === channels[0])?.message, digest?.id)
      assert.strictEqual(made.find(({ lane }) => lane === channels[1])?.message, third)
    })
  )

  it.effect(
    "is one for each instant that was due, in their order, and messages that come later join the next",
    () =>
      Effect.gen(function* () {
        const project = yield* newProject
        const { channels, id } = yield* subscribeWith([project], { delivery: "hourly" })
        for (const hoursAgo of [3, 2]) {
          yield* acceptAs(project)
          yield* acceptAs(project)
          yield* makeDue(id, hoursAgo * 3_600)
        }
        const later = yield* acceptAs(project)
        assert.strictEqual(yield* close, 2)
        const digests = yield* digestsOf(id)
        assert.deepStrictEqual(
          (yield* jobsOn(channels)).map(({ message }) => message),
          digests.map((digest) => digest.id)
        )
        const [held] = (yield* heldOf(id)).filter(({ dueMillis }) => dueMillis !== null)
        assert.strictEqual(held?.message, later)
      })
  )

  it.effect("has no message whose project, subscription, channel or text is gone, or was so meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [kept, deleted, left, muted] = yield* Effect.all([newProject, newProject, newProject, newProject])
      const { channels, id } = yield* subscribeWith(
        [kept!, deleted!, left!, muted!],
        { delivery: "hourly" },
        { channels: 3 }
      )
      const [on, off, returned] = channels
      const wanted = [yield* acceptAs(kept!), yield* acceptAs(kept!)]
      const gone = yield* acceptAs(kept!)
      for (const project of [deleted!, left!, muted!]) yield* acceptAs(project)
      yield* sql`DELETE FROM messages WHERE id = ${gone}`
      yield* sql`UPDATE projects SET deleted_at = now() WHERE id = ${deleted!}`
      yield* sql`DELETE FROM project_subscriptions WHERE project_id = ${left!}`
      yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id, after_seq)
        VALUES (${left!}, ${id}, nextval('job_seqs'))`
      yield* sql`UPDATE project_subscriptions SET delivery = 'muted' WHERE project_id = ${muted!}`
      yield* sql`UPDATE channels SET state = 'off' WHERE id = ${off!}`
      yield* sql`UPDATE channels SET after_seq = nextval('job_seqs') WHERE id = ${returned!}`
      yield* makeDue(id)
      assert.strictEqual(yield* close, 1)
      assert.deepStrictEqual((yield* digestsOf(id))[0]?.messages, wanted)
      assert.deepStrictEqual(
        (yield* jobsOn(channels)).map(({ lane }) => lane),
        [on!]
      )
      const rows = yield* heldOf(id)
      assert.isTrue(
        rows.every(
          ({ channel, isDropped, message }) => isDropped !== (channel === on && wanted.includes(message))
        )
      )
      assert.isTrue(rows.every(({ dueMillis }) => dueMillis === null))
    })
  )

  it.effect("of one who left is dropped", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const project = yield* newProject
      const { channels, id } = yield* subscribeWith([project], { delivery: "hourly" })
      yield* acceptAs(project)
      yield* makeDue(id)
      yield* sql`DELETE FROM subscribers WHERE id = ${id}`
      assert.strictEqual(yield* close, 0)
      assert.isEmpty(yield* jobsOn(channels))
      assert.deepInclude((yield* heldOf(id))[0], { dueMillis: null, isDropped: true })
    })
  )

  it.effect("waits for messages that are being accepted, and has them; digests of others do not wait", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [one, two] = [yield* newProject, yield* newProject]
      const busy = yield* subscribeWith([one], { delivery: "hourly" })
      const free = yield* subscribeWith([two], { delivery: "hourly" })
      for (const project of [one, two]) yield* acceptAs(project)
      const [accepted, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const accepting = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* acceptAs(one)
            yield* makeDue(busy.id)
            yield* Deferred.succeed(accepted, undefined)
            yield* Deferred.await(go)
          })
        )
      )
      yield* Deferred.await(accepted)
      yield* makeDue(free.id)
      assert.strictEqual(yield* close, 0)
      assert.lengthOf(yield* jobsOn(free.channels), 1)
      assert.isEmpty(yield* jobsOn(busy.channels))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(accepting)
      assert.strictEqual(yield* close, 1)
      assert.strictEqual((yield* digestsOf(busy.id))[0]?.items, 2)
    })
  )

  it.effect("has each message once, though several processes make it at once", () =>
    Effect.gen(function* () {
      const project = yield* newProject
      const subscribers = yield* Effect.forEach(Array.from({ length: 8 }), () =>
        subscribeWith([project], { delivery: "hourly" })
      )
      const messages = yield* Effect.forEach(Array.from({ length: 5 }), () => acceptAs(project))
      for (const { id } of subscribers) yield* makeDue(id)
      yield* Effect.all([close, close, close], { concurrency: 3 })
      yield* close
      for (const { channels, id } of subscribers) {
        const digests = yield* digestsOf(id)
        assert.deepStrictEqual(
          digests.map((digest) => digest.messages),
          [messages]
        )
        assert.lengthOf(yield* jobsOn(channels), 1)
      }
    })
  )

  it.effect("is due by Postgres's clock", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const setClock = (offset: string) =>
        sql.unsafe(`CREATE OR REPLACE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE
          AS $$ SELECT clock_timestamp() + interval '${offset}' $$`)
      const project = yield* newProject
      const { id } = yield* subscribeWith([project], { delivery: "hourly" })
      yield* acceptAs(project)
      yield* acceptAs(project)
      assert.strictEqual(yield* close, 0)
      yield* setClock("1 hour")
      assert.strictEqual(yield* close, 1)
      assert.lengthOf(yield* digestsOf(id), 1)
      // By the clock of the past the next hour is another one, whose instants are known again.
      yield* setClock("-5 hours")
      const now = yield* nowOfStore
      yield* acceptAs(project)
      const due = (yield* heldOf(id)).at(-1)?.dueMillis ?? 0
      assert.isTrue(due > now && due <= now + 3_700_000)
      yield* setClock("0 seconds")
    })
  )

  it.effect(
    "leaves nothing behind: a page long after its end, instants of schedules once they have passed",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { deleteOld } = yield* Digests
        const made = (
          id: string,
          age: string
        ) => sql`INSERT INTO digests (id, subscriber_id, due_at, link_hash, items, created_at)
        VALUES (${id}, 'sbr', now(), ${randomBytes(32)}, 2, now() - ${age}::interval)`
        const [old, young] = [newId("dig"), newId("dig")]
        yield* made(old, "456 days")
        yield* made(young, "450 days")
        yield* sql`INSERT INTO hold_instants (schedule, since, until) VALUES ('past', now() - interval '3 days', now() - interval '2 days'),
        ('present', now() - interval '3 days', now() + interval '1 hour')`
        yield* deleteOld
        const left = yield* sql<{
          id: string
        }>`SELECT id FROM digests WHERE id = ANY(${[old, young]}::text[])`
        assert.deepStrictEqual(left, [{ id: young }])
        const instants = yield* sql`SELECT schedule FROM hold_instants WHERE schedule IN ('past', 'present')`
        assert.deepStrictEqual(instants, [{ schedule: "present" }])
      })
  )
})
