import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { AgentInfo } from "#schemas/agents/AgentInfo.ts"
import type { AgentSession, AgentSessionDetail } from "#schemas/agents/AgentSession.ts"
import type { OwnSubscription } from "#schemas/llm/Subscription.ts"
import type { UsageOfWindow } from "#schemas/llm/Usage.ts"
import { StepStore } from "#actors/agents/StepStore.ts"
import type { SessionFacts } from "#streams/agents/SessionRecord.ts"
import { newSession, processLayer, promptBody, stepOf } from "#test/agents/store/Sessions.ts"
import { type Answer, ask, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "#test/llm/Caller.ts"
import { onStage, type Stage } from "#test/llm/completions/RoutedServer.ts"
import { answersWith, priceOf, tokens } from "#test/llm/completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "#test/llm/upstream/ScriptedServer.ts"
import { AgentSocket } from "./AgentSocket.ts"

const [coder, second, free, plain] = ["acme/coder", "acme/second", "acme/free", "acme/plain"]
const server = ScriptedServer.layer([
  modelEntry(plain, { supported_parameters: ["max_tokens"] }),
  modelEntry(coder, { name: "Coder" }),
  modelEntry(second, { context_length: 50_000 }),
  modelEntry(free, { pricing: { prompt: "0", completion: "0" } })
])
const live = { excludeTestServices: true } as const
const agent = "/api/v1/agent"
const sessions = `${agent}/sessions`
const notFound = { error: "Session not found" }

const infoOf = async ({ server }: Stage, key: string): Promise<AgentInfo> => {
  const { body, status } = await ask(server, "GET", agent, { key })
  assert.strictEqual(status, 200, JSON.stringify(body))
  return body as AgentInfo
}

const subscribe = async ({ server }: Stage, userId: string, plan: object): Promise<void> => {
  const allowances = { hour: 1_000_000, day: 1_000_000, week: 1_000_000 }
  const fields = { name: "Agents", price_usd: 20, scope: "all", covers_direct_api: false, models: "*" }
  const planId = textAt(
    await ask(server, "POST", "/api/v1/plans", { json: { ...fields, allowances, ...plan } }),
    "id"
  )
  const current_period_end = new Date(Date.now() + 86_400_000).toISOString()
  const json = { user_id: userId, plan_id: planId, current_period_end }
  textAt(await ask(server, "POST", "/api/v1/subscriptions", { json }), "id")
}

/** The owner of the sessions: a caller, and the id of their key. */
const someone = async (stage: Stage, usd = 0) => {
  const caller = await stage.caller(usd)
  const { body } = await ask(stage.server, "GET", "/api/v1/keys", { key: caller.key })
  const keyId = (body as { readonly data: ReadonlyArray<{ readonly id: string }> }).data[0]?.id ?? ""
  return { caller, of: { userId: caller.userId, keyId } }
}

/** A session in the store, as another process of the cluster has it. */
const stored = (of: Pick<SessionFacts, "userId" | "keyId">, changes: Parameters<typeof newSession>[0] = {}) =>
  Effect.gen(function* () {
    const { facts, state } = yield* newSession(changes, of)
    yield* Effect.flatMap(StepStore, ({ create }) => create(facts, state))
    return { id: facts.id, facts, state }
  })

layer(processLayer.pipe(Layer.provideMerge(server)), live)("agents over REST", (it) => {
  it.effect("GET /agent says how to reach the gateway, and what the key may run", () =>
    onStage(async (stage) => {
      const { key } = await stage.caller(1)
      const { downloads, downloads_available, downloads_note, install, ...info } = await infoOf(stage, key)
      assert.deepStrictEqual(info, {
        protocol: 1,
        gateway: {
          url: `${stage.server.url.replace("http", "ws")}/api/v1/agent/ws`,
          path: "/api/v1/agent/ws",
          auth: "Authorization: Bearer <API_KEY> on the upgrade request"
        },
        tools: ["read", "write", "edit", "ls", "find", "grep", "bash"],
        billing: { mode: "credits", plan: null, covers_direct_api: false },
        default_model: coder,
        models: [
          { id: coder, name: "Coder", context_length: 100_000 },
          { id: second, name: second, context_length: 50_000 },
          { id: free, name: free, context_length: 100_000 }
        ]
      })
      assert.strictEqual(downloads_available, downloads.length > 0)
      assert.strictEqual(downloads_note === null, downloads_available)
      assert.include(install.source, "npm")
      assert.strictEqual(install.binary !== "", downloads_available)
    })
  )

  it.effect(
    "GET /agent has as default the first model that the key can pay for, else a free one, and says what pays",
    () =>
      onStage(async (stage) => {
        const chosen = async (key: string) => {
          const { billing, default_model } = await infoOf(stage, key)
          return [default_model, billing.mode, billing.plan, billing.covers_direct_api]
        }
        const poor = await stage.caller(0)
        assert.deepStrictEqual(await chosen(poor.key), [free, "free", null, false])
        const rich = await stage.caller(1)
        assert.deepStrictEqual(await chosen(rich.key), [coder, "credits", null, false])
        const some = await stage.caller(0)
        await subscribe(stage, some.userId, { models: [second], covers_direct_api: true })
        assert.deepStrictEqual(await chosen(some.key), [second, "subscription", "Agents", true])
        const used = await stage.caller(0)
        await subscribe(stage, used.userId, { allowances: { hour: 0, day: 1, week: 1 } })
        assert.deepStrictEqual(await chosen(used.key), [free, "free", "Agents", false])
        const capped = await rich.makeKey({ kind: "router", spend_limit_usd: 0 })
        assert.deepStrictEqual(await chosen(capped), [free, "free", null, false])
        const none = await poor.makeKey({ kind: "router", models: [coder] })
        assert.deepStrictEqual(await chosen(none), [null, "credits", null, false])
      })
  )

  it.effect(
    "GET /agent shows a router key its own models, and collections with what the least of their tool users holds",
    () =>
      onStage(async (stage) => {
        const caller = await stage.caller(1)
        const mixed = await caller.collect([plain, coder, second])
        const chatty = await caller.collect([plain])
        const first = await caller.collect([plain, coder], false)
        const ids = async (key: string) =>
          (await infoOf(stage, key)).models.map(({ context_length, id }) => [id, context_length])
        const all = await ids(caller.key)
        assert.deepStrictEqual(all.slice(3), [[mixed, 50_000]])
        for (const one of [chatty, first]) assert.notInclude(JSON.stringify(all), one)
        const one = await caller.makeKey({ kind: "router", models: [second, plain] })
        assert.deepStrictEqual(await ids(one), [[second, 50_000]])
        const { body } = await ask(stage.server, "GET", "/api/v1/collections", { key: caller.key })
        const { data } = body as {
          readonly data: ReadonlyArray<{ readonly id: string; readonly model: string }>
        }
        const id = data.find(({ model }) => model === mixed)?.id
        const collected = await caller.makeKey({ kind: "router", collections: [id] })
        assert.deepStrictEqual(await ids(collected), [[mixed, 50_000]])
        const stranger = await stage.caller(1)
        assert.lengthOf(await ids(stranger.key), 3)
      })
  )

  it.effect("sessions are made over the socket: POST is 405", () =>
    onStage(async ({ server }) => {
      const wrong = await ask(server, "POST", sessions)
      assert.deepStrictEqual([wrong.status, wrong.headers.get("allow")], [405, "GET, HEAD"])
    })
  )

  const stage = <A>(run: (stage: Stage) => Promise<A>) =>
    Effect.gen(function* () {
      let result: A | undefined
      yield* onStage(async (on) => void (result = await run(on)))
      return result as A
    })
  const get = (on: Stage, path: string, key: string): Promise<Answer> => ask(on.server, "GET", path, { key })

  it.effect(
    "sessions are listed for their owner, whichever key asks, the latest first, as many as asked for",
    () =>
      Effect.gen(function* () {
        const { caller, of } = yield* stage((on) => someone(on))
        const made: Array<string> = []
        for (let count = 0; count < 25; count++) {
          const changes = { status: "ended", endedAt: Date.now(), endReason: "client_bye" } as const
          made.unshift((yield* stored(of, changes)).id)
        }
        yield* stage(async (on) => {
          const ids = async (query: string, key = caller.key) => {
            const { body, status } = await get(on, `${sessions}${query}`, key)
            assert.strictEqual(status, 200)
            const list = body as { readonly object: string; readonly data: ReadonlyArray<AgentSession> }
            assert.strictEqual(list.object, "list")
            return list.data.map(({ id }) => id)
          }
          const all = await ids("?limit=100")
          assert.sameMembers(all, made)
          assert.deepStrictEqual(await ids(""), all.slice(0, 20))
          assert.deepStrictEqual(await ids("?limit=1&foo=bar"), all.slice(0, 1))
          assert.deepStrictEqual(await ids("", await caller.makeKey({ kind: "router" })), all.slice(0, 20))
          assert.deepStrictEqual(await ids("", (await on.caller(0)).key), [])
          for (const limit of ["0", "101", "x", "1.5"]) {
            const { body, status } = await get(on, `${sessions}?limit=${limit}`, caller.key)
            assert.strictEqual(status, 400)
            assert.match((body as { error: string }).error, /^limit/)
          }
        })
      })
  )

  it.effect("sessions are read with their transcript in pages, and are nobody else's business", () =>
    Effect.gen(function* () {
      const { caller, of } = yield* stage((on) => someone(on))
      const { id, state } = yield* stored(of)
      const steps = Array.from({ length: 5 }, (_, index) => stepOf(index, promptBody(`\u0000 ${index}`)))
      yield* Effect.flatMap(StepStore, ({ write }) =>
        write({ sessionId: id, epoch: 1, state: { ...state, prompts: 5 }, steps })
      )
      yield* stage(async (on) => {
        const page = async (query: string) => {
          const { body, status } = await get(on, `${sessions}/${id}${query}`, caller.key)
          assert.strictEqual(status, 200)
          const { status: state, transcript, prompts } = body as AgentSessionDetail
          assert.deepStrictEqual([state, prompts], ["idle", 5])
          const texts = transcript.data.map((entry) => entry.type === "prompt" && entry.text)
          return [texts, transcript.next]
        }
        assert.deepStrictEqual(await page(""), [["\0 0", "\0 1", "\0 2", "\0 3", "\0 4"], null])
        assert.deepStrictEqual(await page("?limit=2"), [["\0 0", "\0 1"], 1])
        assert.deepStrictEqual(await page("?limit=2&after=1"), [["\0 2", "\0 3"], 3])
        assert.deepStrictEqual(await page("?limit=2&after=3"), [["\0 4"], null])
        assert.deepStrictEqual(await page("?after=4"), [[], null])
        assert.strictEqual((await get(on, `${sessions}/${id}?after=-1`, caller.key)).status, 400)
        const stranger = await on.caller(0)
        for (const path of [`${sessions}/${id}`, `${sessions}/ses_0000000000000000000000`, `${sessions}/x`]) {
          for (const method of ["GET", "DELETE"] as const) {
            const { body, status } = await ask(on.server, method, path, { key: stranger.key })
            assert.deepStrictEqual([status, body], [404, notFound], `${method} ${path}`)
          }
        }
      })
    })
  )

  it.effect(
    "sessions are ended for good by their owner, also those that nobody has, or that said goodbye",
    () =>
      Effect.gen(function* () {
        const { caller, of } = yield* stage((on) => someone(on))
        const detached = yield* stored(of, { detachedAt: Date.now() })
        const left = yield* stored(of, { status: "ended", endedAt: Date.now(), endReason: "client_bye" })
        const expired = yield* stored(of, { status: "ended", endedAt: Date.now(), endReason: "expired" })
        for (const [{ id }, reason] of [
          [detached, "ended_by_owner"],
          [left, "ended_by_owner"],
          [expired, "expired"]
        ] as const) {
          yield* stage(async (on) => {
            for (let time = 0; time < 2; time++) {
              const { body, status } = await ask(on.server, "DELETE", `${sessions}/${id}`, {
                key: caller.key
              })
              const { end_reason, ended_at, live: isLive, status: state } = body as AgentSession
              assert.deepStrictEqual([status, state, isLive, end_reason], [200, "ended", false, reason])
              assert.isNotNull(ended_at)
            }
          })
          assert.isUndefined(yield* Effect.flatMap(StepStore, ({ claim }) => claim(id)))
        }
        const { id: sessionId, state } = detached
        const late = yield* Effect.flip(
          Effect.flatMap(StepStore, ({ write }) => write({ sessionId, epoch: 1, state, steps: [stepOf(0)] }))
        )
        assert.strictEqual(late._tag, "OwnershipLost")
      })
  )

  const sessionOf = async ({ server }: Stage, { key }: Caller, id: string): Promise<AgentSessionDetail> =>
    (await ask(server, "GET", `${sessions}/${id}`, { key })).body as AgentSessionDetail

  it.effect(
    "a session over the socket is shown as it is, and is over at once when its owner ends it: its client is told, and stays away",
    () =>
      onStage(async (stage) => {
        const caller = await stage.caller(1)
        const { server } = stage
        const socket = await AgentSocket.open(server.url, caller.key)
        const id = socket.sessionId
        const is = (status: string) =>
          until(`it is ${status}`, async () => {
            const session = await sessionOf(stage, caller, id)
            return session.status === status ? undefined : JSON.stringify(session)
          })
        await is("idle")
        socket.leave()
        await is("detached")
        const again = await AgentSocket.open(server.url, caller.key, { resume: id })
        await is("idle")
        const { body, status } = await ask(server, "DELETE", `${sessions}/${id}`, { key: caller.key })
        assert.deepInclude(body, { id, status: "ended", live: false, end_reason: "ended_by_owner" })
        assert.strictEqual(status, 200)
        assert.strictEqual(await again.closed(), 1000)
        assert.deepInclude(again.find("bye"), { reason: "ended", resumable: false })
        const refused = await AgentSocket.open(server.url, caller.key, { resume: id })
        assert.deepInclude(refused.find("error"), { code: "unknown_session", fatal: true })
      })
  )

  it.effect(
    "a session over the socket is paid by a plan that does not cover direct calls, and is in the usage of source agent",
    () =>
      onStage(async (stage) => {
        const caller = await stage.caller(1)
        const { server } = stage
        await subscribe(stage, caller.userId, {})
        stage.play({ [coder]: answersWith("Hello there", { usage: tokens(100, 20) }) })
        const socket = await AgentSocket.open(server.url, caller.key, { model: coder })
        assert.deepInclude(socket.ready, {
          billing: { mode: "subscription", plan: "Agents", covers_direct_api: false }
        })
        socket.say({ type: "prompt", id: "p-1", text: "hi" })
        const done = await socket.hear("prompt.done")
        assert.deepInclude(done, { status: "completed", coveredBySubscription: true, turns: 1 })
        const direct = await caller.say(coder, "hi")
        assert.strictEqual(direct.router?.covered_by_subscription, false)

        const usage = async (query: string): Promise<UsageOfWindow> =>
          (await ask(server, "GET", `/api/v1/usage?window=ever${query}`, { key: caller.key }))
            .body as UsageOfWindow
        const requests = async (query: string) => {
          const { requests, totalTokens } = (await usage(query)).usage.ever ?? assert.fail(query)
          return [requests, totalTokens]
        }
        assert.deepStrictEqual(await requests("&source=agent"), [1, 120])
        assert.deepStrictEqual(await requests("&source=api"), [1, 120])
        assert.deepStrictEqual(await requests(""), [2, 240])
        await stage.settled([caller], priceOf(100, 20))
        const { body } = await ask(server, "GET", "/api/v1/subscription", { key: caller.key })
        const { allowances } = body as OwnSubscription
        assert.strictEqual(allowances.find(({ window }) => window === "week")?.tokens_used, 120)
        const verified = await ask(server, "GET", "/api/v1/admin/ledger/verify")
        assert.deepInclude(verified.body, { ok: true, loss: "0", differences: [] })

        const { transcript, ...session } = await sessionOf(stage, caller, socket.sessionId)
        assert.deepInclude(session, { prompts: 1, prompt_tokens: 100, completion_tokens: 20, cost_usd: 0 })
        assert.deepStrictEqual(
          transcript.data.map((entry) => [
            entry.type,
            entry.type === "message" && entry.content,
            "covered_by_subscription" in entry && entry.covered_by_subscription
          ]),
          [
            ["prompt", false, false],
            ["message", [{ type: "text", text: "Hello there" }], true],
            ["done", false, true]
          ]
        )
      })
  )
})
