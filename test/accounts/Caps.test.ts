import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"

const [keys, sites] = ["/api/v1/keys", "/api/v1/sites"]
const limits = { keysPerUser: 6, sitesPerUser: 4, ratePerMinuteMax: 6_000 }

const statuses = (answers: ReadonlyArray<Answer>): ReadonlyArray<number> =>
  answers.map(({ status }) => status).toSorted((a, b) => a - b)

const many = <A>(count: number, make: (index: number) => Effect.Effect<A>) =>
  Effect.all(
    Array.from({ length: count }, (_, index) => make(index)),
    { concurrency: "unbounded" }
  )

layer(TestServer.own({ limits }), { excludeTestServices: true })("what one user may have", (it) => {
  it.effect("is so many keys, however many are made at once; one that is revoked makes room", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const make = (index: number) => ask("POST", keys, { key, json: { name: `k${index}`, kind: "router" } })
      const made = yield* many(12, make)
      assert.deepStrictEqual(statuses(made), [
        201,
        201,
        201,
        201,
        201,
        ...Array.from({ length: 7 }, () => 409)
      ])
      const refused = made.find(({ status }) => status === 409)
      assert.deepStrictEqual(refused?.json, {
        error: {
          message: "A user has at most 6 keys",
          type: "conflict_error",
          code: "too_many_keys",
          param: null
        }
      })
      const [one] = made.filter(({ status }) => status === 201)
      yield* ask("DELETE", `${keys}/${one === undefined ? "" : textOf(one, "id")}`, { key })
      assert.strictEqual((yield* make(99)).status, 201)
    })
  )

  it.effect("is so many sites, and one that is deleted makes room", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const make = () => ask("POST", sites, { key, json: { name: "Blog", domain: "example.com" } })
      const made = yield* many(9, make)
      assert.deepStrictEqual(statuses(made), [201, 201, 201, 201, 409, 409, 409, 409, 409])
      assert.deepStrictEqual(made.find(({ status }) => status === 409)?.json, {
        error: "A user has at most 4 sites"
      })
      const site = made.find(({ status }) => status === 201)?.json as { site: { id: string } }
      yield* ask("DELETE", `${sites}/${site.site.id}`, { key })
      assert.strictEqual((yield* make()).status, 201)
    })
  )

  it.effect("is a rate up to a maximum, which only an administrator may pass", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id: userId, key } = yield* makeUser()
      const json = (rate: number) => ({ name: "fast", kind: "router", rate_limit_per_minute: rate })
      const refused = yield* ask("POST", keys, { key, json: json(6_001) })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [
          400,
          {
            error: {
              message: "rate_limit_per_minute: at most 6000; an administrator may allow more",
              type: "invalid_request_error",
              code: "invalid_value",
              param: "rate_limit_per_minute"
            }
          }
        ]
      )
      const own = yield* ask("POST", keys, { key, json: json(6_000) })
      assert.strictEqual(own.status, 201)
      const path = `${keys}/${textOf(own, "id")}`
      const change = { rate_limit_per_minute: 1_000_000 }
      assert.strictEqual((yield* ask("PATCH", path, { key, json: change })).status, 400)
      assert.strictEqual((yield* ask("PATCH", path, { json: change })).status, 200)
      // An administrator's grant stays when the owner changes something else.
      const renamed = yield* ask("PATCH", path, { key, json: { name: "still fast" } })
      assert.deepInclude(renamed.json, change)
      const given = yield* ask("POST", keys, { json: { ...json(100_000), user_id: userId } })
      assert.strictEqual(given.status, 201)
    })
  )
})
