import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, live, makeStage, sent, subscribe } from "./Stage.ts"

/** The value of a line of `/metrics` without labels. */
const metric = (name: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", "/metrics"), ({ bytes }) => {
      const line = Buffer.from(bytes)
        .toString()
        .split("\n")
        .find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
      return line === undefined ? undefined : Number(line.split(" ").at(-1))
    })
  )

layer(
  TestServer.own({
    limits: {
      deliveriesCountedEveryMillis: 100,
      jobCountsMillis: 100,
      deliveryAttempts: 0,
      digestEveryMillis: 3_600_000
    }
  }),
  live
)("deliveries as operators see them", (it) => {
  it.effect("are on /metrics, and degrade /readyz when one has been due for a minute", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask } = yield* Readiness
      const stage = yield* makeStage
      const { channels } = yield* subscribe([yield* stage.project()], { channels: 2 })
      yield* sent(yield* stage.projectKey())
      yield* (yield* TestServer).ask("POST", `${api}/projects/project-1/test`, { key: stage.key })
      assert.strictEqual(yield* metric("signalbox_notify_messages_total"), 2)
      // This process has no attempt to spare, so that lanes stay as they are.
      const due = (after: string) => sql`UPDATE job_lanes SET due_at = now() + ${after}::interval
        WHERE queue = 'deliveries' AND lane = ANY (${channels}::text[])`
      yield* due("1 hour")
      yield* eventually(
        "four wait",
        Effect.map(metric("signalbox_notify_waiting"), (count) => count === 4)
      )
      assert.strictEqual(yield* metric("signalbox_notify_oldest_waiting_seconds"), 0)
      assert.strictEqual((yield* ask("notify"))?.status, "up")

      yield* due("-90 seconds")
      yield* eventually(
        "the oldest is late",
        Effect.map(ask("notify"), (state) => state?.status === "degraded")
      )
      assert.match(
        (yield* ask("notify"))?.detail ?? "",
        /^a delivery has been due for 9\d s and was not begun$/
      )
      const late = yield* metric("signalbox_notify_oldest_waiting_seconds")
      assert.isTrue(late !== undefined && late >= 90 && late < 120, String(late))
      yield* due("1 hour")
      yield* eventually(
        "none is late",
        Effect.map(ask("notify"), (state) => state?.status === "up")
      )

      yield* sql`UPDATE job_lanes SET busy_since = now() - interval '90 seconds'
          WHERE queue = 'deliveries' AND lane = ${channels[0] ?? ""}`
      yield* eventually(
        "one is sent back again and again",
        Effect.map(ask("notify"), (state) => state?.status === "degraded")
      )
      assert.match(
        (yield* ask("notify"))?.detail ?? "",
        /^a delivery has been put off for 9\d s: its host or its sender has /
      )
      yield* sql`UPDATE job_lanes SET busy_since = NULL`
      yield* eventually(
        "none is sent back",
        Effect.map(ask("notify"), (state) => state?.status === "up")
      )

      yield* sql`UPDATE deliveries SET held_until = now() + interval '1 hour' WHERE channel_id = ${channels[0] ?? ""}`
      yield* eventually(
        "two are held",
        Effect.map(metric("signalbox_notify_held"), (count) => count === 2)
      )
      assert.strictEqual(yield* metric("signalbox_notify_dead"), 0)

      // No sweep makes digests here.
      yield* sql`UPDATE deliveries SET held_until = now() - interval '90 seconds' WHERE held_until IS NOT NULL`
      yield* eventually(
        "a digest is late",
        Effect.map(ask("notify"), (state) => state?.status === "degraded")
      )
      assert.match((yield* ask("notify"))?.detail ?? "", /^a digest has been due for 9\d s and was not made$/)
      assert.isAtLeast((yield* metric("signalbox_notify_held_late_seconds")) ?? 0, 90)
    })
  )
})
