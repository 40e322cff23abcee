import { execFileSync } from "node:child_process"
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { openWorkspace } from "#src/clients/agent/boundary/OpenWorkspace.ts"
import type { Workspace } from "#src/clients/agent/boundary/Walk.ts"
import { editFile } from "#src/clients/agent/tools/EditFile.ts"
import { failureOf } from "#src/clients/agent/tools/FailureOf.ts"
import { listDirectory } from "#src/clients/agent/tools/ListDirectory.ts"
import { readFile } from "#src/clients/agent/tools/ReadFile.ts"
import { writeFile } from "#src/clients/agent/tools/WriteFile.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { codeOf, put, withWorkspace } from "./TestWorkspace.ts"

const proc = requirement("/proc", () => (existsSync("/proc/self/fd") ? undefined : "this is no Linux"))

interface Place {
  readonly base: string
  readonly root: string
  readonly outside: string
  readonly workspace: Workspace
  /** each tool's result for a path: "ok" or its code */
  readonly read: (path: string) => Promise<string>
  readonly write: (path: string) => Promise<string>
  readonly edit: (path: string) => Promise<string>
  readonly list: (path: string) => Promise<string>
}

const codeFrom = async (path: string, use: () => unknown): Promise<string> => {
  try {
    await use()
    return "ok"
  } catch (error) {
    return failureOf(error, path).code
  }
}

const places = async (portable: boolean, use: (place: Place) => Promise<void>): Promise<void> => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "paths-")))
  const [root, outside] = [join(base, "workspace"), join(base, "outside")]
  mkdirSync(join(root, "in"), { recursive: true })
  put(join(root, "in", "f"), "inside")
  put(join(outside, "f"), "secret")
  const workspace = openWorkspace(root, { closed: [join(root, "client", "config")], portable })
  const yes = (): Promise<boolean> => Promise.resolve(true)
  try {
    await use({
      base,
      root,
      outside,
      workspace,
      read: (path) => codeFrom(path, () => readFile(workspace, { path })),
      write: (path) => codeFrom(path, () => writeFile(workspace, { path, content: "written" }, yes)),
      edit: (path) =>
        codeFrom(path, () => editFile(workspace, { path, edits: [{ oldText: "s", newText: "x" }] }, yes)),
      list: (path) => codeFrom(path, () => listDirectory(workspace, { path }))
    })
    assert.strictEqual(readFileSync(join(outside, "f"), "utf8"), "secret")
    assert.deepStrictEqual(readdirSync(outside), ["f"])
  } finally {
    workspace.jail.close()
    rmSync(base, { recursive: true, force: true })
  }
}

