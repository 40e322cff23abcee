import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { describeWith, requirement } from "#test/harness/Requirement.ts"

const project = normalize(join(import.meta.dirname, "../.."))

/** Prints its process id, and then waits, works, or both. */
const fakeNpm = `
const { appendFileSync, writeFileSync } = require("node:fs")
appendFileSync("npm-calls", process.pid + " " + process.argv.slice(2).join(" ") + "\\n")
let left = Number(process.env.FAKE_WORK)
const work = () => {
  if (left-- <= 0) return process.env.FAKE_END === "wait" ? setInterval(() => {}, 1000) : undefined
  writeFileSync("work", Buffer.alloc(1_000_000))
  setTimeout(work, 50)
}
work()
`

const script = (waits: string): string => `
import { npm } from ${JSON.stringify(join(project, "deploy/setup/npm.mjs"))}
const options = { cwd: process.cwd(), label: "Installing dependencies", waits: ${waits} }
await npm(process.execPath, ["install"], options).catch((error) => {
  console.log("FAILED " + error.message + " | " + error.advice)
  process.exitCode = 1
})
`

interface Ended {
  readonly code: number | null
  readonly output: string
  readonly calls: string
}

const install = async (waits: string, environment: Record<string, string>): Promise<Ended> => {
  const root = mkdtempSync(join(tmpdir(), "signalbox-setup-"))
  try {
    writeFileSync(join(root, "npm-cli.js"), fakeNpm)
    writeFileSync(join(root, "package.json"), '{ "dependencies": { "left-pad": "1.3.0" } }')
    const env = {
      ...process.env,
      npm_execpath: join(root, "npm-cli.js"),
      npm_config_registry: "https://me:secret@registry.example/npm/",
      ...environment
    }
    const child = spawn(process.execPath, ["--input-type=module", "-e", script(waits)], { cwd: root, env })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve))
    const calls = join(root, "npm-calls")
    return { code, output, calls: existsSync(calls) ? readFileSync(calls, "utf8") : "" }
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const proc = requirement("/proc", () => (process.platform === "linux" ? undefined : "this is not Linux"))

describeWith(proc, "an npm that waits for its registry", () => {
  it("is told of, by the registry's name, and ended where nothing comes", async () => {
    const { calls, code, output } = await install("{ toldMillis: 200, givenUpMillis: 1_500 }", {
      FAKE_WORK: "3",
      FAKE_END: "wait"
    })
    assert.strictEqual(code, 1, output)
    assert.include(output, "waits for registry.example")
    assert.notInclude(output, "secret")
    assert.strictEqual(output.split("waits for registry.example").length, 2, "it is said once")
    assert.match(output, /FAILED npm install got nothing from registry\.example .* \| check the network/)
    assert.isFalse(isAlive(Number.parseInt(calls, 10)))
  })

  it("is left to work for as long as something comes", async () => {
    const { code, output } = await install("{ toldMillis: 3_900, givenUpMillis: 4_000 }", {
      FAKE_WORK: "100",
      FAKE_END: "done"
    })
    assert.strictEqual(code, 0, output)
    assert.notInclude(output, "waits for")
  })

  it("is the real one too", async () => {
    // A registry that takes connections and says nothing, as a firewall makes of one.
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
    try {
      const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`
      const { code, output } = await install("{ toldMillis: 1_000, givenUpMillis: 4_000 }", {
        npm_execpath: "",
        npm_config_registry: `http://${host}/`,
        npm_config_cache: join(tmpdir(), "signalbox-no-cache")
      })
      assert.strictEqual(code, 1, output)
      assert.include(output, `waits for ${host}`)
      assert.include(output, `FAILED npm install got nothing from ${host}`)
    } finally {
      silent.close()
    }
  })
})

describe("npm is asked", () => {
  it("to take what it has before it asks the registry", async () => {
    const { calls } = await install("undefined", { FAKE_WORK: "0", FAKE_END: "done" })
    assert.include(calls, "install --prefer-offline")
  })
})
