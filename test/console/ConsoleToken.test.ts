import { assert, describe, it } from "@effect/vitest"
import { Refused } from "#src/console/page/api/Refused.ts"
import { renewedToken, type Token } from "#src/console/page/api/RenewedToken.ts"

const minute = 60_000

/** A server that gives tokens of 15 minutes, on a clock that the test moves, and counts them. */
const makeTokens = () => {
  const state = { nowMillis: 1_000_000, given: 0, trouble: undefined as Refused | undefined }
  const renew = async (): Promise<Token> => {
    await Promise.resolve()
    if (state.trouble !== undefined) throw state.trouble
    state.given += 1
    return { text: `token ${state.given}`, lifeMillis: 15 * minute }
  }
  return { state, take: renewedToken(renew, () => state.nowMillis) }
}

const statusOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => value,
    (error: unknown) => (error instanceof Refused ? error.status : error)
  )

const away = new Refused(0, "The server does not answer", 5_000)
const over = new Refused(401, "No session", undefined)

describe("the token of the console", () => {
  it("is asked for by the first request, shared by those that come meanwhile, and kept", async () => {
    const { state, take } = makeTokens()
    assert.strictEqual(state.given, 0)
    assert.deepStrictEqual(await Promise.all([take(), take(), take()]), ["token 1", "token 1", "token 1"])
    state.nowMillis += 11 * minute
    assert.strictEqual(await take(), "token 1")
    assert.strictEqual(state.given, 1)
  })

  it("is renewed before it ends, and after a sleep of hours", async () => {
    const { state, take } = makeTokens()
    await take()
    state.nowMillis += 13 * minute
    assert.deepStrictEqual(await Promise.all([take(), take()]), ["token 2", "token 2"])
    state.nowMillis += 9 * 60 * minute
    assert.strictEqual(await take(), "token 3")
  })

  it("is renewed where the clock was put back, because its age is not known", async () => {
    const { state, take } = makeTokens()
    await take()
    state.nowMillis -= 1
    assert.strictEqual(await take(), "token 2")
    assert.strictEqual(await take(), "token 2")
  })

  it("lives from before it was asked for: a sleep during the request does not make it younger", async () => {
    const state = { nowMillis: 0, given: 0 }
    const take = renewedToken(
      async () => {
        state.nowMillis += 20 * minute
        state.given += 1
        return { text: `token ${state.given}`, lifeMillis: 15 * minute }
      },
      () => state.nowMillis
    )
    await take()
    await take()
    assert.strictEqual(state.given, 2)
  })

  it("is renewed once by all requests that it was refused to", async () => {
    const { state, take } = makeTokens()
    const first = await take()
    assert.deepStrictEqual(await Promise.all([take(first), take(first)]), ["token 2", "token 2"])
    // A refusal that comes late is of the token before.
    assert.strictEqual(await take(first), "token 2")
    assert.strictEqual(state.given, 2)
  })

  it("goes on where the server is away for its renewal, as long as it lives and was not refused", async () => {
    const { state, take } = makeTokens()
    await take()
    state.trouble = away
    state.nowMillis += 13 * minute
    assert.strictEqual(await take(), "token 1")
    assert.strictEqual(await statusOf(take("token 1")), 0)
    state.nowMillis += 3 * minute
    assert.strictEqual(await statusOf(take()), 0)
    state.trouble = undefined
    assert.strictEqual(await take(), "token 2")
  })

  it("ends with its session", async () => {
    const { state, take } = makeTokens()
    await take()
    state.trouble = over
    state.nowMillis += 13 * minute
    assert.strictEqual(await statusOf(take()), 401)
  })
})
