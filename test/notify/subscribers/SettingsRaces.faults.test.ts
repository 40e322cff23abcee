import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import { live, sent } from "../Stage.ts"
import { join, rowsOf, settingsOf, subscriber, subscription } from "./SubscriberStage.ts"

layer(TestServer.shared, live)("settings of a subscriber", (it) => {
  it.effect(
    "end while their subscriber joins, adds and changes: each request is carried out or refused",
    () =>
      Effect.gen(function* () {
        for (let round = 0; round < 8; round++) {
          const { channel, link, request, token } = yield* subscriber
          const answers = yield* Effect.all(
            [
              join(link, { push: subscription() }, token),
              request("POST", "/channels", { push: subscription() }),
              request("PATCH", `/channels/${channel}`, { push: subscription() }),
              Effect.andThen(Effect.sleep(round * 2), request("DELETE", "")),
              join(link, {}, token),
              request("POST", "/link"),
              request("PATCH", "", { name: "Late" })
            ],
            { concurrency: 7 }
          )
          for (const { json, status } of answers)
            assert.include([200, 201, 401, 404], status, JSON.stringify(json))
        }
      })
  )

  it.effect(
    "change while messages are accepted: each is accepted, and each delivery arrives or is dropped",
    () =>
      Effect.gen(function* () {
        const sandbox = yield* sandboxOfServer
        const { channel, id, key, request, token } = yield* subscriber
        const { pushKey } = yield* settingsOf(token)
        const push = yield* Effect.promise(() => sandbox.subscribe({ applicationServerKey: pushKey }))
        yield* request("PATCH", `/channels/${channel}`, { push })
        const changes = [
          () => request("PATCH", `/channels/${channel}`, { state: "off" }),
          () => request("PATCH", `/channels/${channel}`, { state: "active" }),
          () => request("PUT", `/projects/${id}`, { delivery: "muted" }),
          () => request("PUT", `/projects/${id}`, { delivery: "inherit" }),
          () => request("PATCH", `/channels/${channel}`, { push })
        ]
        const changing = Effect.forEach(
          Array.from({ length: 15 }),
          (_, at) => changes[at % changes.length]?.() ?? Effect.die(at)
        )
        const sending = Effect.forEach(Array.from({ length: 30 }), () => sent(key), { concurrency: 4 })
        const [changed] = yield* Effect.all([changing, sending], { concurrency: 2 })
        for (const { json, status } of changed) assert.strictEqual(status, 200, JSON.stringify(json))
        yield* Effect.all([sending, Effect.andThen(Effect.sleep(5), request("DELETE", ""))], {
          concurrency: 2
        })
        const sql = yield* SqlClient
        const waiting = Effect.orDie(
          sql`SELECT 1 FROM deliveries d JOIN jobs j ON j.queue = 'deliveries' AND j.lane = d.channel_id
          AND j.payload ->> 'message' = d.message_id WHERE d.channel_id = ${channel}`
        )
        yield* eventually(
          "nothing waits",
          Effect.map(waiting, ({ length }) => length === 0)
        )
        const { entries: arrived } = yield* Effect.promise(() =>
          sandbox.inbox({ channel: push.id, accepted: true })
        )
        const rows = yield* rowsOf(channel)
        // It had attempts under way when it was turned off, or left.
        const delivered = rows.filter(({ dropped }) => !dropped).length
        assert.isAtLeast(arrived.length, delivered)
        assert.isAtMost(arrived.length, rows.length)
        assert.strictEqual(
          new Set(arrived.map(({ payload }) => JSON.stringify(payload))).size,
          arrived.length
        )
      })
  )

  it.effect(
    "say when messages come while these are accepted: each comes once, as itself or in one digest",
    () =>
      Effect.gen(function* () {
        const sandbox = yield* sandboxOfServer
        const { channel, id, key, request, token } = yield* subscriber
        const { id: subscriberId, pushKey } = yield* settingsOf(token)
        const push = yield* Effect.promise(() => sandbox.subscribe({ applicationServerKey: pushKey }))
        yield* request("PATCH", `/channels/${channel}`, { push })
        const none = { quietFrom: null, quietTo: null }
        const changes = [
          () => request("PATCH", "", { delivery: "daily" }),
          () => request("PATCH", "", { timezone: "Asia/Tokyo" }),
          () => request("PATCH", "", { delivery: "instant" }),
          () => request("PUT", `/projects/${id}`, { delivery: "hourly" }),
          () => request("PATCH", "", { quietFrom: "00:00", quietTo: "23:59", timezone: "UTC" }),
          () => request("PUT", `/projects/${id}`, { delivery: "inherit" }),
          () => request("PATCH", "", none)
        ]
        const changing = Effect.forEach(
          Array.from({ length: 28 }),
          (_, at) => changes[at % changes.length]?.() ?? Effect.die(at)
        )
        const sending = Effect.forEach(
          Array.from({ length: 60 }),
          (_, at) => sent(key, { message: `Message ${at}` }),
          { concurrency: 4 }
        )
        // Two who change at once, as with two devices.
        const [first, second] = yield* Effect.all([changing, changing, sending], { concurrency: 3 })
        for (const { json, status } of [...first, ...second])
          assert.strictEqual(status, 200, JSON.stringify(json))
        yield* request("PUT", `/projects/${id}`, { delivery: "instant" })
        yield* request("PATCH", "", { delivery: "instant", ...none })
        const sql = yield* SqlClient
        const open = Effect.orDie(
          sql`SELECT 1 FROM deliveries WHERE subscriber_id = ${subscriberId} AND held_until IS NOT NULL
          UNION ALL SELECT 1 FROM jobs WHERE queue = 'deliveries' AND lane = ${channel}`
        )
        yield* eventually(
          "nothing is held, and nothing waits",
          Effect.map(open, ({ length }) => length === 0)
        )
        const { entries } = yield* Effect.promise(() =>
          sandbox.inbox({ channel: push.id, accepted: true, limit: 1_000 })
        )
        const told = entries.map(
          ({ payload }) => payload as { readonly title: string; readonly text: string }
        )
        const counts = told.map(({ title }) => Number(/^(\d+) messages$/.exec(title)?.[1] ?? 1))
        assert.strictEqual(
          counts.reduce((sum, count) => sum + count, 0),
          60
        )
        const named = told.flatMap(({ text }) => text.match(/Message \d+/g) ?? [])
        assert.strictEqual(new Set(named).size, named.length)
      })
  )
})
