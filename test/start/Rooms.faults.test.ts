import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"

describe("ROOMS=accounts", () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServer({ env: { ROOMS: "accounts" } })
  })
  afterAll(() => server.dispose())

  it("serves accounts, and nothing of the rooms that it leaves out", async () => {
    assert.strictEqual((await ask(server, "GET", "/api/v1/health")).status, 200)
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites")).status, 404)
    assert.strictEqual((await ask(server, "POST", "/api/event", { json: {} })).status, 404)
  })

  it("asks only for the stores that it needs", async () => {
    const { body } = await ask(server, "GET", "/readyz")
    assert.deepStrictEqual(body, {
      status: "ready",
      components: {
        blobs: { status: "up" },
        disk: { status: "up" },
        jobs: { status: "up" },
        postgres: { status: "up" },
        quarantine: { status: "up" },
        "rate-limits": { status: "up" }
      }
    })
    assert.include(server.output(), "starts with its own PostgreSQL; data in")
  })
})
