import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { makeCaller, type Caller, type Credits } from "#test/llm/Caller.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { freePort, type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { until } from "#test/harness/Eventually.ts"
import { MovingClient } from "./MovingClient.ts"

/** AGENT_KILLS sets how often the home of the sessions is killed, AGENT_SEED repeats a run. */
const kills = Number(process.env["AGENT_KILLS"] ?? 1)
const seed = Number(process.env["AGENT_SEED"] ?? Date.now() % 2_147_483_647)

describe("two servers on one Postgres", { timeout: 300_000 + kills * 60_000 }, () => {
  const random = seededRandom(seed)
  let stores: ServerStores
  let first: ServerProcess
  let second: ServerProcess
  let caller: Caller

  const start = async (): Promise<ServerProcess> =>
    startServer({
      env: {
        ...stores.env,
        ROOMS: "accounts,llm,agents",
        CLUSTER_ADDRESS: `127.0.0.1:${await freePort()}`,
        CLUSTER_SECRET: "a secret of the two servers of this test",
        CLUSTER_SILENT_SECONDS: "4"
      }
    })

  beforeAll(async () => {
    stores = await openStores()
    first = await start()
    second = await start()
    caller = await makeCaller(first, 10)
  })
  afterAll(async () => {
    await second?.dispose()
    await first?.dispose()
    await stores?.close()
  })

  const holds = (what: string, condition: () => boolean): Promise<void> =>
    until(`${what} (AGENT_SEED=${seed})`, async () => (condition() ? undefined : "not yet"), 45_000)

  const withClients = async (
    at: ServerProcess,
    count: number,
    use: (clients: ReadonlyArray<MovingClient>) => Promise<void>
  ): Promise<void> => {
    const clients = Array.from({ length: count }, () => new MovingClient(at, caller.key))
    const stays = clients.map((client) => client.stay())
    try {
      await holds("all are attached", () => clients.every(({ sessionId }) => sessionId !== ""))
      await use(clients)
    } finally {
      for (const client of clients) client.leave()
      await Promise.all(stays)
    }
  }

  const has = (client: MovingClient, type: string, more: object = {}): boolean =>
    client.frames.some((frame) =>
      Object.entries({ type, ...more }).every(([name, value]) => frame[name] === value)
    )
  const deltas = ({ frames }: MovingClient) => frames.filter(({ kind }) => kind === "text_delta")
  const readies = ({ frames }: MovingClient) => frames.filter(({ type }) => type === "ready")

  /** The transcript, which is the same wherever it is asked for. */
  const transcriptOf = async (
    { sessionId }: MovingClient,
    servers: ReadonlyArray<ServerProcess>
  ): Promise<string> => {
    const path = `/api/v1/agent/sessions/${sessionId}`
    const said = await Promise.all(servers.map((server) => ask(server, "GET", path, { key: caller.key })))
    for (const { body, status } of said) {
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(body, said[0]?.body)
    }
    return JSON.stringify(said[0]?.body)
  }

  /** Once in the prompt, and once as the model's words. */
  const isSaid = (transcript: string, words: string): boolean => transcript.split(words).length === 3

  it("say which part of the sessions is whose", async () => {
    const parts = await Promise.all(
      [first, second].map(async (server) => {
        const ready = await ask(server, "GET", "/readyz", { key: "" })
        return parseInt(textAt(ready, "components", "agent-homes", "detail"), 10)
      })
    )
    assert.isAbove(Math.min(...parts), 0)
  })

  it("let a client that comes to the other one in the middle of an answer go on", async () => {
    await withClients(first, 1, async ([client]) => {
      if (client === undefined) return
      client.say({ type: "prompt", id: "p", text: "wait 20\nwords 40\nrun one\nsay Moved." })
      await holds("the answer has begun", () => deltas(client).length > 3)
      client.moveTo(second)
      await holds("it is attached again", () => readies(client).length === 2)
      assert.deepInclude(readies(client)[1], { resumed: true, activePrompt: "p" })
      await holds("it is asked to run", () => client.running.length === 1)
      client.running[0]?.finish()
      await holds("the prompt is done", () => has(client, "prompt.done", { id: "p", status: "completed" }))
      // The answer that had begun is the one that ended: its session stayed where it was.
      assert.strictEqual(new Set(deltas(client).map(({ messageId }) => messageId)).size, 2)
      assert.isFalse(has(client, "event", { kind: "replay_gap" }))
      assert.deepStrictEqual(client.ran, ["one"])
      assert.isTrue(isSaid(await transcriptOf(client, [first, second]), "Moved."))
    })
  })

  const finishesAlone = async (): Promise<void> => {
    let client: MovingClient | undefined
    await withClients(second, 1, async ([only]) => {
      client = only
      only?.say({ type: "prompt", id: "p", text: "wait 100\nwords 100\nsay To nobody." })
      await holds("the answer has begun", () => only !== undefined && deltas(only).length > 3)
      only?.drop()
    })
    await second.stop("SIGKILL")
    await until("the answer is there", async () => {
      const transcript = await transcriptOf(client ?? assert.fail(), [first])
      return isSaid(transcript, "To nobody.") ? undefined : transcript
    })
    await second.start()
  }
  if (kills > 1) it("finish what a killed one was saying to nobody", finishesAlone)

  it("take over what a killed one worked on: no call is made twice, and nothing is missing", async () => {
    for (let round = 0; round < kills; round++) await killedOnce(round)
  })

  it("leave books that add up", async () => {
    const living = kills % 2 === 0 ? first : second
    // The first boot made the administrator; the second server has no key file of its own.
    const key = first.adminKey()
    const { body } = await ask(living, "GET", "/api/v1/admin/ledger/verify", { key })
    assert.deepInclude(body, { ok: true, differences: [] })
    const credits = (await ask(living, "GET", "/api/v1/credits", { key: caller.key })).body
    assert.isAbove((credits as Credits).lifetime_spent_usd, 0)
  })

  /** One session is answering, one runs a tool, one's client is relayed and does both. */
  const killedOnce = async (round: number): Promise<void> => {
    const [home, other] = round % 2 === 0 ? [first, second] : [second, first]
    if (round > 0) await other.start()
    await withClients(home, 3, async (clients) => {
      const [answering, working, relayed] = clients
      if (answering === undefined || working === undefined || relayed === undefined) return
      relayed.moveTo(other)
      await holds("one is relayed", () => readies(relayed).length === 2)
      answering.say({ type: "prompt", id: "p", text: "wait 30\nwords 50\nrun a\nsay After all." })
      working.say({ type: "prompt", id: "p", text: "run b\nrun c\nsay After all." })
      relayed.say({ type: "prompt", id: "p", text: "run d\nwait 30\nwords 50\nrun e\nsay After all." })
      await holds("tools are running", () => working.running.length === 1 && relayed.running.length === 1)
      relayed.running[0]?.finish()
      const words = round === 0 ? 3 : Math.floor(random() * 30)
      await holds(`two have said ${words} words`, () =>
        [answering, relayed].every((client) => deltas(client).length >= words)
      )
      await home.stop("SIGKILL")
      working.running[0]?.finish()
      const killed = performance.now()
      for (const client of clients) client.moveTo(other)
      const finishing = setInterval(() => {
        for (const client of clients) for (const { finish } of client.running) finish()
      }, 20)
      await holds("all are done", () => clients.every((client) => has(client, "prompt.done"))).finally(() =>
        clearInterval(finishing)
      )
      assert.isBelow(performance.now() - killed, 60_000)
      assert.deepStrictEqual(
        clients.map(({ ran }) => ran.toSorted()),
        [["a"], ["b", "c"], ["d", "e"]]
      )
      for (const client of clients) {
        assert.isTrue(has(client, "prompt.done", { id: "p", status: "completed" }))
        const transcript = await transcriptOf(client, [other])
        assert.isTrue(isSaid(transcript, "After all."), transcript)
        for (const command of client.ran) assert.strictEqual(transcript.split(`did ${command}`).length, 2)
      }
    })
  }
})
