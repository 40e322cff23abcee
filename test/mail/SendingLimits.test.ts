import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { deleteOldMail } from "#src/mail/emails/OldMail.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { live, makeStage } from "./Stage.ts"

interface Inbox {
  readonly emails: ReadonlyArray<{ readonly address: string }>
}

const limits = { mailPerDay: 4, mailInboxShown: 2, mailBodyBytes: 100_000 }

layer(TestServer.own({ limits }), live)("mail of one owner", (it) => {
  it.effect("goes to so many recipients in a day of UTC", () =>
    Effect.gen(function* () {
      const { stopClockAt } = yield* TestServer
      const day = 24 * 3_600_000
      const midnight = Math.ceil(Date.now() / day) * day
      yield* Effect.addFinalizer(() => Effect.sync(() => stopClockAt(undefined)))
      stopClockAt(midnight - 90_000)
      const [{ post }, other] = [yield* makeStage, yield* makeStage]
      const began = performance.now()
      assert.strictEqual((yield* post({ to: "a@x.test", cc: "b@x.test", bcc: "c@x.test" })).status, 200)
      const refused = yield* post({ to: "d@x.test, e@x.test" })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [429, { error: "Sending limit reached (4 recipients per day)" }]
      )
      // The window goes by the server's own time, which is not stopped.
      const retryAfter = Number(refused.headers.get("retry-after"))
      assert.isAtMost(retryAfter, 90)
      assert.isAtLeast(retryAfter, 90 - Math.ceil((performance.now() - began) / 1_000))
      assert.strictEqual((yield* post({ to: "d@x.test" })).status, 200)
      assert.strictEqual((yield* other.post({ to: "d@x.test" })).status, 200)
      stopClockAt(midnight)
      assert.strictEqual((yield* post({ to: "a@x.test, b@x.test, c@x.test, d@x.test" })).status, 200)
    })
  )

  it.effect("is in JSON of so many bytes", () =>
    Effect.gen(function* () {
      const { get, post } = yield* makeStage
      const { json, status } = yield* post({ text: "x".repeat(limits.mailBodyBytes) })
      assert.deepStrictEqual([status, json], [413, { error: "Request body too large" }])
      assert.deepInclude((yield* get("")).json, { emails: [] })
    })
  )

  it.effect("is repeated by an Idempotency-Key of the same key alone", () =>
    Effect.gen(function* () {
      const { makeKey } = yield* TestServer
      const { key, post } = yield* makeStage
      const headers = { "Idempotency-Key": "order-1" }
      const [first, again] = [yield* post({}, headers), yield* post({}, headers)]
      assert.deepStrictEqual(again.json, first.json)
      const { key: second } = yield* makeKey({ name: "another", kind: "account" }, key)
      const { ask } = yield* TestServer
      const json = { from: "shop@example.com", to: "ada@example.org", subject: "Hello", text: "Hello, Ada." }
      const other = yield* ask("POST", "/send", { key: second, json, headers })
      assert.strictEqual(other.status, 200)
      assert.notDeepEqual(other.json, first.json)
      assert.isNull(other.headers.get("idempotent-replay"))
      assert.strictEqual((yield* post({}, { "Idempotency-Key": "x".repeat(256) })).status, 400)
    })
  )

  it.effect("is in the inbox of the sandbox, the newest of it", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeStage, yield* makeStage]
      for (const to of ["a@x.test", "b@x.test", "c@x.test"]) yield* one.tried(yield* one.sent({ to }))
      yield* other.tried(yield* other.sent({ to: "d@x.test" }))
      yield* deleteOldMail
      const addresses = (stage: typeof one) =>
        Effect.map(stage.get("/inbox"), ({ json }) => (json as Inbox).emails.map(({ address }) => address))
      assert.deepStrictEqual(yield* addresses(one), ["c@x.test", "b@x.test"])
      assert.deepStrictEqual(yield* addresses(other), ["d@x.test"])
    })
  )
})
