import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import packageJson from "../../package.json" with { type: "json" }
import { freePort, root } from "#test/harness/ServerProcess.ts"
import { signalbox } from "./Signalbox.ts"

const agentEntry = join(root, "src/clients/agent/main.ts")

/** Both programs follow one set of rules. */
const programs = [
  {
    name: "signalbox",
    run: (...args: ReadonlyArray<string>) => signalbox(args, { DATA_DIR: "/nowhere" }),
    sub: "users",
    typo: "usres"
  },
  {
    name: "signalbox-agent",
    run: (...args: ReadonlyArray<string>) => signalbox(args, { HOME: "/nowhere" }, agentEntry),
    sub: "doctor",
    typo: "docter"
  }
]

const linesOf = (text: string): ReadonlyArray<string> => text.trimEnd().split("\n")

describe.each(programs)("$name, called wrongly", ({ name, run, sub, typo }) => {
  it("suggests the nearest command in two lines on stderr, and ends with 2", async () => {
    const { code, err, out } = await run(typo)
    assert.deepStrictEqual([code, out], [2, ""])
    assert.deepStrictEqual(linesOf(err), [
      `${name}: unknown command "${typo}"; did you mean "${sub}"?`,
      `All commands: ${name} --help`
    ])
  })

  it("names an unknown flag likewise, and the command whose flag it would be", async () => {
    const { code, err, out } = await run(sub, "--jsno")
    assert.deepStrictEqual([code, out], [2, ""])
    assert.lengthOf(linesOf(err), 2)
    assert.include(err, `${name} ${sub}: unknown flag --jsno`)
    assert.include(err, `${name} ${sub} --help`)
  })

  it("knows help, help COMMAND and version", async () => {
    const [help, flag, ofCommand, commandFlag, version] = await Promise.all([
      run("help"),
      run("--help"),
      run("help", sub),
      run(sub, "--help"),
      run("version")
    ])
    for (const { code, err } of [help, flag, ofCommand, commandFlag, version]) {
      assert.deepStrictEqual([code, err], [0, ""])
    }
    assert.strictEqual(help.out, flag.out)
    assert.strictEqual(ofCommand.out, commandFlag.out)
    assert.notStrictEqual(help.out, ofCommand.out)
    assert.include(version.out, packageJson.version)
    const unknown = await run("help", typo)
    assert.deepStrictEqual([unknown.code, unknown.out], [2, ""])
    assert.include(unknown.err, `did you mean "${sub}"?`)
  })

  it("lists what a flag may be once", async () => {
    const { out } = await run("--help")
    assert.include(out, "powershell")
    for (const line of linesOf(out).filter((text) => /bash|debug/.test(text))) {
      assert.notInclude(line, "choices:", line)
    }
  })

  it("ends with 78 where no server is known, and with 69 where none answers", async () => {
    const asked = name === "signalbox" ? ["users", "list"] : ["sessions"]
    const unknown = await run(...asked)
    assert.deepStrictEqual([unknown.code, unknown.out], [78, ""])
    assert.match(unknown.err, new RegExp(`^${name}: `))
    const url = `http://127.0.0.1:${await freePort()}`
    const env = { SIGNALBOX_URL: url, SIGNALBOX_KEY: "sk_x", HOME: "/nowhere" }
    const entry = name === "signalbox" ? undefined : agentEntry
    const away = await signalbox(asked, env, entry)
    assert.deepStrictEqual([away.code, away.out], [69, ""])
    assert.match(away.err, new RegExp(`^${name}: `))
  })

  it("ends with 77 where the key is refused", async () => {
    const server = createServer((_, response) => {
      response.writeHead(401, { "content-type": "application/json" })
      response.end('{"error":"Invalid or missing API key"}')
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const env = { SIGNALBOX_URL: url, SIGNALBOX_KEY: "sk_x", HOME: "/nowhere" }
      const asked = name === "signalbox" ? ["users", "list"] : ["sessions"]
      const { code, err } = await signalbox(asked, env, name === "signalbox" ? undefined : agentEntry)
      assert.strictEqual(code, 77, err)
      assert.include(err, "Invalid or missing API key")
    } finally {
      server.close()
    }
  })
})

describe("signalbox --json", () => {
  const run = (...args: ReadonlyArray<string>) => signalbox(args, { DATA_DIR: "/nowhere" })

  it("tells faults as one line of JSON on stderr, with the code that it ends with", async () => {
    const misused = await run("users", "create", "--json")
    assert.strictEqual(misused.out, "")
    assert.deepStrictEqual(JSON.parse(misused.err), {
      error: { message: "signalbox users create: missing argument: email", exitCode: 2 }
    })
    const unknown = await run("users", "list", "--json")
    assert.strictEqual(unknown.out, "")
    const { error } = JSON.parse(unknown.err)
    assert.deepStrictEqual([unknown.code, error.exitCode], [78, 78])
    assert.include(error.message, "There is no /nowhere/admin.json")
  })
})

describe("signalbox import", () => {
  it("names a file that it cannot read, without a trace", async () => {
    const directory = mkdtempSync(join(tmpdir(), "signalbox-"))
    try {
      writeFileSync(join(directory, "not.gz"), "")
      const { code, err, out } = await signalbox(["import", "access-log", directory, "--site", "st_1"], {
        SIGNALBOX_URL: "http://127.0.0.1:9",
        SIGNALBOX_KEY: "sk_x"
      })
      assert.deepStrictEqual([code, out], [2, ""])
      assert.include(err, directory)
      assert.notMatch(err, /\n {4}at /)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})

describe("signalbox status", () => {
  it("ends with 1 where the server is not ready, and shows why", async () => {
    const components = { log: { status: "down", detail: "takes no events (ENOSPC)" } }
    const health = {
      status: "healthy",
      timestamp: "2026-11-22T00:00:00.000Z",
      uptime: 3,
      version: "0.1.0",
      apiKey: "admin",
      userId: `usr_${"a".repeat(22)}`,
      message: "OK"
    }
    const server = createServer(({ url }, response) => {
      const isReady = url === "/readyz"
      response.writeHead(isReady ? 503 : 200, { "content-type": "application/json" })
      response.end(JSON.stringify(isReady ? { status: "unready", components } : health))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const env = { SIGNALBOX_URL: url, SIGNALBOX_KEY: "sk_x" }
      const words = await signalbox(["status"], env)
      assert.strictEqual(words.code, 1, words.err)
      assert.include(words.out, "log: down (takes no events (ENOSPC))")
      assert.match(words.err, /^signalbox: .* is unready\n$/)
      const json = await signalbox(["status", "--json"], env)
      assert.strictEqual(json.code, 1)
      assert.strictEqual(JSON.parse(json.out).readiness.status, "unready")
      assert.strictEqual(JSON.parse(json.err).error.exitCode, 1)
    } finally {
      server.close()
    }
  })
})
