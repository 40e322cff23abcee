import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Markup } from "#schemas/llm/Markup.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { catalogueServer } from "./CatalogueServer.ts"

const markups = "/api/v1/admin/markups"

const promptOf = (id: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const { json } = yield* ask("GET", `/api/v1/models/${id}`)
    return (json as { pricing: { prompt: string } }).pricing.prompt
  })

layer(catalogueServer(), { excludeTestServices: true })("markups", (it) => {
  it.effect("are 2 % unless an administrator says otherwise, and change prices at once", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      assert.deepStrictEqual((yield* ask("GET", `${markups}/acme`)).json, {
        provider: "acme",
        percent: 2,
        isDefault: true
      })
      assert.strictEqual(yield* promptOf("acme/large"), "0.00000051")
      const set = yield* ask("PUT", `${markups}/acme`, { json: { percent: 0.123456 } })
      const changed = { provider: "acme", percent: 0.123456, isDefault: false }
      assert.deepStrictEqual([set.status, set.json], [200, changed])
      assert.deepStrictEqual((yield* ask("GET", `${markups}/acme`)).json, changed)
      assert.strictEqual(yield* promptOf("acme/large"), "0.00000050061728")
      assert.strictEqual(yield* promptOf("borealis/talk"), "0.00000051")
      assert.strictEqual(yield* promptOf("acme/free:free"), "0")
      yield* ask("PUT", `${markups}/acme`, { json: { percent: 2 } })
      assert.strictEqual(yield* promptOf("acme/large"), "0.00000051")
    })
  )

  it.effect("leave -1 alone", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      yield* ask("PUT", `${markups}/router`, { json: { percent: 100 } })
      assert.strictEqual(yield* promptOf("router/auto"), "-1")
    })
  )

  it.effect("are listed for every provider of the catalogue, and those set beside it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      yield* ask("PUT", `${markups}/zeta`, { json: { percent: 1000 } })
      const { json, status } = yield* ask("GET", markups)
      const listed = (json as { markups: ReadonlyArray<Markup> }).markups
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(
        listed.map(({ provider }) => provider),
        ["acme", "borealis", "router", "zeta"]
      )
      assert.deepStrictEqual(listed[1], { provider: "borealis", percent: 2, isDefault: true })
      assert.deepStrictEqual(listed[3], { provider: "zeta", percent: 1000, isDefault: false })
    })
  )

  it.effect("are between 0 and 1000 with at most six decimal places; the rest is 400 in the plain form", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const percent of [-1, 1000.1, 1e21, 0.1234567, 1e-7, "2", null, true, [2]]) {
        const { json, status } = yield* ask("PUT", `${markups}/acme`, { json: { percent } })
        assert.strictEqual(status, 400, String(percent))
        assert.match((json as { error: string }).error, /^percent: expected /)
      }
      assert.deepStrictEqual((yield* ask("PUT", `${markups}/acme`, { json: {} })).json, {
        error: "percent: is required"
      })
      for (const provider of ["a%20b", "x".repeat(101), "a%2Fb", "%00"]) {
        assert.include([400, 404], (yield* ask("GET", `${markups}/${provider}`)).status, provider)
      }
    })
  )
})
