import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"

describe("what a server prints from its first start on", () => {
  let dataDir: string
  beforeAll(() => {
    dataDir = mkdtempSync(join(tmpdir(), "signalbox-"))
  })
  afterAll(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }))

  /** Starts and stops; answers all that was printed, and the key that the start left in admin.json. */
  const run = async (env: Readonly<Record<string, string>>): Promise<readonly [string, string]> => {
    let server: ServerProcess | undefined
    try {
      server = await startServer({ dataDir, env: { ROOMS: "accounts", ...env } })
      const key = server.adminKey()
      assert.strictEqual(await server.stop(), 0)
      return [server.output(), key]
    } finally {
      await server?.dispose()
    }
  }

  it("is the way to begin with the key in words, once; then JSON alone, and never the key", async () => {
    const [first, key] = await run({ LOG_FORMAT: "text", TRUST_PROXY: "1" })
    assert.include(first, `Admin key  ${key} `)
    assert.include(first, "# create a site")
    assert.include(first, "Base URL   unset: ")
    assert.notMatch(first, /^\{/m, "words alone")
    assert.match(first, /\nSignalbox stops: .*\n(.*\n)*Signalbox has stopped; .*\n$/)

    const [later] = await run({ LOG_FORMAT: "text" })
    assert.notInclude(later, key)
    assert.notInclude(later, "# create a site")
    assert.isAtMost(later.trimEnd().split("\n").length, 6, later)

    // Nothing but a terminal gets words unasked.
    const [asJson] = await run({ LOG_LEVEL: "error" })
    assert.notInclude(asJson, key)
    const lines = asJson
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const ready = lines.find(({ message }) => /is ready after/.test(message))
    assert.strictEqual(ready.adminKey, `in ${join(dataDir, "admin.json")}`)
    assert.match(lines.at(-1).message, /^Signalbox has stopped/)
  })

  it("holds no key in JSON at the first start either", async () => {
    const server = await startServer({ env: { ROOMS: "accounts" } })
    try {
      const key = server.adminKey()
      await server.stop()
      assert.match(server.output(), /"adminKey":"made; in /)
      assert.notInclude(server.output(), key)
      for (const line of server.output().trimEnd().split("\n")) JSON.parse(line)
    } finally {
      await server.dispose()
    }
  })
})
