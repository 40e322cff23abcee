import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { limits } from "#src/Limits.ts"
import { ask as askProcess, type Asked } from "#test/harness/ApiClient.ts"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { becomes, otherProcess } from "../OtherProcess.ts"
import { askBy, cookieOf, session, signIn, ticketOf, tokenOf } from "./SignedIn.ts"

/** The other process is asked with nothing but what is given. */
const at = (other: ServerProcess, method: string, path: string, asked: Asked) =>
  Effect.promise(() => askProcess(other, method, path, { key: "", ...asked }))

layer(TestServer.own(), { excludeTestServices: true })("in another process", (it) => {
  it.effect("a new session holds at once, and ends with its key, its user and itself", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const other = yield* otherProcess
      // Less than half of the second that an end may take, so that one lost poll is no breach.
      assert.isBelow(limits.cachePollMillis, 500)
      const byCookie = (cookie: string) => at(other, "GET", session, { headers: { cookie } })
      const byToken = (key: string) => at(other, "GET", "/api/v1/health", { key })
      const opened = Effect.fnUntraced(function* (key: string) {
        const cookie = yield* signIn(key)
        const token = yield* tokenOf(cookie)
        assert.strictEqual((yield* byToken(token)).status, 200, "neither key nor session are known there")
        assert.strictEqual((yield* byCookie(cookie)).status, 200)
        return { cookie, token }
      })
      const ends = Effect.fnUntraced(function* ({ cookie, token }: { cookie: string; token: string }) {
        yield* becomes(401, byCookie(cookie))
        yield* becomes(401, byToken(token))
      })

      const person = yield* makeUser()
      const key = yield* makeKey({}, person.key)
      const ofKey = yield* opened(key.key)
      yield* ask("DELETE", `/api/v1/keys/${key.id}`, { key: person.key })
      yield* ends(ofKey)

      const own = yield* opened(person.key)
      const kept = yield* opened(person.key)
      yield* askBy(own.cookie, "DELETE", session)
      yield* ends(own)
      assert.strictEqual((yield* byCookie(kept.cookie)).status, 200)

      yield* ask("DELETE", `/api/v1/admin/users/${person.id}`)
      yield* ends(kept)
    }).pipe(Effect.scoped)
  )

  it.effect("a login link works once over both, and so does what it opens", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const other = yield* otherProcess
      for (let round = 0; round < 10; round++) {
        const { id } = yield* makeUser()
        const json = { ticket: yield* ticketOf(id) }
        const [here, there] = yield* Effect.all(
          [ask("POST", session, { key: "", json }), at(other, "POST", session, { json })],
          { concurrency: "unbounded" }
        )
        assert.sameMembers([here.status, there.status], [201, 401])
        const cookie =
          here.status === 201 ? cookieOf(here)?.pair : there.headers.getSetCookie()[0]?.split(";", 1)[0]
        assert.strictEqual((yield* askBy(cookie ?? "", "GET", session)).status, 200)
        const asked = yield* at(other, "GET", session, { headers: { cookie: cookie ?? "" } })
        assert.strictEqual(asked.status, 200)
        yield* askBy(cookie ?? "", "DELETE", `${session}?everywhere=true`)
        yield* becomes(401, at(other, "GET", session, { headers: { cookie: cookie ?? "" } }))
      }
    }).pipe(Effect.scoped)
  )
})
