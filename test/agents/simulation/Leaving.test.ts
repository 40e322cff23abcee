import { assert, it } from "@effect/vitest"
import { Effect, Layer, ManagedRuntime } from "effect"
import type { AgentSession } from "#actors/agents/AgentSession.ts"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { type ModelAsk, ModelCalls } from "#actors/agents/ModelCalls.ts"
import { StepStore, StepStoreAway } from "#actors/agents/StepStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { limits } from "#src/Limits.ts"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import { until } from "#test/harness/Eventually.ts"
import { answerOf, type Turn } from "./Script.ts"
import { SimulatedDatabase, storeOf } from "./SimulatedStore.ts"

const facts: SessionFacts = {
  id: "ses_1",
  userId: "usr_1",
  keyId: "key_1",
  root: "/w",
  workspaceName: "w",
  startedAt: 0
}
const fresh: SessionState = {
  clientVersion: "1",
  clientPlatform: "test",
  clientName: "",
  journalId: "",
  model: "scripted",
  thinkingLevel: "medium",
  budget: null,
  status: "idle",
  prompts: 0,
  toolCalls: 0,
  toolCallsDenied: 0,
  cost: "0",
  promptTokens: 0,
  completionTokens: 0,
  seqReserved: 0,
  baseStep: 0,
  lastSeenAt: 0,
  detachedAt: null,
  endedAt: null,
  endReason: null
}

/** The sessions of one process over a database that outlives it, with a scripted model. */
class Process {
  asked = 0
  /** so many times the store is away when steps are read */
  readsFail = 0
  readonly #runtime: ManagedRuntime.ManagedRuntime<AgentSessions, never>
  #isDead = false

  constructor(database: SimulatedDatabase, script: ReadonlyArray<Turn>) {
    const models = Layer.succeed(ModelCalls, {
      call: (ask: ModelAsk) => {
        this.asked++
        return answerOf(script, ask)
      },
      contextLength: () => undefined
    })
    const stored = storeOf(database, () => this.#isDead)
    const store = Layer.succeed(StepStore, {
      ...stored,
      steps: (id, from) =>
        Effect.suspend(() =>
          this.readsFail-- > 0 ? Effect.fail(new StepStoreAway({ cause: "a test" })) : stored.steps(id, from)
        )
    })
    const options = {
      limits: { ...limits, agentLiveMillis: -1, agentCancelMillis: 50, agentRetryMillis: 1 },
      newId
    }
    this.#runtime = ManagedRuntime.make(AgentSessions.layer(options).pipe(Layer.provide([models, store])))
  }

  run<A, E>(use: (sessions: AgentSessions["Service"]) => Effect.Effect<A, E>): Promise<A> {
    return this.#runtime.runPromise(Effect.flatMap(AgentSessions, use))
  }

  kill(): Promise<void> {
    this.#isDead = true
    return this.#runtime.dispose()
  }

  /** As at the end of a server in peace. */
  stop(): Promise<void> {
    return this.#runtime.dispose()
  }
}

/** A client that does nothing but listen. */
class Listener {
  readonly frames: Array<Readonly<Record<string, unknown>>> = []
  closedWith: number | undefined
  readonly client

  constructor(journalId: string) {
    const sink = {
      bufferedBytes: 0,
      send: (text: string) => {
        this.frames.push(JSON.parse(text))
        return true
      },
      close: (code: number) => {
        this.closedWith = code
      }
    }
    this.client = { sink, journalId, keyId: facts.keyId }
  }

  attach(session: AgentSession): void {
    session.attach(this.client, { ready: "{}", lastSeq: session.outbox.seq, missed: [] }, {})
  }

  of(type: string) {
    return this.frames.filter((frame) => frame["type"] === type)
  }

