import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Holds } from "#src/notify/digests/Holds.ts"
import { dueOf } from "#streams/notify/digests/Due.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { deliveriesOf } from "../delivery/DeliveryStage.ts"
import { api, blocked, live, makeStage, sent } from "../Stage.ts"
import {
  heldOf,
  nowOfStore,
  settingsOf,
  type SubscriberSettings,
  subscribeWith,
  writeSettings
} from "./DigestStage.ts"

/** Quiet hours from an hour ago to an hour ahead, on the clock of UTC. */
const quietNow = (): Pick<SubscriberSettings, "quietFrom" | "quietTo" | "timezone"> => {
  const timeAt = (millis: number) => new Date(millis).toISOString().slice(11, 16)
  return {
    quietFrom: timeAt(Date.now() - 3_600_000),
    quietTo: timeAt(Date.now() + 3_600_000),
    timezone: "UTC"
  }
}

/** A project with a key, and a subscriber of these settings. */
const staged = Effect.fnUntraced(function* (
  settings: Partial<SubscriberSettings>,
  more: { readonly channels?: number; readonly delivery?: string } = {}
) {
  const stage = yield* makeStage
  const project = yield* stage.project()
  const key = yield* stage.projectKey()
  const { id, channels } = yield* subscribeWith([project], settings, more)
  return { stage, project, key, id, channels, settings: settingsOf(settings) }
})

/** The instants at which a message that is accepted meanwhile may be due. */
const duesAround = <A, E, R>(settings: SubscriberSettings, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* nowOfStore
    const value = yield* effect
    return { value, dues: [dueOf(settings, before), dueOf(settings, yield* nowOfStore)] }
  })

