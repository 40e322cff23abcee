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
})