  async hears(type: string, count = 1): Promise<void> {
    await until(`${count} ${type}`, async () =>
      this.of(type).length >= count ? undefined : JSON.stringify(this.frames.slice(-3))
    )
  }
}

const prompt = { kind: "prompt", id: "p1", text: "Go", images: [] } as const
const reads: Turn = { words: ["Look."], calls: [{ tool: "read", args: { path: "a" } }] }
const ends: Turn = { words: ["Done."], calls: [] }
const commands = (count: number): Turn => ({
  words: ["All."],
  calls: Array.from({ length: count }, (_, index) => ({ tool: "bash", args: { command: `make ${index}` } }))
})

it.live(
  "A session that is let go calls no model any more: nobody would store what it said, and it would be paid",
  () =>
    Effect.promise(async () => {
      const database = new SimulatedDatabase()
      const process = new Process(database, [reads, ends])
      const session = await process.run(({ create }) => create(facts, fresh))
      const one = new Listener("j1")
      one.attach(session)
      session.begin(prompt)
      await one.hears("tool.request")
      session.detach(one.client)
      // Its last call is answered, and no client attached: it waits for one before it asks the model again.
      const callId = String(one.of("tool.request")[0]?.["callId"])
      const result = { content: "a", totalLines: 1, truncated: false }
      session.calls.result({ type: "tool.result", callId, ok: true, result, durationMs: 1 })
      await until("the result is stored", async () =>
        database.sessions.get("ses_1")?.steps.some(({ body }) => body.kind === "result") ? undefined : "no"
      )
      assert.strictEqual(process.asked, 1)
      await process.run(({ sweep }) => sweep)
      assert.strictEqual(process.asked, 1, "let go by the sweep")
      assert.isFalse(session.isWorking)
      const again = await process.run(({ acquire }) => acquire("ses_1"))
      assert.notStrictEqual(again, session)
      await process.stop()
    })
)

it.live(
  "Calls that somebody else was asked for end as interrupted, however many wait behind those that are open",
  () =>
    Effect.promise(async () => {
      const database = new SimulatedDatabase()
      const before = new Process(database, [commands(10), ends])
      const session = await before.run(({ create }) => create(facts, fresh))
      const one = new Listener("j1")
      one.attach(session)
      session.begin(prompt)
      await one.hears("tool.request", 8)
      await before.kill()
      const after = new Process(database, [commands(10), ends])
      const again = await after.run(({ acquire }) => acquire("ses_1"))
      assert.isDefined(again)
      const two = new Listener("j2")
      two.attach(again)
      await two.hears("prompt.done")
      const ended = two.frames.filter(({ kind }) => kind === "tool_end")
      assert.strictEqual(ended.length, 10)
      assert.strictEqual(two.of("tool.request").length, 0)
      await after.stop()
    })
)

it.live(
  "A write that the store can never make sends the client away, and the session is loaded again as it is stored",
  () =>
    Effect.promise(async () => {
      const database = new SimulatedDatabase()
      const process = new Process(database, [ends])
      const session = await process.run(({ create }) => create(facts, fresh))
      const one = new Listener("j1")
      one.attach(session)
      database.onWrite = (_, when) => {
        database.onWrite = () => undefined
        throw new Error(`refused ${when}`)
      }
      session.begin(prompt)
      await one.hears("bye")
      assert.deepInclude(one.of("bye")[0], { reason: "moved", resumable: true })
      const again = await process.run(({ acquire }) => acquire("ses_1"))
      assert.notStrictEqual(again, session)
      assert.isDefined(again)
      const two = new Listener("j1")
      two.attach(again)
      again.begin(prompt)
      await two.hears("prompt.done")
      await process.stop()
    })
)

it.live("A prompt in a session that rested waits for the store, as everything else does", () =>
  Effect.promise(async () => {
    const process = new Process(new SimulatedDatabase(), [ends, ends])
    const session = await process.run(({ create }) => create(facts, fresh))
    const one = new Listener("j1")
    one.attach(session)
    session.begin(prompt)
    await one.hears("prompt.done")
    await until("it rests", async () => {
      await process.run(({ sweep }) => sweep)
      return session.conversation === undefined ? undefined : "not yet"
    })
    process.readsFail = 20
    session.begin({ ...prompt, id: "p2" })
    await one.hears("prompt.done", 2)
    assert.deepInclude(one.of("prompt.done")[1], { id: "p2", status: "completed" })
    await process.stop()
  })
)

it.live("A session whose client comes back while others are let go is not let go", () =>
  Effect.promise(async () => {
    const database = new SimulatedDatabase()
    const process = new Process(database, [ends])
    // More than are let go side by side.
    const sessions = await process.run(({ create }) =>
      Effect.forEach(
        Array.from({ length: 100 }, (_, index) => `ses_${index}`),
        (id) => create({ ...facts, id }, { ...fresh, detachedAt: 0 })
      )
    )
    const last = sessions.at(-1)
    assert.isDefined(last)
    const listener = new Listener("j1")
    database.onWrite = () => {
      database.onWrite = () => undefined
      listener.attach(last)
    }
    await process.run(({ sweep }) => sweep)
    last.begin(prompt)
    await listener.hears("prompt.done")
    await process.stop()
  })
)

it.live("A summary that cannot be used counts as spent all the same", () =>
  Effect.promise(async () => {
    const process = new Process(new SimulatedDatabase(), [{ words: [" "], calls: [] }, ends])
    const session = await process.run(({ create }) => create(facts, fresh))
    const one = new Listener("j1")
    one.attach(session)
    session.begin({ ...prompt, text: "long ".repeat(20_000) })
    await one.hears("prompt.done")
    session.begin({ ...prompt, id: "p2", text: "long ".repeat(20_000) })
    await one.hears("prompt.done", 2)
    session.begin({ kind: "compact", id: "c1", instructions: "" })
    await one.hears("prompt.done", 3)
    assert.strictEqual(process.asked, 3)
    assert.strictEqual(session.state.cost, "21")
    await process.stop()
  })
)
