import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { printable } from "#src/clients/agent/boundary/Printable.ts"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { protections } from "#src/clients/agent/exec/Protections.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { codeOf, okResult, put, withWorkspace, type TestWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)

const running = (sandbox: "auto" | "off"): void => {
  const using = (use: (workspace: TestWorkspace) => Promise<void>): Promise<void> =>
    withWorkspace(
      (workspace) => {
        workspace.answer = "once"
        return use(workspace)
      },
      { sandbox }
    )

  it("give exit code and output, whatever they are", () =>
    using(async ({ exec, root }) => {
      assert.deepInclude(await exec("echo out; echo err >&2; exit 3"), { exitCode: 3, output: "out\nerr\n" })
      assert.deepInclude(await exec("pwd; cat; test -t 0 || echo no terminal"), {
        exitCode: 0,
        output: `${root}\nno terminal\n`
      })
      assert.notStrictEqual((await exec("nonexistent-program")).exitCode, 0)
    }))

  it("stream what they print as it comes, with characters whole that were cut between two writes", () =>
    using(async ({ exec, streamed }) => {
      const { output } = await exec("printf 'a\\303'; sleep 0.1; printf '\\274b'; printf '\\360\\237'")
      assert.strictEqual(output, "aüb\ufffd")
      assert.strictEqual(streamed.join(""), output)
      assert.isFalse(streamed.slice(0, -1).join("").includes("\ufffd"))
    }))

  it("give the end of a long output, and the whole of it in a file that can be read", () =>
    using(async ({ run }) => {
      const result = okResult(await run("proc.exec", { command: "seq 1 30000" })) as {
        readonly [name: string]: unknown
      }
      assert.isTrue(result["truncated"])
      assert.match(String(result["output"]), /^28001\n28002\n[^]*\n30000\n$/)
      const whole = okResult(await run("fs.read", { path: result["fullOutputPath"], offset: 29_999 }))
      assert.deepInclude(whole, { content: "29999\n30000\n", totalLines: 30_000 })
      const path = String(result["fullOutputPath"])
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      assert.strictEqual(codeOf(await run("fs.write", { path, content: "" })), "outside_workspace")
      assert.strictEqual(
        codeOf(await run("fs.read", { path: `${path}/../../../gitconfig` })),
        "outside_workspace"
      )
      const again = okResult(await run("proc.exec", { command: `head -1 ${path}` }))
      assert.deepInclude(again, { output: "1\n" })
    }))

  it("end when the shell does, though a process it left holds the output open; that one is ended too", () =>
    using(async ({ exec, root }) => {
      const { output } = await exec("sleep 1000 & echo $! > pid; echo started")
      assert.strictEqual(output, "started\n")
      if (sandbox === "off") {
        const pid = Number(readFileSync(join(root, "pid"), "utf8"))
        while (isAlive(pid) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8")))
          await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }))

  it("are ended with all they started when their time is up, after a word of warning", () =>
    using(async ({ run }) => {
      const command = "trap 'echo warned; exit 1' TERM; sleep 1000 & wait"
      const outcome = await run("proc.exec", { command, timeout: 1 })
      assert.strictEqual(codeOf(outcome), "timeout")
      assert.include(JSON.stringify(outcome), "warned")
    }))

  it("are ended when the call is cancelled, and not begun when it was cancelled before", () =>
    using(async ({ run, root, streamed }) => {
      const stop = new AbortController()
      const outcome = run("proc.exec", { command: "echo begun; sleep 1000" }, stop.signal)
      while (streamed.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      stop.abort()
      assert.strictEqual(codeOf(await outcome), "cancelled")
      assert.strictEqual(codeOf(await run("proc.exec", { command: "touch made" }, stop.signal)), "cancelled")
      assert.isFalse(existsSync(join(root, "made")))
    }))

  it("see a short environment, without keys, and can raise no rights", () =>
    using(async ({ exec, run, asked }) => {
      const names = (await exec("env")).output.split("\n").map((line) => line.split("=")[0])
      for (const name of Object.keys(process.env).filter((name) =>
        /KEY|TOKEN|SECRET|AWS|SSH|^VITEST|^NODE/.test(name)
      ))
        assert.notInclude(names, name)
      assert.include(names, "GIT_CONFIG_COUNT")
      if (existsSync("/proc/self/status"))
        assert.include((await exec("cat /proc/self/status")).output, "NoNewPrivs:\t1\n")
      const before = asked.length
      for (const command of [
        "sudo id",
        "/usr/bin/sudo id",
        "env A=b sudo id",
        "sh -c 'doas id'",
        "echo $(su -c id)",
        "find . -exec pkexec {} +",
        'true && s"ud"o id',
        "x=`su`"
      ])
        assert.strictEqual(codeOf(await run("proc.exec", { command })), "denied", command)
      assert.strictEqual(asked.length, before)
    }))
}

describeWith(bubblewrap, "commands in a sandbox", () => running("auto"))
describe("commands without a sandbox", () => running("off"))

describe("approvals", () => {
  const touch = (workspace: TestWorkspace, name: string): Promise<string> =>
    workspace.run("proc.exec", { command: `touch ${name}` }).then(codeOf)

  it("are asked for every command where there is no sandbox, which shows it as it is, and are refused by no", () =>
    withWorkspace(async (workspace) => {
      const command = "ls\n\u001b[2K\rtouch made"
      assert.strictEqual(codeOf(await workspace.run("proc.exec", { command })), "denied")
      assert.deepStrictEqual(
        workspace.asked.map(({ kinds }) => kinds),
        [["unsandboxed"]]
      )
      assert.isTrue(workspace.asked[0]?.detail.startsWith(command))
      assert.isFalse(existsSync(join(workspace.root, "made")))
    }))

  it("are not waited for once the call is cancelled, and an answer that comes later changes nothing", () =>
    withWorkspace(async ({ root, runner }) => {
      const stop = new AbortController()
      const late = Promise.withResolvers<"always">()
      const asked = Promise.withResolvers<void>()
      const approve = (): Promise<"always"> => {
        asked.resolve()
        return late.promise
      }
      const hooks = { signal: stop.signal, onOutput: () => undefined, approve }
      const call = {
        callId: "x",
        method: "proc.exec",
        params: { command: "touch made" },
        timeoutMs: 0
      } as const
      const outcome = runner.run(call, hooks)
      await asked.promise
      stop.abort()
      assert.strictEqual(codeOf(await outcome), "cancelled")
      late.resolve("always")
      assert.strictEqual(
        codeOf(
          await runner.run(call, {
            ...hooks,
            signal: new AbortController().signal,
            approve: () => Promise.resolve("no")
          })
        ),
        "denied"
      )
      assert.isFalse(existsSync(join(root, "made")))
    }))

  it("cover exactly the same command for a session, and other workspaces or sessions only as always", () =>
    withWorkspace(async (workspace) => {
      workspace.answer = "session"
      assert.strictEqual(await touch(workspace, "a"), "ok")
      workspace.answer = "no"
      assert.strictEqual(await touch(workspace, "a"), "ok")
      assert.strictEqual(await touch(workspace, "a; touch b"), "denied")
      workspace.answer = "always"
      assert.strictEqual(await touch(workspace, "c"), "ok")
      workspace.answer = "no"
      const file = join(workspace.base, "client", "config", "approvals.json")
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(file, "..")).mode & 0o777, 0o700)
      const { approvals } = JSON.parse(readFileSync(file, "utf8")) as {
        approvals: Array<{ workspace: string }>
      }
      assert.deepStrictEqual(
        approvals.map(({ workspace: root }) => root),
        [workspace.root]
      )
      assert.strictEqual(await touch(workspace, "c"), "ok")
    }))

  it("are not believed from a file that others can write, or that is no list of them", () =>
    withWorkspace(async (workspace) => {
      const file = join(workspace.base, "client", "config", "approvals.json")
      const content = JSON.stringify({ [workspace.root]: [JSON.stringify([["unsandboxed"], "touch a", []])] })
      put(file, content)
      assert.strictEqual(await touch(workspace, "a"), "ok")
      const { chmodSync } = await import("node:fs")
      chmodSync(file, 0o666)
      assert.strictEqual(await touch(workspace, "a"), "denied")
      chmodSync(file, 0o600)
      writeFileSync(file, "[1")
      assert.strictEqual(await touch(workspace, "a"), "denied")
    }))
})

describe("what a user sees", () => {
  it("shows control characters and hidden letters of what came from outside", () => {
    assert.strictEqual(
      printable("a\u001b[31mb\r\nc\td\u0007\u202e\u200b\u009b"),
      "a␛[31mb\nc\td␇\\u{202e}\\u{200b}\\u{9b}"
    )
    assert.strictEqual(printable("safe\rrm -rf"), "safe␍rm -rf")
    assert.strictEqual(printable("ünï ⇒ 日本 🙂"), "ünï ⇒ 日本 🙂")
  })

  it("is told what protects this machine, and what does not", async () => {
    const { sandbox, protected: lines, notProtected, askedFor } = await protections()
    assert.isTrue(askedFor.some((line) => /^husky, at commits: \.husky, .*\(https:/.test(line)))
    assert.strictEqual(sandbox.usable, !("reason" in found))
    assert.isAbove(lines.length, 4)
    assert.isAbove(notProtected.length, 2)
  })
})
