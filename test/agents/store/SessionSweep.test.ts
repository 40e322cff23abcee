import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { StepStore } from "#actors/agents/StepStore.ts"
import { Processes } from "#src/infra/processes/Processes.ts"
import { SessionSweep } from "#src/agents/store/SessionSweep.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newSession, processLayer, rowOf, setRow, stepOf } from "./Sessions.ts"

const withSweep = SessionSweep.layer.pipe(Layer.provideMerge(processLayer))
const live = { excludeTestServices: true } as const
const days = 24 * 3_600_000

const created = Effect.fnUntraced(function* (...ask: Parameters<typeof newSession>) {
  const session = yield* newSession(...ask)
  yield* Effect.flatMap(StepStore, ({ create }) => create(session.facts, session.state))
  return session
})

layer(withSweep.pipe(Layer.provideMerge(TestStores.layer)), live)("sessions of all keys", (it) => {
  it.effect("end as expired 30 days after their last sign of life, not after their start", () =>
    Effect.gen(function* () {
      const { expire } = yield* SessionSweep
      const { write } = yield* StepStore
      const now = Date.now()
      const long = new Date(now - 40 * days)
      const silent = yield* created({ lastSeenAt: now - 30 * days - 1_000 })
      const seen = yield* created({ lastSeenAt: now - 30 * days + 60_000 })
      const left = yield* created({ status: "ended", endedAt: now, endReason: "client_bye" })
      for (const { facts } of [silent, seen, left]) yield* setRow(facts.id, { started_at: long })
      assert.strictEqual(yield* expire, 1)
      assert.deepInclude(yield* rowOf(silent.facts.id), { status: "ended", end_reason: "expired", epoch: 2 })
      assert.deepInclude(yield* rowOf(seen.facts.id), { status: "idle", end_reason: null })
      assert.deepInclude(yield* rowOf(left.facts.id), { end_reason: "client_bye" })
      const late = write({ sessionId: silent.facts.id, epoch: 1, state: silent.state, steps: [stepOf(0)] })
      assert.strictEqual((yield* Effect.flip(late))._tag, "OwnershipLost")
      assert.strictEqual(yield* expire, 0)
    })
  )

  it.effect("show a sign of life when they are touched by who owns them", () =>
    Effect.gen(function* () {
      const { touch } = yield* SessionSweep
      const before = Date.now() - 3_600_000
      const own = yield* Effect.all(Array.from({ length: 3 }, () => created({ lastSeenAt: before })))
      const other = yield* created({ lastSeenAt: before })
      const ended = yield* created({
        lastSeenAt: before,
        status: "ended",
        endedAt: before,
        endReason: "client_bye"
      })
      yield* setRow(other.facts.id, { owner: "own_other" })
      const all = [...own, other, ended]
      yield* touch(all.map(({ facts }) => facts.id))
      const seen = yield* Effect.forEach(all, ({ facts }) => rowOf(facts.id))
      assert.deepStrictEqual(
        seen.map((row) => (row?.last_seen_at.getTime() ?? 0) > before),
        [true, true, true, false, false]
      )
    })
  )

  it.effect("are abandoned while their prompt is worked on and their owner is dead, or has left", () =>
    Effect.gen(function* () {
      const { abandoned } = yield* SessionSweep
      const { alive, id: owner } = yield* Processes
      const sql = yield* SqlClient
      const running = yield* Effect.all(Array.from({ length: 4 }, () => created({ status: "running" })))
      const idle = yield* created()
      const owners = ["own_silent", "own_quiet", "own_gone"]
      yield* sql`INSERT INTO processes (id, started_at, alive_at) VALUES
        ('own_silent', now(), now() - interval '21 seconds'), ('own_quiet', now(), now() - interval '15 seconds')`
      for (const [place, name] of owners.entries()) {
        yield* setRow(running[place]?.facts.id ?? "", { owner: name })
      }
      yield* setRow(idle.facts.id, { owner: "own_gone" })
      const ids = [running[0]?.facts.id ?? "", running[2]?.facts.id ?? ""]
      assert.sameMembers([...(yield* abandoned)], ids)
      assert.deepStrictEqual(yield* alive([...owners, owner]), new Set(["own_quiet", owner]))
      // A take-over transfers ownership.
      yield* Effect.flatMap(StepStore, ({ claim }) => claim(ids[0] ?? ""))
      assert.sameMembers([...(yield* abandoned)], ids.slice(1))
    })
  )

  it.effect("are abandoned at once when their process leaves in peace", () =>
    Effect.gen(function* () {
      const { abandoned } = yield* SessionSweep
      const id = yield* Effect.map(created({ status: "running" }), ({ facts }) => facts.id).pipe(
        Effect.tap((made) => Effect.map(abandoned, (ids) => assert.notInclude(ids, made))),
        Effect.provide(Layer.fresh(processLayer))
      )
      assert.include(yield* abandoned, id)
    })
  )
})
