import { assert, describe, it } from "@effect/vitest"
import { originRule } from "#src/infra/mcp/OriginRule.ts"

const settings = { baseUrl: undefined, corsOrigins: new Set<string>(), host: "127.0.0.1", port: 8080 }

describe("origins of pages that may ask", () => {
  it.each<
    readonly [
      changed: Partial<Parameters<typeof originRule>[0]>,
      allowed: ReadonlyArray<string>,
      not: ReadonlyArray<string>
    ]
  >([
    [
      {},
      ["", "http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"],
      [
        "null",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:8080",
        "http://127.0.0.2:8080",
        "http://evil.example:8080",
        "http://localhost:8080.evil.example",
        "HTTP://LOCALHOST:8080",
        "http://localhost:8080/"
      ]
    ],
    [
      { host: "0.0.0.0", port: 80 },
      ["http://localhost", "http://[::1]"],
      ["http://10.0.0.5", "http://localhost:80"]
    ],
    [{ host: "10.0.0.5" }, ["http://10.0.0.5:8080", "http://localhost:8080"], ["http://10.0.0.6:8080"]],
    [{ host: "fd00::5" }, ["http://[fd00::5]:8080"], ["http://[fd00::6]:8080"]],
    [
      {
        baseUrl: "https://box.example/path",
        corsOrigins: new Set(["https://app.example"]),
        host: "10.0.0.5"
      },
      ["https://box.example", "https://app.example", "http://localhost:8080"],
      ["http://box.example", "https://box.example:8443", "http://10.0.0.5:8080"]
    ],
    [
      { port: 0 },
      ["http://localhost:40123", "http://[::1]:1"],
      ["http://localhost.evil.example:1", "http://10.0.0.5:1"]
    ]
  ])("with %j", (changed, allowed, not) => {
    const isAllowed = originRule({ ...settings, ...changed })
    assert.deepStrictEqual(
      allowed.filter((origin) => !isAllowed(origin)),
      []
    )
    assert.deepStrictEqual(not.filter(isAllowed), [])
  })
})