const attacks = (portable: boolean): void => {
  const refused = async (place: Place, path: string, code = "outside_workspace"): Promise<void> => {
    for (const tool of ["read", "write", "edit"] as const)
      assert.strictEqual(await place[tool](path), code, `${tool} ${path}`)
  }

  it("symlink escape: follows no link out, by name, by directory, absolute, relative or dangling", () =>
    places(portable, async (place) => {
      symlinkSync("../outside", join(place.root, "relative"))
      symlinkSync(place.outside, join(place.root, "absolute"))
      symlinkSync("../outside/f", join(place.root, "file"))
      symlinkSync("../outside/new", join(place.root, "dangling"))
      symlinkSync("relative", join(place.root, "chain"))
      symlinkSync("/", join(place.root, "slash"))
      symlinkSync(`${place.root}/../outside`, join(place.root, "dotted"))
      symlinkSync("/proc/self/root", join(place.root, "magic"))
      for (const directory of ["relative", "absolute", "chain", "dotted", "in/../absolute"]) {
        await refused(place, `${directory}/f`)
        assert.strictEqual(await place.write(`${directory}/new/x`), "outside_workspace")
        assert.strictEqual(await place.list(directory), "outside_workspace")
      }
      for (const path of ["file", "dangling", `slash${place.outside}/f`, `magic${place.outside}/f`])
        await refused(place, path)
    }))

  it("follows links that stay inside, and a link to itself to nowhere", () =>
    places(portable, async (place) => {
      symlinkSync("in", join(place.root, "alias"))
      symlinkSync(join(place.root, "in", "f"), join(place.root, "file"))
      symlinkSync("../alias/./f", join(place.root, "in", "round"))
      symlinkSync("loop", join(place.root, "loop"))
      for (const path of ["alias/f", "file", "in/round"]) assert.strictEqual(await place.read(path), "ok")
      assert.strictEqual(await place.write("in/round"), "ok")
      assert.strictEqual(readFileSync(join(place.root, "in", "f"), "utf8"), "written")
      assert.strictEqual(await place.read("loop"), "not_found")
      assert.strictEqual(await place.write("loop/x"), "not_found")
    }))

  it("path traversal: .., absolute paths, a sibling with the same start, NUL", () =>
    places(portable, async (place) => {
      put(join(place.base, "workspace-2", "f"), "secret")
      for (const path of [
        "../outside/f",
        "in/../../outside/f",
        `${place.outside}/f`,
        `${place.root}/../outside/f`,
        `${place.root}-2/f`,
        "/etc/passwd",
        "/proc/self/environ"
      ])
        await refused(place, path)
      await refused(place, "in/f\0.txt", "invalid_params")
      for (const path of ["~/f", "%2e%2e/outside/f", "..\\outside\\f", "file:///etc/passwd"])
        assert.strictEqual(await place.read(path), "not_found")
      assert.strictEqual(await place.read("in/./../in//f"), "ok")
      assert.strictEqual(await place.read(join(place.root, "in/f")), "ok")
    }))

  it("git hooks: writes nothing of git, in no spelling that some file system takes for it, existing or not", () =>
    places(portable, async (place) => {
      symlinkSync(".git", join(place.root, "link"))
      for (const name of [
        ".git",
        ".GIT",
        ".Git",
        ".git.",
        ".git ",
        ".g\u200cit",
        "GIT~1",
        ".git::$INDEX_ALLOCATION",
        "link",
        "in/.git"
      ])
        for (const path of [`${name}/hooks/pre-commit`, `${name}/config`, `${name}/info/attributes`, name])
          assert.strictEqual(await place.write(path), "denied", path)
      assert.isFalse(existsSync(join(place.root, ".git")))
      assert.isFalse(existsSync(join(place.root, "in", ".git")))
      for (const name of [".gitignore", ".github/workflows/x.yml", ".gitattributes"])
        assert.strictEqual(await place.write(name), "ok")
    }))

  it("git hooks: builds no bare repository, which git would obey wherever it lies", () =>
    places(portable, async (place) => {
      for (const path of ["bare/HEAD", "bare/config", "bare/objects/x"])
        assert.strictEqual(await place.write(path), "ok")
      assert.strictEqual(await place.write("bare/refs/heads/x"), "denied")
      assert.isFalse(existsSync(join(place.root, "bare", "refs")))
      mkdirSync(join(place.root, "bare", "refs"))
      for (const path of ["bare/config", "bare/hooks/post-checkout", "bare/objects/y"])
        assert.strictEqual(await place.write(path), "denied")
    }))

  it("its own configuration: neither read nor made by a tool, though it is missing, in any case of letters", () =>
    places(portable, async (place) => {
      for (const path of [
        "client/config",
        "client/config/approvals.json",
        "CLIENT/Config/x",
        join(place.root, "client/config/x")
      ])
        await refused(place, path, "denied")
      assert.deepStrictEqual(readdirSync(place.root), ["in"])
      put(join(place.root, "client", "config", "approvals.json"), "{}")
      await refused(place, "client/config/approvals.json", "denied")
      assert.strictEqual(await place.list("client/config"), "denied")
    }))

  it("other kinds of files: a named pipe, a socket and a device neither block nor are written", () =>
    places(portable, async (place) => {
      execFileSync("mkfifo", [join(place.root, "pipe")])
      const server = createServer().listen(join(place.root, "socket"))
      await new Promise((resolve) => server.once("listening", resolve))
      symlinkSync("pipe", join(place.root, "link"))
      for (const path of ["pipe", "socket", "link"]) await refused(place, path, "invalid_params")
      await new Promise((resolve) => server.close(resolve))
    }))

  it("hard links: a write goes to a new file, never through the old one", () =>
    places(portable, async (place) => {
      linkSync(join(place.outside, "f"), join(place.root, "hard"))
      assert.strictEqual(await place.edit("hard"), "ok")
      assert.strictEqual(readFileSync(join(place.root, "hard"), "utf8"), "xecret")
      linkSync(join(place.outside, "f"), join(place.root, "other"))
      assert.strictEqual(await place.write("other"), "ok")
    }))
}

