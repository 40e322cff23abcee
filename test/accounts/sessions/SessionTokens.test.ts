import { assert, describe, it } from "@effect/vitest"
import { SessionTokens } from "#src/accounts/sessions/SessionTokens.ts"

const secret = new Uint8Array(32).fill(7)
const id = `web_${"0aZ".repeat(7)}1`
const endsAt = new Date(1_800_000_000_000)

describe("a token of a session", () => {
  const token = new SessionTokens(secret).make(id, endsAt)

  it("names its session until the second in which it ends, in every process with the secret", () => {
    const other = new SessionTokens(Uint8Array.from(secret))
    assert.strictEqual(other.read(token, 0), id.slice(4))
    assert.strictEqual(other.read(token, endsAt.getTime() - 1), id.slice(4))
    assert.isUndefined(other.read(token, endsAt.getTime()))
  })

  it("names none with another secret, or with a character of it changed, added or gone", () => {
    assert.isUndefined(new SessionTokens(new Uint8Array(32)).read(token, 0))
    const tokens = new SessionTokens(secret)
    for (let at = 0; at < token.length; at++) {
      const changed = token[at] === "A" ? "B" : "A"
      assert.isUndefined(tokens.read(token.slice(0, at) + changed + token.slice(at + 1), 0), String(at))
      assert.isUndefined(tokens.read(token.slice(0, at) + token.slice(at + 1), 0), String(at))
    }
    assert.isUndefined(tokens.read(`${token}A`, 0))
    assert.isUndefined(tokens.read(` ${token}`, 0))
    assert.isUndefined(tokens.read("", 0))
  })
})
