import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type ClaimedSession, StepStore } from "#actors/agents/StepStore.ts"
import { Processes } from "#src/infra/processes/Processes.ts"
import type { Step } from "#streams/agents/Step.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newSession, processLayer, promptBody, rowOf, setRow, someone, stepOf } from "./Sessions.ts"

const live = { excludeTestServices: true } as const
const days = 24 * 3_600_000

/** The actions of another process in the meantime. */
const elsewhere = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Layer.fresh(processLayer))

const created = Effect.fnUntraced(function* (...ask: Parameters<typeof newSession>) {
  const session = yield* newSession(...ask)
  yield* Effect.flatMap(StepStore, ({ create }) => create(session.facts, session.state))
  return session
})

const claimed = Effect.fnUntraced(function* (id: string) {
  const session = yield* Effect.flatMap(StepStore, ({ claim }) => claim(id))
  return session ?? (yield* Effect.die(new Error(`${id} cannot be claimed`)))
})

const shown = ({ epoch, facts, recent, seqUsed, state, steps }: ClaimedSession) => ({
  epoch,
  facts,
  recent,
  seqUsed,
  state,
  steps
})

const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E, StepStore>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

layer(processLayer.pipe(Layer.provideMerge(TestStores.layer)), live)("the store of sessions", (it) => {
  it.effect(
    "plans the making of sessions anew each time: a plan for an empty table would go through all of them",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const [kept] = yield* sql<{
          settings: ReadonlyArray<string>
        }>`SELECT proconfig AS settings FROM pg_proc
        WHERE proname = 'agent_create'`
        assert.deepStrictEqual(kept?.settings, ["plan_cache_mode=force_custom_plan"])
      })
  )

  it.effect("notes a client that asks for a session as attached, and a server that does not", () =>
    Effect.gen(function* () {
      const { facts } = yield* created({ detachedAt: 5, lastSeenAt: Date.now() - 60_000 })
      const { claim } = yield* StepStore
      const before = Date.now()
      const asked = yield* claim(facts.id, facts.userId)
      assert.isNull(asked?.state.detachedAt)
      assert.isAtLeast(asked?.state.lastSeenAt ?? 0, before)
      const adopted = yield* claim(facts.id)
      assert.strictEqual(adopted?.state.detachedAt, asked?.state.lastSeenAt)
    })
  )

  it.effect(
    "gives a session back as it was written, to an owner with a higher epoch and numbers of its own",
    () =>
      Effect.gen(function* () {
        const { write } = yield* StepStore
        const { facts, state } = yield* created()
        const steps = [stepOf(0), stepOf(1, promptBody("two"), 7), stepOf(2, promptBody("three"), 9)]
        const last = {
          ...state,
          status: "running",
          budget: "2500000000000",
          cost: "123456789012345678901234567890",
          prompts: 3,
          promptTokens: 5_000_000_000,
          detachedAt: state.lastSeenAt + 5,
          baseStep: 1
        } as const
        yield* write({ sessionId: facts.id, epoch: 1, state: last, steps })
        assert.deepStrictEqual(shown(yield* claimed(facts.id)), {
          facts,
          state: { ...last, seqReserved: 20_000 },
          epoch: 2,
          steps: 3,
          seqUsed: 10_000,
          recent: steps.slice(1)
        })
      })
  )

  it.effect("keeps every character of every text: NUL, lone surrogates, emoji, U+2028, 300 KB of them", () =>
    Effect.gen(function* () {
      const { announced, steps: read, write } = yield* StepStore
      const { facts, state } = yield* created()
      const texts = [
        "\u0000",
        "a\u0000b\\u0000",
        "\ud800",
        "\udc00\ud800",
        "😀\u2028\u2029\ufeff",
        "\u007f\u0001"
      ]
      const steps: ReadonlyArray<Step> = [
        ...texts.map((text, index) => stepOf(index, promptBody(text), index + 1)),
        {
          ...stepOf(texts.length, promptBody("\u0000😀\udfff".repeat(75_000)), 100),
          promptId: "lone \ud83d"
        },
        stepOf(
          texts.length + 1,
          {
            kind: "result",
            callId: "c",
            ok: true,
            result: { content: "\u0000", ["\ud800"]: [1.5, null, -1e300] },
            denied: false,
            durationMs: 1.25
          },
          101
        )
      ]
      yield* write({ sessionId: facts.id, epoch: 1, state, steps })
      assert.deepStrictEqual(yield* announced(facts.id, 0, 1_000), steps)
      assert.deepStrictEqual(yield* read(facts.id, 3), steps.slice(3))
      assert.deepStrictEqual((yield* claimed(facts.id)).recent, steps)
    })
  )

  it.effect("announces the steps whose number lies above one and at most another, never those without", () =>
    Effect.gen(function* () {
      const { announced, write } = yield* StepStore
      const { facts, state } = yield* created()
      const steps = [0, 3, 0, 8, 12].map((seq, index) => stepOf(index, promptBody("x"), seq))
      yield* write({ sessionId: facts.id, epoch: 1, state, steps })
      const seqs = (found: ReadonlyArray<Step>) => found.map(({ seq }) => seq)
      assert.deepStrictEqual(seqs(yield* announced(facts.id, 0, 8)), [3, 8])
      assert.deepStrictEqual(seqs(yield* announced(facts.id, 3, 100)), [8, 12])
      assert.deepStrictEqual(seqs(yield* announced(facts.id, -1, 100)), [3, 8, 12])
    })
  )

  it.effect("refuses what an earlier owner writes, whole, and lets the present one go on", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const { facts, state } = yield* created()
      const sessionId = facts.id
      yield* write({ sessionId, epoch: 1, state, steps: [stepOf(0)] })
      yield* elsewhere(
        Effect.gen(function* () {
          const other = yield* claimed(sessionId)
          assert.strictEqual(other.epoch, 2)
          yield* Effect.flatMap(StepStore, (store) =>
            store.write({ sessionId, epoch: 2, state: { ...state, prompts: 2 }, steps: [stepOf(1)] })
          )
        })
      )
      const late = {
        sessionId,
        epoch: 1,
        state: { ...state, prompts: 9 },
        steps: [stepOf(1, promptBody("late"))]
      }
      assert.strictEqual(yield* tagOf(write(late)), "OwnershipLost")
      const again = yield* claimed(sessionId)
      assert.deepStrictEqual([again.epoch, again.steps, again.state.prompts], [3, 2, 2])
      assert.deepStrictEqual(again.recent[1], stepOf(1))
      assert.strictEqual(yield* tagOf(write({ ...late, sessionId: "ses_nobody" })), "OwnershipLost")
    })
  )

  it.effect("merges what waits of one session: the last state, all steps, in order", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const { facts, state } = yield* created()
      const numbers = Array.from({ length: 50 }, (_, index) => index)
      yield* Effect.forEach(
        numbers,
        (index) =>
          write({
            sessionId: facts.id,
            epoch: 1,
            state: { ...state, prompts: index },
            steps: index % 5 === 4 ? [] : [stepOf(index - Math.floor((index + 1) / 5))]
          }),
        { concurrency: "unbounded" }
      )
      const { recent, state: last, steps } = yield* claimed(facts.id)
      assert.deepStrictEqual([steps, last.prompts], [40, 49])
      assert.deepStrictEqual(
        recent,
        Array.from({ length: 40 }, (_, index) => stepOf(index))
      )
    })
  )

  it.effect("writes 1,000 sessions at once, each its own, and claims them again", () =>
    Effect.gen(function* () {
      const { create, write } = yield* StepStore
      const of = yield* Effect.forEach(Array.from({ length: 125 }), () => someone)
      const sessions = yield* Effect.forEach(Array.from({ length: 1_000 }), (_, place) =>
        newSession({ prompts: place }, of[place % of.length])
      )
      const all = { concurrency: "unbounded" } as const
      yield* Effect.forEach(sessions, ({ facts, state }) => create(facts, state), all)
      yield* Effect.forEach(
        sessions,
        ({ facts, state }) =>
          write({ sessionId: facts.id, epoch: 1, state, steps: [stepOf(0, promptBody(facts.id))] }),
        all
      )
      const back = yield* Effect.forEach(sessions, ({ facts }) => claimed(facts.id), all)
      assert.deepStrictEqual(
        back.map(({ facts, recent, state }) => [facts.id, state.prompts, recent.map(({ body }) => body)]),
        sessions.map(({ facts }, place) => [facts.id, place, [promptBody(facts.id)]])
      )
    })
  )

  it.effect(
    "lets a key have eight live sessions, counted in one batch, in the database and over processes",
    () =>
      Effect.gen(function* () {
        const { create } = yield* StepStore
        const of = yield* someone
        const make = Effect.flatMap(newSession({}, of), ({ facts, state }) =>
          Effect.exit(create(facts, state))
        )
        const batch = yield* Effect.all(
          Array.from({ length: 6 }, () => make),
          { concurrency: "unbounded" }
        )
        assert.isTrue(batch.every(Exit.isSuccess))
        const old = yield* newSession({ lastSeenAt: Date.now() - 16 * 60_000 }, of)
        yield* create(old.facts, old.state)
        const racing = Array.from({ length: 4 }, () =>
          Effect.gen(function* () {
            const store = yield* StepStore
            const { facts, state } = yield* newSession({}, of)
            return yield* Effect.exit(store.create(facts, state))
          })
        )
        const results = yield* Effect.all([...racing, ...racing.map(elsewhere)], { concurrency: "unbounded" })
        assert.lengthOf(results.filter(Exit.isSuccess), 2)
        const refused = yield* newSession({}, of)
        const error = yield* Effect.flip(create(refused.facts, refused.state))
        assert.deepInclude(error, { _tag: "TooManySessions", keyId: of.keyId, live: 8 })
        // The cap is not applied to who comes back.
        assert.isDefined(yield* Effect.flatMap(StepStore, ({ claim }) => claim(old.facts.id)))
        const other = yield* newSession({}, yield* someone)
        yield* create(other.facts, other.state)
      })
  )

  it.effect(
    "lets a session be resumed after client_bye, and for 30 days, but not when it was ended otherwise",
    () =>
      Effect.gen(function* () {
        const { claim } = yield* StepStore
        const now = Date.now()
        const ended = { status: "ended", endedAt: now } as const
        const bye = yield* created({ ...ended, endReason: "client_bye" })
        const { state } = yield* claimed(bye.facts.id)
        assert.deepStrictEqual([state.status, state.endedAt, state.endReason], ["idle", null, null])
        assert.strictEqual(state.detachedAt, bye.state.lastSeenAt, "whoever was attached counts as attached")
        for (const endReason of ["ended_by_owner", "expired", "revoked", "error"] as const) {
          const { facts } = yield* created({ ...ended, endReason })
          assert.isUndefined(yield* claim(facts.id), endReason)
        }
        const almost = yield* created({ lastSeenAt: now - 30 * days + 60_000 })
        assert.isDefined(yield* claim(almost.facts.id))
        const tooOld = yield* created({ ...ended, endReason: "client_bye", lastSeenAt: now - 30 * days - 1 })
        assert.isUndefined(yield* claim(tooOld.facts.id))
        assert.isUndefined(yield* claim("ses_0000000000000000000000"))
      })
  )

  it.effect("gives nobody a session of somebody else: it stays ended, and its owner's", () =>
    Effect.gen(function* () {
      const { claim } = yield* StepStore
      const mine = yield* created()
      const now = new Date()
      yield* setRow(mine.facts.id, { status: "ended", ended_at: now, end_reason: "client_bye" })
      const before = yield* rowOf(mine.facts.id)
      const { userId } = yield* someone
      const both = yield* Effect.all(
        [tagOf(claim(mine.facts.id, userId)), Effect.exit(claim(mine.facts.id, userId))],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(both[0], "NotOwner")
      assert.deepStrictEqual(yield* rowOf(mine.facts.id), before)
      assert.isUndefined(yield* claim("ses_0000000000000000000000", userId))
      assert.isDefined(yield* claim(mine.facts.id, mine.facts.userId))
    })
  )

  it.effect("makes each of two who claim a session in one moment its owner, one after the other", () =>
    Effect.gen(function* () {
      const { facts } = yield* created()
      const other = yield* created()
      const ids = [facts.id, other.facts.id, facts.id, facts.id]
      const epochs = yield* Effect.forEach(ids, (id) => Effect.map(claimed(id), ({ epoch }) => epoch), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(epochs, [2, 2, 3, 4])
    })
  )

  it.effect("tells who writes a step out of its place, and what cannot be stored, alone", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const sessions = yield* Effect.all(Array.from({ length: 5 }, () => created()))
      const writes = sessions.map(({ facts, state }, place) => ({
        sessionId: facts.id,
        epoch: 1,
        state: place === 1 ? { ...state, prompts: 3_000_000_000 } : state,
        steps: place === 2 ? [stepOf(1)] : place === 3 ? [stepOf(0), stepOf(2)] : [stepOf(0)]
      }))
      const exits = yield* Effect.forEach(writes, (one) => Effect.exit(write(one)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        exits.map((exit) =>
          Exit.isSuccess(exit) ? "written" : Cause.hasDies(exit.cause) ? "died" : "failed"
        ),
        ["written", "died", "died", "died", "written"]
      )
      const first = sessions[0]
      const repeated = yield* Effect.exit(write({ ...(writes[0] ?? assert.fail()), steps: [stepOf(0)] }))
      assert.isTrue(Exit.isFailure(repeated), "a step was written twice")
      assert.strictEqual((yield* rowOf(first?.facts.id ?? ""))?.steps, 1)
    })
  )

  it.effect("does not take a sign of life back that was noted later", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const { facts, state } = yield* created()
      const later = new Date(state.lastSeenAt + 5_000)
      yield* setRow(facts.id, { last_seen_at: later })
      yield* write({ sessionId: facts.id, epoch: 1, state, steps: [] })
      assert.deepStrictEqual((yield* rowOf(facts.id))?.last_seen_at, later)
    })
  )

  it.effect("carries a write out whose writer is gone", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const sql = yield* SqlClient
      const { facts, state } = yield* created()
      const other = yield* created()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.forkScoped(write({ sessionId: facts.id, epoch: 1, state, steps: [stepOf(0)] }), {
            startImmediately: true
          })
        })
      )
      // The next write comes behind it.
      yield* write({ sessionId: other.facts.id, epoch: 1, state: other.state, steps: [] })
      assert.lengthOf(yield* sql`SELECT 1 FROM agent_steps WHERE session_id = ${facts.id}`, 1)
      assert.strictEqual((yield* rowOf(facts.id))?.owner, (yield* Processes).id)
    })
  )
})