describeWith(proc, "paths on Linux", () => attacks(false))
describe("paths elsewhere", () => attacks(true))

describe("a workspace", () => {
  const opened = (path: string, closed: ReadonlyArray<string> = []): string => {
    try {
      openWorkspace(path, { closed }).jail.close()
      return "opened"
    } catch (error) {
      return String(error)
    }
  }

  it("is neither the whole system, nor a home directory, nor a repository's inside, nor the client's own", () =>
    withWorkspace(({ base, root }) => {
      mkdirSync(join(root, ".git"))
      assert.match(opened("/"), /whole file system/)
      assert.match(opened(process.env["HOME"] ?? "/root"), /home directory/)
      assert.match(opened("/etc"), /belongs to the system/)
      assert.match(opened(join(root, ".git")), /\.git directory/)
      assert.match(opened(base, [base]), /belongs to the agent client/)
      assert.strictEqual(opened(root), "opened")
      return Promise.resolve()
    }))
})

describe("searches", () => {
  it("end at their deadline, and when cancelled, whatever the expression, the glob or the .gitignore", () =>
    withWorkspace(async ({ root, run, runner }) => {
      put(join(root, "a".repeat(40)), `${"a".repeat(60)}b`)
      const hooks = { onOutput: () => undefined, approve: () => Promise.resolve("no" as const) }
      const never = new AbortController().signal
      const limited = {
        callId: "x",
        method: "fs.grep",
        params: { pattern: "(a+)+$" },
        timeoutMs: 400
      } as const
      const stop = new AbortController()
      const cancelled = run("fs.grep", { pattern: "(a*)*c$" }, stop.signal)
      const timedOut = runner.run(limited, { ...hooks, signal: never })
      assert.strictEqual(codeOf(await timedOut), "timeout")
      stop.abort()
      assert.strictEqual(codeOf(await cancelled), "cancelled")
    }))
})

describeWith(proc, "a race", () => {
  it("reads and writes nothing outside while a thread exchanges directories and files with links", () =>
    places(false, async ({ root, outside, workspace, read, write }) => {
      mkdirSync(join(root, "d"))
      put(join(root, "d", "f"), "inside")
      const counters = new SharedArrayBuffer(8)
      const shared = new Int32Array(counters)
      const thread = new Worker(new URL("SwapThread.ts", import.meta.url), {
        workerData: { root, outside, counters }
      })
      const failed = new Promise<never>((_, reject) => thread.once("error", reject))
      const seen = new Map<string, number>()
      const count = (what: string): unknown => seen.set(what, (seen.get(what) ?? 0) + 1)
      const attack = async (): Promise<void> => {
        const end = performance.now() + 1_500
        // It is a race, and on a busy machine one side may hardly run: until both have won some of it.
        const wasRace = (): boolean =>
          Atomics.load(shared, 1) > 100 && seen.has("ok") && seen.has("outside_workspace")
        for (let round = 0; performance.now() < end || !wasRace(); round++) {
          let content = "inside"
          count(await codeFrom("d/f", () => ({ content } = readFile(workspace, { path: "d/f" }))))
          assert.strictEqual(content, "inside")
          if (round % 20 === 0) count(await write("d/new"))
          if (round % 50 === 0) count(await write("d/made/by/us"))
          if (Atomics.load(shared, 1) > 4_000 && wasRace()) break
        }
      }
      try {
        await Promise.race([attack(), failed])
      } finally {
        Atomics.store(shared, 0, 1)
        await new Promise((resolve) => thread.once("exit", resolve))
      }
      assert.deepStrictEqual(readdirSync(outside), ["f"])
      assert.strictEqual(await read("d/f"), "ok")
    }))
})
