import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { sweepSubscribers } from "#src/notify/subscribers/SubscriberSweep.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import { api, blocked, live, sent } from "../Stage.ts"
import { join, rowsOf, settingsOf, subscriber, subscription } from "./SubscriberStage.ts"

/** No worker takes what is sent to the channel until its lane is due. */
const rest = (channel: string, isResting = true) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.orDie(
      isResting
        ? sql`INSERT INTO job_lanes (queue, lane, due_at, waiting, rests_until)
            VALUES ('deliveries', ${channel}, 'infinity', 0, now() + interval '1 hour')`
        : sql`UPDATE job_lanes SET rests_until = now(), due_at = now() WHERE queue = 'deliveries' AND lane = ${channel}`
    )
  )

/** A subscriber by a browser of the sandbox, to whom so many messages wait. */
const awaiting = Effect.fnUntraced(function* (count: number) {
  const one = yield* subscriber
  const sandbox = yield* sandboxOfServer
  const { id: subscriberId, pushKey } = yield* settingsOf(one.token)
  const push = yield* Effect.promise(() => sandbox.subscribe({ applicationServerKey: pushKey }))
  yield* one.request("PATCH", `/channels/${one.channel}`, { push })
  yield* rest(one.channel)
  for (let at = 0; at < count; at++) yield* sent(one.key)
  return { ...one, push, sandbox, subscriberId }
})
type Awaiting = Effect.Success<ReturnType<typeof awaiting>>

const dropped = (channel: string) =>
  Effect.map(rowsOf(channel), (rows) => rows.filter((row) => row.dropped).length)

const marked = 2
const limits = { deliveriesDroppedAtOnce: marked, joinsPerHour: 1_000, settingsRequestsPerMinute: 100_000 }

