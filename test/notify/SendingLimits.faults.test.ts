import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, blocked, faultOf, live, makeStage, send, sent, subscribe } from "./Stage.ts"

const limits = {
  deliveriesPerSend: 3,
  deliveriesWaiting: 4,
  deliveriesCountedMillis: 0,
  idempotencyWaitMillis: 50,
  postgresConnections: 6
}

layer(TestServer.own({ limits }), live)("the limits of sends", (it) => {
  it.effect("refuse more deliveries than one send may make, and leave nothing of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const stage = yield* makeStage
      const project = yield* stage.project()
      yield* subscribe([project], { channels: 4 })
      const key = yield* stage.projectKey()
      assert.deepStrictEqual(faultOf(yield* send(key)), [
        400,
        "project: more than 3 deliveries; send to fewer at a time"
      ])
      for (const table of ["messages", "deliveries", "jobs"]) {
        const rows =
          yield* sql`SELECT FROM ${sql(table)} ${table === "jobs" ? sql`WHERE queue = 'deliveries'` : sql``}`
        assert.strictEqual(rows.length, 0, table)
      }
    })
  )

  it.effect("refuse what an owner with too many waiting sends, and nobody else's", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const project = yield* stage.project()
      yield* subscribe([project], { channels: 3 })
      const key = yield* stage.projectKey()
      yield* sent(key)
      yield* sent(key)
      const refused = yield* send(key)
      assert.deepStrictEqual(faultOf(refused), [429, "More than 4 deliveries of this account are waiting"])
      assert.strictEqual(refused.headers.get("retry-after"), "60")
      const other = yield* makeStage
      yield* other.project()
      yield* sent(yield* other.projectKey())
    })
  )

  it.effect("with an Idempotency-Key let twins wait for a slow one, and all others go on", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const stage = yield* makeStage
      const project = yield* stage.project()
      const { channels } = yield* subscribe([project])
      const key = yield* stage.projectKey()
      const other = yield* makeStage
      yield* other.project()
      const otherKey = yield* other.projectKey()
      const slow = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT 1 FROM job_lanes WHERE lane = ${channels[0] ?? ""} FOR UPDATE`
          const sending = yield* Effect.forkDetach(
            Effect.all(
              Array.from({ length: 8 }, () => send(key, {}, { "idempotency-key": "slow" })),
              { concurrency: "unbounded" }
            )
          )
          yield* eventually(
            "the first waits for the lane",
            Effect.map(blocked("deliveries_fan_out"), (count) => count > 0)
          )
          yield* Effect.sleep(10 * limits.idempotencyWaitMillis)
          yield* sent(otherKey)
          return sending
        })
      )
      const answers = yield* Effect.flatMap(slow, Fiber.join)
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        answers.map(() => 201)
      )
      assert.lengthOf(
        answers.filter(({ headers }) => headers.get("idempotent-replay") === "true"),
        7
      )
      assert.lengthOf(yield* sql`SELECT 1 FROM messages WHERE project_id = ${project}`, 1)
    })
  )

  it.effect("with an Idempotency-Key wait for a twin at another process", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { json } = yield* ask("GET", `${api}/project-keys`, { key: stage.key })
      const [id = ""] = /pky_[0-9A-Za-z]+/.exec(JSON.stringify(json)) ?? []
      // It comes to nothing after all.
      const twin = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`INSERT INTO idempotency (scope, key, user_id, claim, request_hash)
            VALUES (${`message:${id}`}, 'twin', ${stage.userId}, 'clm_other', sha256(''))`
          const sending = yield* Effect.forkDetach(send(key, {}, { "idempotency-key": "twin" }))
          yield* eventually(
            "the send waits",
            Effect.map(blocked("idempotency"), (count) => count > 0)
          )
          yield* Effect.sleep(10 * limits.idempotencyWaitMillis)
          yield* sql`DELETE FROM idempotency WHERE claim = 'clm_other'`
          return sending
        })
      )
      assert.strictEqual((yield* Effect.flatMap(twin, Fiber.join)).status, 201)
    })
  )

  it.effect("with an Idempotency-Key are answered again, though the project has gone and too many wait", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      const project = yield* stage.project()
      yield* subscribe([project], { channels: 3 })
      const key = yield* stage.projectKey()
      const once = { "idempotency-key": "once" }
      const first = yield* sent(key, { project }, once)
      yield* sent(key)
      assert.strictEqual((yield* send(key)).status, 429)
      const replayed = Effect.map(send(key, { project }, once), ({ headers, json, status }) => [
        status,
        headers.get("idempotent-replay"),
        json
      ])
      assert.deepStrictEqual(yield* replayed, [201, "true", first])
      yield* ask("DELETE", `${api}/projects/${project}`, { key: stage.key })
      assert.deepStrictEqual(faultOf(yield* send(key, { project })), [404, "project: not found"])
      assert.deepStrictEqual(yield* replayed, [201, "true", first])
    })
  )
})
