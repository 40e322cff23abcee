import { existsSync, statSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { ToolRunner } from "#src/clients/agent/tools/ToolRunner.ts"
import { type AgentProcess, type Home, makeHome, startAgent } from "../AgentProcess.ts"
import { ScriptedServer, sessionId } from "../ScriptedServer.ts"
import { inDirectory, TestClient } from "../TestClient.ts"

const script = (command: string) => async (session: ScriptedServer["session"]) => {
  await session.call("c1", "proc.exec", { command, timeout: agentLimits.execSeconds })
  session.text("m", "over")
  session.done()
}

const killed = async ({ child, ended }: AgentProcess): Promise<void> => {
  child.kill("SIGKILL")
  await ended
}

/** The same session and journal in a client of this process, until its prompt is done. */
const resumed = async (
  server: ScriptedServer,
  { configDir, stateDir, workspace }: Home
): Promise<TestClient> => {
  const runner = await ToolRunner.open({
    root: workspace,
    configDir,
    stateDir,
    sandbox: "auto",
    network: "ask"
  })
  const test = new TestClient(server, stateDir, {
    workspace: { root: workspace, name: "work" },
    resume: sessionId,
    approve: () => Promise.resolve("once"),
    run: (call, hooks) => runner.run(call, hooks)
  })
  await test.client.start()
  await test.until(() => test.frames.some(({ type }) => type === "prompt.done"))
  await test.client.bye()
  await runner.close()
  return test
}

const allowed = ["-p", "go", "--mode", "json", "--allow", "unsandboxed"]

const inHome = (command: string, use: (server: ScriptedServer, home: Home) => Promise<void>): Promise<void> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script(command))
    try {
      await use(server, makeHome(directory, server))
    } finally {
      await server.close()
    }
  })

/** Waits for what another process writes: a shell makes the file before it does. */
const untilWritten = async (path: string): Promise<void> => {
  while (!existsSync(path) || statSync(path).size === 0)
    await new Promise((resolve) => setTimeout(resolve, 10))
}

describe("a client that is killed", () => {
  const note = "echo once >> log"

  it("before a call began makes it after its restart", () =>
    inHome(note, async (server, home) => {
      const agent = startAgent(home, allowed)
      const whenPrompted = new Promise<void>((resolve) => {
        const take = server.session.take.bind(server.session)
        server.session.take = (frame) => {
          // The prompt has arrived; its call finds no client.
          if (frame.type === "prompt") server.session.deliver = undefined
          take(frame)
          if (frame.type === "prompt") resolve()
        }
      })
      await whenPrompted
      await killed(agent)
      const test = await resumed(server, home)
      assert.deepStrictEqual(test.runs, ["c1"])
      assert.strictEqual(readFileSync(join(home.workspace, "log"), "utf8"), "once\n")
    }))

  it("while a call runs says that its outcome is unknown, and does not make it again", () =>
    inHome(`${note}; sleep 30`, async (server, home) => {
      const agent = startAgent(home, allowed)
      await untilWritten(join(home.workspace, "log"))
      await killed(agent)
      const test = await resumed(server, home)
      assert.deepStrictEqual(test.runs, [])
      assert.strictEqual(server.session.results.get("c1")?.[0]?.error?.code, "interrupted")
      assert.strictEqual(readFileSync(join(home.workspace, "log"), "utf8"), "once\n")
    }))

  it("after a call, before the server had its outcome, tells it after its restart", () =>
    inHome(note, async (server, home) => {
      const agent = startAgent(home, allowed)
      const whenLost = new Promise<void>((resolve) => {
        const take = server.session.take.bind(server.session)
        server.session.take = (frame) => {
          if (frame.type !== "tool.result") return take(frame)
          server.session.take = take
          resolve()
        }
      })
      await whenLost
      await killed(agent)
      const test = await resumed(server, home)
      assert.deepStrictEqual(test.runs, [])
      const [result] = server.session.results.get("c1") ?? []
      assert.deepInclude(result?.result, { exitCode: 0 })
      assert.strictEqual(readFileSync(join(home.workspace, "log"), "utf8"), "once\n")
    }))
})