layer(TestServer.own({ limits }), live)("settings of a subscriber", (it) => {
  const ended: Readonly<Record<string, (one: Awaiting) => Effect.Effect<Answer, never, TestServer>>> = {
    "that one leaves": ({ request }) => request("DELETE", ""),
    "where a project is left": ({ id, request }) => request("DELETE", `/projects/${id}`),
    "whose channel is removed": ({ channel, request }) => request("DELETE", `/channels/${channel}`),
    "whose channel is turned off": ({ channel, request }) =>
      request("PATCH", `/channels/${channel}`, { state: "off" }),
    "whose channel turns out to be gone": ({ channel, request }) =>
      request("POST", `/channels/${channel}/test`),
    "that an owner ends": ({ ask, id, stage, subscriberId }) =>
      ask("DELETE", `${api}/projects/${id}/subscribers/${subscriberId}`, { key: stage.key })
  }
  for (const [name, end] of Object.entries(ended))
    it.effect(`${name} wait for a delivery that ends meanwhile, and are not waited for`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const one = yield* awaiting(1)
        yield* Effect.promise(() => one.sandbox.changeSubscription(one.push.id, { state: "expired" }))
        // As a worker ends one: the channel, then the delivery.
        const ending = sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`UPDATE channels SET dead_in_a_row = 1 WHERE id = ${one.channel}`
            const request = yield* Effect.forkDetach(end(one))
            yield* eventually(
              "the request waits, or has ended",
              Effect.map(blocked("channels"), (count) => count > 0 || request.pollUnsafe() !== undefined)
            )
            yield* sql`UPDATE deliveries SET dropped_at = now() WHERE channel_id = ${one.channel}`
            return request
          })
        )
        const { json, status } = yield* Effect.flatMap(ending, Fiber.join)
        assert.strictEqual(status, 200, JSON.stringify(json))
        assert.strictEqual(yield* dropped(one.channel), 1)
      })
    )

  for (const [name, end] of Object.entries(ended))
    it.effect(`${name} do not wait for rows of deliveries`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const one = yield* awaiting(2)
        yield* Effect.promise(() => one.sandbox.changeSubscription(one.push.id, { state: "expired" }))
        const status = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM deliveries WHERE channel_id = ${one.channel} LIMIT 1 FOR UPDATE`
            return (yield* end(one)).status
          })
        )
        assert.strictEqual(status, 200)
        assert.strictEqual(yield* dropped(one.channel), 1)
      })
    )

  it.effect(
    "change while their channels and deliveries are locked: a change needs its subscriber alone",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { channel, id, key, request, subscriberId, token } = yield* awaiting(1)
        yield* request("PATCH", "", { delivery: "daily" })
        yield* sent(key)
        const statuses = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM channels WHERE id = ${channel} FOR UPDATE`
            yield* sql`SELECT 1 FROM deliveries WHERE channel_id = ${channel} AND held_until IS NULL FOR UPDATE`
            const changed = yield* request("PATCH", "", { timezone: "Asia/Tokyo" })
            const chosen = yield* request("PUT", `/projects/${id}`, { delivery: "daily" })
            return [changed.status, chosen.status]
          })
        )
        assert.deepStrictEqual(statuses, [200, 200])
        // Another change of the same subscriber is waited for, and then each has what both made.
        const answer = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM subscribers WHERE id = ${subscriberId} FOR UPDATE`
            yield* sql`UPDATE subscribers SET quiet_from = '22:00', quiet_to = '07:00' WHERE id = ${subscriberId}`
            const waiting = yield* Effect.forkDetach(request("PATCH", "", { quietTo: "22:00" }))
            yield* eventually(
              "the change waits, or has ended",
              Effect.map(blocked("subscribers"), (count) => count > 0 || waiting.pollUnsafe() !== undefined)
            )
            return waiting
          })
        )
        const { json, status } = yield* Fiber.join(answer)
        assert.strictEqual(status, 400, JSON.stringify(json))
        assert.deepInclude(yield* settingsOf(token), { quietFrom: "22:00", quietTo: "07:00" })
      })
  )

  it.effect("end in no circle, whatever changes at once", () =>
    Effect.gen(function* () {
      const { channel, id, key, link, request, token } = yield* awaiting(2)
      const changes = [
        () => request("PATCH", "", { delivery: "daily", timezone: "Asia/Tokyo" }),
        () => request("PUT", `/projects/${id}`, { delivery: "hourly" }),
        () => request("PATCH", `/channels/${channel}`, { state: "off" }),
        () => sent(key).pipe(Effect.as({ status: 201, json: {} })),
        () => request("PATCH", `/channels/${channel}`, { state: "active" }),
        () => request("PATCH", "", { delivery: "instant" }),
        () => request("DELETE", `/projects/${id}`),
        () => join(link, { push: subscription() }, token),
        () => request("PUT", `/projects/${id}`, { delivery: "inherit" })
      ]
      for (let round = 0; round < 6; round++) {
        const answers = yield* Effect.all(
          changes.map((change) => change()),
          { concurrency: changes.length }
        )
        for (const { json, status } of answers) assert.include([200, 201, 404], status, JSON.stringify(json))
      }
    })
  )

  it.effect("let two browsers take each other's addresses at once", () =>
    Effect.gen(function* () {
      const { channel, link, push, request, token } = yield* subscriber
      const second = subscription()
      yield* join(link, { push: second }, token)
      for (let round = 0; round < 10; round++) {
        const { channels } = yield* settingsOf(token)
        const other = channels.find(({ id }) => id !== channel)?.id
        const answers = yield* Effect.all(
          [
            request("PATCH", `/channels/${channel}`, { push: second }),
            request("PATCH", `/channels/${other}`, { push })
          ],
          { concurrency: 2 }
        )
        for (const { json, status } of answers) assert.include([200, 404], status, JSON.stringify(json))
        if ((yield* settingsOf(token)).channels.every(({ id }) => id !== channel)) return
        yield* request("PATCH", `/channels/${channel}`, { push })
        yield* request("POST", "/channels", { push: second })
      }
    })
  )

  const gone: Readonly<
    Record<
      string,
      readonly [
        off: (one: Awaiting) => Effect.Effect<Answer, never, TestServer>,
        on: (one: Awaiting) => Effect.Effect<Answer, never, TestServer>
      ]
    >
  > = {
    "a channel is turned off": [
      ({ channel, request }) => request("PATCH", `/channels/${channel}`, { state: "off" }),
      ({ channel, request }) => request("PATCH", `/channels/${channel}`, { state: "active" })
    ],
    "a channel is turned off, and its browser joins again": [
      ({ channel, request }) => request("PATCH", `/channels/${channel}`, { state: "off" }),
      ({ link, push, token }) => join(link, { push }, token)
    ],
    "a project is left": [
      ({ id, request }) => request("DELETE", `/projects/${id}`),
      ({ link, token }) => join(link, {}, token)
    ],
    "an owner ends a subscription": [
      ({ ask, id, stage, subscriberId }) =>
        ask("DELETE", `${api}/projects/${id}/subscribers/${subscriberId}`, { key: stage.key }),
      ({ link, token }) => join(link, {}, token)
    ]
  }
  for (const [name, [off, on]] of Object.entries(gone))
    it.effect(`drop what waits where ${name}, however much it is, also for those who come back`, () =>
      Effect.gen(function* () {
        const one = yield* awaiting(marked + 2)
        assert.strictEqual((yield* off(one)).status, 200)
        // As many as a request has time for; the others at their turn.
        assert.strictEqual(yield* dropped(one.channel), marked)
        assert.include([200, 201], (yield* on(one)).status)
        yield* rest(one.channel, false)
        yield* sent(one.key, { message: "after" })
        const sql = yield* SqlClient
        yield* eventually(
          "nothing waits",
          Effect.map(
            sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' AND lane = ${one.channel}`,
            ({ length }) => length === 0
          )
        )
        assert.strictEqual(yield* dropped(one.channel), marked + 2)
        const { entries } = yield* Effect.promise(() => one.sandbox.inbox({ channel: one.push.id }))
        assert.lengthOf(entries, 1)
        assert.include(JSON.stringify(entries[0]?.payload), "after")
      })
    )

  it.effect("are not swept while their subscriber joins", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { id, request, token } = yield* subscriber
      const { id: subscriberId } = yield* settingsOf(token)
      yield* request("DELETE", `/projects/${id}`)
      yield* Effect.orDie(sweepSubscribers)
      yield* Effect.orDie(
        sql`UPDATE subscribers SET idle_since = now() - interval '31 days' WHERE id = ${subscriberId}`
      )
      // As one who joins: the subscriber, then the subscription.
      const begins = yield* Deferred.make<void>()
      const sweep = yield* Effect.forkDetach(Effect.andThen(Deferred.await(begins), sweepSubscribers))
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`UPDATE subscribers SET name = name WHERE id = ${subscriberId}`
          yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id) VALUES (${id}, ${subscriberId})`
          yield* Deferred.succeed(begins, undefined)
          yield* eventually(
            "the sweep waits, or has ended",
            Effect.map(blocked("subscribers"), (count) => count > 0 || sweep.pollUnsafe() !== undefined)
          )
        })
      )
      yield* Fiber.join(sweep)
      assert.lengthOf((yield* settingsOf(token)).projects, 1)
    })
  )
})