layer(TestServer.shared, live)("a message for a digest", (it) => {
  for (const delivery of ["hourly", "daily"] as const)
    it.effect(`is held without a job until the ${delivery} one is due, and counted`, () =>
      Effect.gen(function* () {
        const { channels, id, key, project, settings, stage } = yield* staged({ delivery }, { channels: 2 })
        yield* subscribeWith([project], {})
        const { dues, value } = yield* duesAround(settings, sent(key))
        assert.deepStrictEqual(
          value.messages.map(({ queuedForDigest, recipients }) => ({ queuedForDigest, recipients })),
          [{ queuedForDigest: 1, recipients: 2 }]
        )
        const held = yield* heldOf(id)
        assert.sameMembers(
          held.map(({ channel }) => channel),
          [...channels]
        )
        for (const { dueMillis, hasJob } of held) {
          assert.include(dues, dueMillis)
          assert.isFalse(hasJob)
        }
        const message = value.messages[0]?.id ?? ""
        const shown = yield* deliveriesOf(message, stage.key)
        assert.sameMembers(
          shown.map(({ status }) => status),
          ["held", "held", "waiting"]
        )
        const { ask } = yield* TestServer
        const { json } = yield* ask("GET", `${api}/messages/${message}`, { key: stage.key })
        assert.deepInclude(json, {
          status: "delivering",
          queuedForDigest: 1,
          deliveries: { waiting: 1, held: 2, delivered: 0, dead: 0, dropped: 0 }
        })
      })
    )

  it.effect("is held through quiet hours by those who get messages at once", () =>
    Effect.gen(function* () {
      const { id, key, settings } = yield* staged(quietNow())
      const { dues, value } = yield* duesAround(settings, sent(key))
      assert.strictEqual(value.messages[0]?.queuedForDigest, 1)
      assert.include(dues, (yield* heldOf(id))[0]?.dueMillis)
    })
  )

  it.effect("passes with high priority, unless its subscriber says no", () =>
    Effect.gen(function* () {
      const passing = yield* staged({ delivery: "daily", ...quietNow() })
      const urgent = yield* sent(passing.key, { priority: "high" })
      assert.strictEqual(urgent.messages[0]?.queuedForDigest, 0)
      assert.deepInclude((yield* heldOf(passing.id))[0], { dueMillis: null, hasJob: true })
      const strict = yield* staged({ delivery: "daily", highPasses: false })
      const held = yield* sent(strict.key, { priority: "high" })
      assert.strictEqual(held.messages[0]?.queuedForDigest, 1)
      assert.isFalse((yield* heldOf(strict.id))[0]?.hasJob)
    })
  )

  it.effect("goes by its project's choice, where there is one", () =>
    Effect.gen(function* () {
      const atOnce = yield* staged({ delivery: "daily" }, { delivery: "instant" })
      assert.strictEqual((yield* sent(atOnce.key)).messages[0]?.queuedForDigest, 0)
      const hourly = yield* staged({ delivery: "daily" }, { delivery: "hourly" })
      const { dues, value } = yield* duesAround(settingsOf({ delivery: "hourly" }), sent(hourly.key))
      assert.strictEqual(value.messages[0]?.queuedForDigest, 1)
      assert.include(dues, (yield* heldOf(hourly.id))[0]?.dueMillis)
      const muted = yield* staged({ delivery: "daily" }, { delivery: "muted" })
      assert.strictEqual((yield* sent(muted.key)).recipients, 0)
    })
  )

  it.effect("is held by each of many subscribers as their own settings say", () =>
    Effect.gen(function* () {
      const { key, project } = yield* staged({ delivery: "daily" })
      const zones = ["UTC", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe"]
      const others = yield* Effect.forEach(zones, (timezone, index) => {
        const settings = settingsOf({ delivery: "daily", digestAt: `1${index}:30`, timezone })
        return Effect.map(subscribeWith([project], settings), ({ id }) => ({ id, settings }))
      })
      const before = yield* nowOfStore
      assert.strictEqual((yield* sent(key)).messages[0]?.queuedForDigest, 1 + zones.length)
      const after = yield* nowOfStore
      for (const { id, settings } of others)
        assert.include(
          [dueOf(settings, before), dueOf(settings, after)],
          (yield* heldOf(id))[0]?.dueMillis ?? 0
        )
    })
  )

  it.effect("is due by the settings that are changed while it is held", () =>
    Effect.gen(function* () {
      const holds = yield* Holds
      const { id, key } = yield* staged({ delivery: "daily", digestAt: "00:00" })
      yield* sent(key)
      for (const change of [
        { delivery: "hourly", timezone: "Asia/Kathmandu" },
        { delivery: "daily", digestAt: "23:59", timezone: "America/New_York" },
        { delivery: "instant", ...quietNow() }
      ] as const) {
        const settings = settingsOf(change)
        const { dues } = yield* duesAround(settings, holds.changing(id, writeSettings(id, settings)))
        assert.include(dues, (yield* heldOf(id))[0]?.dueMillis ?? 0, JSON.stringify(change))
      }
      yield* holds.changing(id, writeSettings(id, {}))
      const [atOnce] = yield* heldOf(id)
      assert.isAtMost(atOnce?.dueMillis ?? Infinity, yield* nowOfStore)
      // It is due, and stays so.
      yield* holds.changing(id, writeSettings(id, { delivery: "daily" }))
      assert.strictEqual((yield* heldOf(id))[0]?.dueMillis, atOnce?.dueMillis)
    }).pipe(Effect.provide(Holds.layer))
  )

  it.effect("of high priority is due at once where its subscriber lets such pass from now on", () =>
    Effect.gen(function* () {
      const holds = yield* Holds
      const { id, key } = yield* staged({ delivery: "daily", highPasses: false })
      yield* sent(key, { priority: "high" })
      yield* sent(key)
      yield* holds.changing(id, writeSettings(id, { delivery: "daily" }))
      const [urgent, other] = yield* heldOf(id)
      const now = yield* nowOfStore
      assert.isAtMost(urgent?.dueMillis ?? Infinity, now)
      assert.isAbove(other?.dueMillis ?? 0, now)
    }).pipe(Effect.provide(Holds.layer))
  )

  it.effect("is dropped where its project is muted or left, or its channel turned off", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const holds = yield* Holds
      const { id, key, project } = yield* staged({ delivery: "daily" })
      const dropped = Effect.map(heldOf(id), (rows) =>
        rows.map(({ dueMillis, isDropped }) => isDropped && dueMillis === null)
      )
      yield* sent(key)
      const choose = (delivery: string) =>
        holds.changing(
          id,
          sql`UPDATE project_subscriptions SET delivery = ${delivery} WHERE project_id = ${project}`
        )
      yield* choose("muted")
      yield* choose("inherit")
      yield* sent(key)
      assert.deepStrictEqual(yield* dropped, [true, false])
      yield* holds.changing(id, sql`DELETE FROM project_subscriptions WHERE project_id = ${project}`)
      assert.deepStrictEqual(yield* dropped, [true, true])
    }).pipe(Effect.provide(Holds.layer))
  )

  it.effect("is waited for by a change of settings while it is accepted, and is due by these", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const holds = yield* Holds
      const { id, key, project, stage } = yield* staged({ delivery: "daily" })
      // Its instants are known, and its text is there.
      const first = (yield* sent(key)).messages[0]?.id ?? ""
      yield* sql`DELETE FROM deliveries WHERE message_id = ${first}`
      const [accepted, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const accepting = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT * FROM deliveries_fan_out(${stage.userId}, ARRAY[${first}], ARRAY[${project}], 100)`
            yield* Deferred.succeed(accepted, undefined)
            yield* Deferred.await(go)
          })
        )
      )
      yield* Deferred.await(accepted)
      const settings = settingsOf({ delivery: "hourly", timezone: "Asia/Kathmandu" })
      const before = yield* nowOfStore
      const changing = yield* Effect.forkChild(holds.changing(id, writeSettings(id, settings)))
      yield* eventually(
        "the change waits",
        Effect.map(blocked("subscribers"), (count) => count > 0)
      )
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(accepting)
      yield* Fiber.join(changing)
      const due = (yield* heldOf(id))[0]?.dueMillis ?? 0
      assert.include([dueOf(settings, before), dueOf(settings, yield* nowOfStore)], due)
    }).pipe(Effect.provide(Holds.layer))
  )

  it.effect("waits for a change of settings that is under way, and is held by these", () =>
    Effect.gen(function* () {
      const holds = yield* Holds
      const { id, key } = yield* staged({ delivery: "daily" })
      const [changed, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const change = Effect.gen(function* () {
        yield* writeSettings(id, {})
        yield* Deferred.succeed(changed, undefined)
        yield* Deferred.await(go)
      })
      const changing = yield* Effect.forkChild(holds.changing(id, change))
      yield* Deferred.await(changed)
      const sending = yield* Effect.forkChild(sent(key))
      yield* eventually(
        "the send waits",
        Effect.map(blocked("fan_out"), (count) => count > 0)
      )
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(changing)
      assert.strictEqual((yield* Fiber.join(sending)).messages[0]?.queuedForDigest, 0)
      assert.isTrue((yield* heldOf(id))[0]?.hasJob)
    }).pipe(Effect.provide(Holds.layer))
  )
})
