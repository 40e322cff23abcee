import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { type Home, makeHome, startAgent } from "../AgentProcess.ts"
import { ScriptedServer } from "../ScriptedServer.ts"
import { inDirectory } from "../TestClient.ts"
import { codeOf, withWorkspace } from "./TestWorkspace.ts"

const linux = requirement("Linux's /proc", () =>
  existsSync("/proc/self/environ") ? undefined : "there is none"
)

const isRunning = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))

/** Runs `command` in a real client that was started with keys in its environment, and returns all that it printed. */
const asked = (
  command: string,
  start: (home: Home, args: ReadonlyArray<string>) => Promise<string>
): Promise<string> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(async (session) => {
      await session.call("c1", "proc.exec", { command, timeout: 20 })
      session.text("m", "over")
      session.done()
    })
    try {
      const args = ["-p", "go", "--mode", "json", "--sandbox", "off", "--allow", "unsandboxed"]
      const printed = await start(makeHome(directory, server), args)
      const result = server.session.results.get("c1")?.[0]
      assert.isTrue(result?.ok, `${JSON.stringify(result)} ${printed}`)
      return JSON.stringify(result)
    } finally {
      await server.close()
    }
  })

const secrets = { SIGNALBOX_KEY: "sk-of-the-test", SOME_TOKEN: "token-of-the-test" }
const readParents = [
  "pid=$PPID",
  // Every process above that is one of the client's: its launcher, where there is one, too.
  "while tr '\\0' ' ' < /proc/$pid/cmdline | grep -q 'signalbox-agent.mjs\\|agent/main.ts'",
  "do cat /proc/$pid/environ | tr '\\0' '\\n'; echo looked at $pid; pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)",
  "done; env"
].join("\n")

describeWith(linux, "commands without a sandbox", () => {
  it("read no key or token of the client's environment, which works with its key all the same", async () => {
    const output = await asked(readParents, async (home, args) => {
      const { err, out } = await startAgent(home, args, { environment: secrets }).ended
      return out + err
    })
    assert.match(output, /looked at \d+/)
    assert.notMatch(output, /of-the-test/)
  })

  it("leave nothing running that went to a session of its own, when they end, time out or are cancelled", () =>
    withWorkspace(async (workspace) => {
      workspace.answer = "once"
      const { exec, root, run } = workspace
      const pidOf = (name: string): number => Number(readFileSync(join(root, name), "utf8"))
      const daemon = (name: string): string =>
        `setsid sh -c 'echo $$ > ${name}; exec sleep 1000' > /dev/null 2>&1 & while [ ! -s ${name} ]; do :; done`
      await exec(daemon("one"))
      assert.isFalse(isRunning(pidOf("one")))
      const outcome = await run("proc.exec", { command: `${daemon("two")}; sleep 1000`, timeout: 1 })
      assert.strictEqual(codeOf(outcome), "timeout")
      assert.isFalse(isRunning(pidOf("two")))
      const stop = new AbortController()
      const cancelled = run("proc.exec", { command: `${daemon("three")}; echo up; sleep 1000` }, stop.signal)
      while (workspace.streamed.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      stop.abort()
      assert.strictEqual(codeOf(await cancelled), "cancelled")
      assert.isFalse(isRunning(pidOf("three")))
    }))

  it("leave nothing running that was started twice removed, and started again while it was ended", () =>
    withWorkspace(async (workspace) => {
      workspace.answer = "once"
      const again = "again() { echo x >> started; sleep 0.01; setsid sh ./again & }"
      await workspace.exec(
        `printf '%s\\n' "${again}" again > again; setsid setsid sh ./again & while [ ! -s started ]; do :; done`
      )
      const started = (): number => readFileSync(join(workspace.root, "started"), "utf8").length
      const before = started()
      // A sixth of a second is sixteen generations.
      spawnSync("sleep", ["0.16"])
      assert.strictEqual(started(), before)
    }))
})
