import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { type SandboxClient, startSandbox } from "#test/sandbox/SandboxClient.ts"
import { makeHome, startAgent } from "./AgentProcess.ts"
import { inDirectory } from "./TestClient.ts"

const plan = `read src/add.mjs
edit src/add.mjs: "a - b" => "a + b"
& edit ./src/add.mjs: "(a, b)" => "(a, b = 0)"
& read src/add.mjs
run node --test
run echo once >> log; sleep 1
commit "Fix add"
say Fixed and committed.`

const makeProject = (workspace: string): void => {
  mkdirSync(join(workspace, "src"))
  writeFileSync(join(workspace, "src/add.mjs"), "export const add = (a, b) => a - b\n")
  writeFileSync(
    join(workspace, "add.test.mjs"),
    `import { strictEqual } from "node:assert"
import { test } from "node:test"
import { add } from './src/add.mjs'
test("adds", () => strictEqual(add(1, 2), 3))
`
  )
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", ["-C", workspace, ...args])
  git("init", "-q")
  git("config", "user.name", "Ada")
  git("config", "user.email", "ada@example.com")
  git("add", ".")
  git("commit", "-q", "-m", "A start")
}

/** The lines of `--mode json`, but for the client's own. */
const framesOf = (out: string): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ seq }) => seq !== undefined)

describe("signalbox-agent with a server", () => {
  let sandbox: SandboxClient
  let server: ServerProcess
  let caller: Caller
  beforeAll(async () => {
    sandbox = await startSandbox({ wordMillis: 2 })
    server = await startServer({ env: { UPSTREAM_URL: sandbox.url } })
    caller = await makeCaller(server, 5)
  })
  afterAll(async () => {
    await server?.dispose()
    await sandbox?.close()
  })

  it("mends, tests and commits a project while the server is killed in the middle of a command", () =>
    inDirectory(async (directory) => {
      const home = makeHome(directory, server)
      makeProject(home.workspace)
      const agent = startAgent(
        home,
        [
          "-p",
          plan,
          "--model",
          "sandbox/coder",
          "--mode",
          "json",
          "--allow",
          "commit,repository,unsandboxed"
        ],
        { environment: { SIGNALBOX_KEY: caller.key } }
      )
      while (!existsSync(join(home.workspace, "log"))) {
        const isOver = await Promise.race([agent.ended, sleep(20)])
        if (isOver !== undefined) assert.fail(`It ended with ${isOver.code}: ${isOver.out}${isOver.err}`)
      }
      await server.stop("SIGKILL")
      await server.start()
      const { code, err, out } = await agent.ended
      assert.strictEqual(code, 0, `${out}\n${err}`)
      assert.strictEqual(readFileSync(join(home.workspace, "log"), "utf8"), "once\n")
      const mended = readFileSync(join(home.workspace, "src/add.mjs"), "utf8")
      assert.strictEqual(mended, "export const add = (a, b = 0) => a + b\n")
      const log = execFileSync("git", ["-C", home.workspace, "log", "--format=%an: %s"], { encoding: "utf8" })
      assert.strictEqual(log, "Ada: Fix add\nAda: A start\n")
      const frames = framesOf(out)
      const numbers = frames.map(({ seq }) => Number(seq))
      assert.deepStrictEqual(
        numbers,
        [...new Set(numbers)].sort((a, b) => a - b)
      )
      const ended = frames.flatMap((frame) => (frame.kind === "tool_end" ? [[frame.ok, frame.denied]] : []))
      assert.deepStrictEqual(
        ended,
        Array.from({ length: 7 }, () => [true, false])
      )
      assert.match(out, /"text":"Fixed and committed\."/)
      const usage = await ask(server, "GET", "/api/v1/usage?source=agent", { key: caller.key })
      const messages = frames.filter(({ kind }) => kind === "message_end")
      assert.strictEqual(messages.length, 6)
      const { usage: windows } = usage.body as { usage: { month: { requests: number } } }
      assert.strictEqual(windows.month.requests, messages.length)
    }))
})
