import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, type Asked, TestServer } from "#test/harness/TestServer.ts"

export const session = "/api/session"

/** The cookie that an answer sets: its name and value for the next request, and all of it; undefined: none. */
export const cookieOf = ({ headers }: Answer) => {
  const [set, ...more] = headers.getSetCookie()
  assert.isEmpty(more)
  return set === undefined ? undefined : { pair: set.split(";", 1)[0] ?? "", all: set }
}

/** Whether the answer makes the browser forget its cookie. */
export const isCleared = (answer: Answer): boolean =>
  /^(?:__Host-)?signalbox=;.*Expires=Thu, 01 Jan 1970 00:00:00 GMT/.test(cookieOf(answer)?.all ?? "")

/** Asks with a cookie alone. */
export const askBy = (cookie: string, method: string, path: string, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask(method, path, { ...asked, key: "", headers: { cookie, ...asked.headers } })
  )

/** Signs in by a key; answers the cookie. */
export const signIn = (key: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const answer = yield* ask("POST", session, { key })
    assert.strictEqual(answer.status, 201, JSON.stringify(answer.json))
    return cookieOf(answer)?.pair ?? ""
  })

/** A token of the session of a cookie. */
export const tokenOf = (cookie: string) =>
  Effect.gen(function* () {
    const answer = yield* askBy(cookie, "POST", `${session}/token`)
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.json))
    return (answer.json as { readonly token: string }).token
  })

/** A new login link of a user: its ticket. */
export const ticketOf = (userId: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const made = yield* ask("POST", `/api/v1/admin/users/${userId}/login-link`)
    assert.strictEqual(made.status, 201, JSON.stringify(made.json))
    return (made.json as { readonly url: string }).url.split("#")[1] ?? ""
  })
