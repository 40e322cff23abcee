import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import { until } from "#test/harness/Eventually.ts"
import { SimulatedServer } from "./SimulatedServer.ts"
import { SimulatedDatabase } from "./SimulatedStore.ts"

const hello = (more: object = {}): string =>
  JSON.stringify({
    type: "hello",
    protocol: 1,
    client: { version: "1", platform: "test", journalId: "j1" },
    workspace: { root: "/w", name: "w" },
    ...more
  })

/** One client's socket, as the gateway has it. */
class Caller {
  readonly heard: Array<Readonly<Record<string, unknown>>> = []
  closedWith: number | undefined
  readonly #listener: HotSocketListener | undefined

  constructor(server: SimulatedServer) {
    this.#listener = server.connect({
      bufferedBytes: 0,
      send: (text) => {
        this.heard.push(JSON.parse(text))
        return true
      },
      close: (code) => this.closes(code)
    })
  }

  says(text: string): void {
    this.#listener?.received(text)
  }

  closes(code: number): void {
    this.closedWith ??= code
    this.#listener?.closed(code)
  }

  async hears(type: string): Promise<Readonly<Record<string, unknown>>> {
    const is = (frame: Readonly<Record<string, unknown>>) => frame["type"] === type
    await until(type, async () => (this.heard.some(is) ? undefined : JSON.stringify(this.heard)))
    return this.heard.find(is) ?? {}
  }
}

const served = (run: (server: SimulatedServer, database: SimulatedDatabase) => Promise<void>) =>
  Effect.promise(async () => {
    const database = new SimulatedDatabase()
    const server = new SimulatedServer(database, [])
    await server.start()
    await run(server, database)
    await server.dispose()
  })

it.live("A client that leaves before it is told of its new session leaves none behind", () =>
  served(async (server, database) => {
    const caller = new Caller(server)
    caller.says(hello())
    caller.closes(1006)
    await until("the session is over", async () =>
      [...database.sessions.values()].some(({ state }) => state.status === "ended") ? undefined : "no"
    )
    assert.strictEqual(await server.run(({ all }) => Effect.sync(() => [...all()].length)), 0)
  })
)

it.live("A client is not attached to a session that was let go while its hello was answered", () =>
  served(async (server) => {
    const one = new Caller(server)
    one.says(hello())
    const { sessionId } = await one.hears("ready")
    one.closes(1006)
    server.duringHello = Effect.promise(() =>
      server.run(({ leave, peek }) => {
        const session = peek(String(sessionId))
        return session === undefined ? Effect.void : leave(session)
      })
    )
    const two = new Caller(server)
    two.says(hello({ resume: sessionId, lastSeq: 0 }))
    assert.deepInclude(await two.hears("error"), { code: "overloaded", fatal: true })
    assert.strictEqual(two.closedWith, 1012)
    server.duringHello = Effect.void
    const three = new Caller(server)
    three.says(hello({ resume: sessionId, lastSeq: 0 }))
    assert.deepInclude(await three.hears("ready"), { resumed: true, sessionId })
  })
)

it.live("A session that was claimed for a client which is then refused is not left as attached", () =>
  served(async (server, database) => {
    const one = new Caller(server)
    one.says(hello())
    const { sessionId } = await one.hears("ready")
    const stored = database.sessions.get(String(sessionId)) ?? assert.fail("it is not stored")
    assert.isNull(stored.state.detachedAt)
    await server.run(({ leave, peek }) => {
      const session = peek(String(sessionId))
      return session === undefined ? Effect.void : leave(session)
    })
    const two = new Caller(server)
    two.says(hello({ resume: sessionId, lastSeq: 0, workspace: { root: "/else", name: "else" } }))
    assert.deepInclude(await two.hears("error"), { code: "workspace_mismatch", fatal: true })
    await until("it is noted as detached", async () => (stored.state.detachedAt === null ? "no" : undefined))
  })
)

it.live("What a client says before its hello is answered is kept in bounds", () =>
  served(async (server) => {
    const caller = new Caller(server)
    caller.says(hello())
    const frame = "x".repeat(agentLimits.frameBytes)
    for (let said = 0; said < 64 && caller.closedWith === undefined; said++) caller.says(frame)
    assert.strictEqual(caller.closedWith, 4000)
    assert.deepInclude(caller.heard.at(-1), { code: "rate_limited", fatal: true })
  })
)
