import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { limits } from "#src/Limits.ts"
import { ask as askProcess } from "#test/harness/ApiClient.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { becomes, otherProcess } from "./OtherProcess.ts"

layer(TestServer.own(), { excludeTestServices: true })("in another process", (it) => {
  it.effect("a new key works at once, and stops by itself when it is revoked or its owner deleted", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const other = yield* otherProcess
      const health = (key: string) =>
        Effect.promise(() => askProcess(other, "GET", "/api/v1/health", { key }))
      // Less than half of the second that a revocation may take, so that one lost poll is no breach.
      assert.isBelow(limits.cachePollMillis, 500)

      const { id, key } = yield* makeKey()
      assert.strictEqual((yield* health(key)).status, 200)
      yield* ask("DELETE", `/api/v1/keys/${id}`)
      yield* becomes(401, health(key))

      const person = yield* makeUser()
      assert.strictEqual((yield* health(person.key)).status, 200, "a new key of a new user")
      yield* ask("DELETE", `/api/v1/admin/users/${person.id}`)
      yield* becomes(401, health(person.key))
    }).pipe(Effect.scoped)
  )

  it.effect("a changed role and name count as here", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const other = yield* otherProcess
      const person = yield* makeUser()
      const read = Effect.promise(() =>
        askProcess(other, "GET", `/api/v1/admin/users/${person.id}`, { key: person.key })
      )
      yield* becomes(403, read)
      yield* ask("PATCH", `/api/v1/admin/users/${person.id}`, { json: { role: "admin", name: "Boss" } })
      const answer = yield* becomes(200, read)
      assert.deepInclude(answer.body, { name: "Boss", role: "admin" })
    }).pipe(Effect.scoped)
  )
})
