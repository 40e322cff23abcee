import { assert, describe, it } from "@effect/vitest"
import { loggedPath } from "#src/http/LoggedPath.ts"

describe("a path in the log", () => {
  for (const [path, logged] of [
    ["/direct/4fJ2mQ0sXb7RkT1zYw8aLc", "/direct/…"],
    ["/direct/4fJ2mQ0sXb7RkT1zYw8aLc?password=secret", "/direct/…"],
    ["http://localhost:8080/direct/4fJ2mQ0sXb7RkT1zYw8aLc?ticket=x", "http://localhost:8080/direct/…"],
    ["/api/share-links/4fJ2mQ0sXb7RkT1zYw8aLc", "/api/share-links/…"],
    ["/api/share-links", "/api/share-links"],
    ["/api/cli/auth/poll?token=4fJ2mQ0sXb7RkT1zYw8aLc", "/api/cli/auth/poll"],
    [`/n/m/${"a".repeat(40)}/raw`, "/n/m/…/raw"],
    ["/api/files/fv_4fJ2mQ0sXb7RkT1zYw8aLc", "/api/files/fv_4fJ2mQ0sXb7RkT1zYw8aLc"]
  ] as const)
    it(`${path} is ${logged}`, () => assert.strictEqual(loggedPath(path), logged))
})
