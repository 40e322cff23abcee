import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runServer, startServer } from "#test/harness/ServerProcess.ts"

describe("a setting that cannot work", () => {
  it.each([
    ["192.0.2.1", "is no address of this machine"],
    ["nowhere.invalid", "does not resolve to an address"]
  ])("is told before the stores start: HOST=%s", async (host, fault) => {
    const dataDir = mkdtempSync(join(tmpdir(), "signalbox-"))
    try {
      const { code, output } = await runServer({ HOST: host, DATA_DIR: dataDir, PORT: "0" })
      assert.strictEqual(code, 78, output)
      assert.include(output, `HOST "${host}" ${fault}`)
      assert.notInclude(output, "stores ready")
      assert.notInclude(output, "another process")
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  it("is told at the start: UPSTREAM_URL without UPSTREAM_API_KEY; a host may be a name", async () => {
    const server = await startServer({
      env: { ROOMS: "accounts,llm", HOST: "localhost", UPSTREAM_URL: "http://127.0.0.1:9/api/v1" }
    })
    try {
      const lines = server.output().split("\n")
      const told = lines.filter((line) => line.includes("UPSTREAM_API_KEY"))
      assert.lengthOf(told, 1, server.output())
      assert.include(told[0], "UPSTREAM_URL is set without UPSTREAM_API_KEY")
    } finally {
      await server.dispose()
    }
  })
})
