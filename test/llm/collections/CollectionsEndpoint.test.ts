import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Collection } from "#schemas/llm/Collection.ts"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { catalogueServer, TestUpstream } from "#test/llm/catalogue/CatalogueServer.ts"
import { sends } from "#test/llm/catalogue/ListServer.ts"
import { listOf, trappedList, upstreamModel } from "#test/llm/catalogue/UpstreamModels.ts"

const collections = "/api/v1/collections"

const errorOf = ({ json, status }: Answer) => {
  const { code, param, type } = (json as { error: { code: string; param: string | null; type: string } })
    .error
  return [status, type, code, param]
}

const invalid = (field: string) => [400, "invalid_request_error", "invalid_value", field]
const notFound = [404, "invalid_request_error", "collection_not_found", "id"]

const create = (key: string, fields: object = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", collections, { key, json: { name: "Coding", models: ["acme/large"], ...fields } })
  )

const listed = (key: string, query = "") =>
  Effect.map(
    Effect.flatMap(TestServer, ({ ask }) => ask("GET", `${collections}${query}`, { key })),
    ({ json }) => (json as { data: ReadonlyArray<Collection> }).data
  )

layer(catalogueServer({ collectionModels: 4, collectionsPerUser: 3 }), {
  excludeTestServices: true
})("collections", (it) => {
  it.effect("are made with 201, and have the fields of the contract with their members in order", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const made = yield* create(key, {
        name: "See & write",
        auto_route: false,
        models: ["borealis/talk", "acme/large", "acme/free:free"]
      })
      assert.strictEqual(made.status, 201)
      const id = textOf(made, "id")
      assert.match(id, /^col_[0-9A-Za-z]{22}$/)
      assert.deepStrictEqual(made.json, {
        id,
        model: "collection/see-write",
        name: "See & write",
        slug: "see-write",
        auto_route: false,
        models: [
          { position: 0, id: "borealis/talk", vision: false, free: false, available: true },
          { position: 1, id: "acme/large", vision: true, free: false, available: true },
          { position: 2, id: "acme/free:free", vision: false, free: true, available: true }
        ]
      })
      const list = yield* ask("GET", collections, { key })
      assert.deepStrictEqual([list.status, list.json], [200, { object: "list", data: [made.json] }])
      assert.deepStrictEqual((yield* ask("GET", `${collections}/${id}`, { key })).json, made.json)
    })
  )

  it.effect("route on failure unless they say otherwise, and may choose their slug", () =>
    Effect.gen(function* () {
      const { key } = yield* (yield* TestServer).makeUser()
      const made = yield* create(key, { name: "日本語", slug: "nihongo-2" })
      assert.deepInclude(made.json, { slug: "nihongo-2", model: "collection/nihongo-2", auto_route: true })
      assert.deepStrictEqual(errorOf(yield* create(key, { name: "日本語" })), invalid("slug"))
    })
  )

  it.effect("refuse fields that make no sense, and name them", () =>
    Effect.gen(function* () {
      const { key } = yield* (yield* TestServer).makeUser()
      for (const [field, fields] of [
        ["name", { name: "" }],
        ["name", { name: "x".repeat(101) }],
        ["name", { name: "a\nb" }],
        ["name", { name: 7 }],
        ["slug", { slug: "" }],
        ["slug", { slug: "Upper" }],
        ["slug", { slug: "-a" }],
        ["slug", { slug: "a/b" }],
        ["slug", { slug: "x".repeat(65) }],
        ["auto_route", { auto_route: "yes" }],
        ["models", { models: [] }],
        ["models", { models: "acme/large" }],
        [
          "models",
          { models: ["acme/large", "acme/free:free", "router/auto", "borealis/talk", "borealis/nearly"] }
        ],
        ["models[1]", { models: ["acme/large", 7] }],
        ["models[1]", { models: ["acme/large", "acme/large"] }],
        ["models[2]", { models: ["acme/large", "borealis/talk", "acme/none"] }],
        ["models[0]", { models: ["collection/other"] }],
        ["models[0]", { models: ["a\u0000b"] }],
        ["user_id", { user_id: "ada" }]
      ] as const) {
        assert.deepStrictEqual(errorOf(yield* create(key, fields)), invalid(field), JSON.stringify(fields))
      }
      assert.deepStrictEqual(yield* listed(key), [])
    })
  )

  it.effect(
    "have slugs that are unique among their owner's: 409, until the first is deleted or renamed",
    () =>
      Effect.gen(function* () {
        const { ask, makeUser } = yield* TestServer
        const [ada, bob] = [yield* makeUser(), yield* makeUser()]
        const taken = [409, "conflict_error", "slug_taken", "slug"]
        const first = textOf(yield* create(ada.key), "id")
        assert.deepStrictEqual(errorOf(yield* create(ada.key)), taken)
        assert.deepStrictEqual(errorOf(yield* create(ada.key, { name: "Other", slug: "coding" })), taken)
        assert.strictEqual((yield* create(bob.key)).status, 201)
        const second = textOf(yield* create(ada.key, { name: "Second" }), "id")
        const change = (id: string, json: object) =>
          ask("PATCH", `${collections}/${id}`, { key: ada.key, json })
        assert.deepStrictEqual(errorOf(yield* change(second, { slug: "coding" })), taken)
        assert.strictEqual((yield* change(first, { slug: "moved" })).status, 200)
        assert.strictEqual((yield* change(second, { slug: "coding" })).status, 200)
        yield* ask("DELETE", `${collections}/${second}`, { key: ada.key })
        assert.strictEqual((yield* create(ada.key)).status, 201)
      })
  )

  it.effect("change field by field, at once", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const made = yield* create(key)
      const path = `${collections}/${textOf(made, "id")}`
      const change = (json: object) => ask("PATCH", path, { key, json })
      assert.deepStrictEqual((yield* change({})).json, made.json)
      const renamed = yield* change({ name: "Writing" })
      assert.deepInclude(renamed.json, { name: "Writing", slug: "coding", auto_route: true })
      assert.deepInclude((yield* change({ auto_route: false })).json, { name: "Writing", auto_route: false })
      const moved = yield* change({ models: ["borealis/talk", "acme/large"] })
      const { models } = moved.json as Collection
      assert.deepStrictEqual(
        models.map(({ id, position }) => [position, id]),
        [
          [0, "borealis/talk"],
          [1, "acme/large"]
        ]
      )
      assert.deepStrictEqual((yield* ask("GET", path, { key })).json, moved.json)
      assert.deepStrictEqual(errorOf(yield* change({ models: ["acme/none"] })), invalid("models[0]"))
      assert.deepStrictEqual(errorOf(yield* change({ models: [] })), invalid("models"))
      assert.deepStrictEqual(errorOf(yield* change({ name: null })), invalid("name"))
    })
  )

  it.effect("go when they are deleted, once", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const id = textOf(yield* create(key), "id")
      const deleted = yield* ask("DELETE", `${collections}/${id}`, { key })
      assert.deepStrictEqual([deleted.status, deleted.json], [200, { id, deleted: true }])
      assert.deepStrictEqual(yield* listed(key), [])
      assert.deepStrictEqual(errorOf(yield* ask("DELETE", `${collections}/${id}`, { key })), notFound)
      assert.deepStrictEqual(errorOf(yield* ask("GET", `${collections}/${id}`, { key })), notFound)
      assert.deepStrictEqual(
        errorOf(yield* ask("PATCH", `${collections}/${id}`, { key, json: {} })),
        notFound
      )
      assert.strictEqual((yield* ask("GET", "/api/v1/models/collection/coding", { key })).status, 404)
    })
  )

  it.effect("are read by router keys within their scope, and managed by account keys alone", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key: owner } = yield* makeUser()
      const [inScope, outOfScope] = [
        textOf(yield* create(owner, { name: "In" }), "id"),
        textOf(yield* create(owner, { name: "Out" }), "id")
      ]
      const routerKey = (scope: object) =>
        Effect.map(makeKey({ kind: "router", ...scope }, owner), ({ key }) => key)
      const namesOf = (key: string) => Effect.map(listed(key), (data) => data.map(({ name }) => name))
      const scoped = yield* routerKey({ collections: [inScope] })
      assert.deepStrictEqual(yield* namesOf(yield* routerKey({})), ["In", "Out"])
      assert.deepStrictEqual(yield* namesOf(scoped), ["In"])
      assert.deepStrictEqual(yield* namesOf(yield* routerKey({ models: ["acme/large"] })), [])
      assert.strictEqual((yield* ask("GET", `${collections}/${inScope}`, { key: scoped })).status, 200)
      for (const id of [outOfScope, `col_${"0".repeat(22)}`]) {
        const answer = yield* ask("GET", `${collections}/${id}`, { key: scoped })
        assert.deepStrictEqual(errorOf(answer), [403, "permission_error", "model_not_allowed", null])
      }
      assert.strictEqual((yield* create(scoped, { name: "New" })).status, 403)
      for (const [method, json] of [["PATCH", { name: "x" }], ["DELETE"]] as const) {
        assert.strictEqual(
          (yield* ask(method, `${collections}/${inScope}`, { key: scoped, json })).status,
          403
        )
      }
    })
  )

  it.effect("stop at a number of collections a user: 409", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const first = textOf(yield* create(key, { name: "1" }), "id")
      for (const name of ["2", "3"]) yield* create(key, { name })
      const tooMany = [409, "conflict_error", "too_many_collections", null]
      assert.deepStrictEqual(errorOf(yield* create(key, { name: "4" })), tooMany)
      yield* ask("DELETE", `${collections}/${first}`, { key })
      assert.strictEqual((yield* create(key, { name: "4" })).status, 201)
      const { key: other } = yield* makeUser()
      const all = Array.from({ length: 12 }, (_, index) => create(other, { name: `at once ${index}` }))
      const statuses = (yield* Effect.all(all, { concurrency: "unbounded" })).map(({ status }) => status)
      assert.strictEqual(statuses.filter((status) => status === 201).length, 3, String(statuses))
    })
  )

  it.effect("answer 413, 415 and 400 to bodies that are none", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const post = (body: string, type = "application/json") =>
        Effect.map(
          ask("POST", collections, { body, headers: { "content-type": type } }),
          ({ status }) => status
        )
      assert.strictEqual(yield* post("{"), 400)
      assert.strictEqual(yield* post("[]"), 400)
      assert.strictEqual(yield* post("x".repeat(300 * 1024)), 413)
      assert.strictEqual(yield* post("{}", "text/plain"), 415)
    })
  )
})

const restless = { catalogueRefreshMillis: 20, catalogueRetryMinMillis: 20, catalogueRetryMaxMillis: 20 }

layer(catalogueServer(restless), { excludeTestServices: true })(
  "members that leave the upstream's list",
  (it) => {
    it.effect(
      "stay in their collection as not available, may be kept in a change, and are not taken anew",
      () =>
        Effect.gen(function* () {
          const { adminKey, ask } = yield* TestServer
          const upstream = yield* TestUpstream
          const made = yield* create(adminKey, { models: ["acme/large", "acme/free:free"] })
          const path = `${collections}/${textOf(made, "id")}`
          upstream.otherwise = sends(listOf(upstreamModel("acme/free:free"), upstreamModel("new/one")))
          const members = Effect.map(ask("GET", path), ({ json }) => (json as Collection).models)
          yield* eventually(
            "acme/large is gone",
            Effect.map(members, ([first]) => first?.available === false)
          )
          assert.deepStrictEqual((yield* members)[0], {
            position: 0,
            id: "acme/large",
            vision: false,
            free: false,
            available: false
          })
          const change = (models: ReadonlyArray<string>) => ask("PATCH", path, { json: { models } })
          assert.strictEqual((yield* change(["new/one", "acme/large"])).status, 200)
          assert.strictEqual((yield* change(["new/one"])).status, 200)
          assert.deepStrictEqual(errorOf(yield* change(["new/one", "acme/large"])), invalid("models[1]"))
          upstream.otherwise = sends(trappedList)
        })
    )
  }
)

layer(catalogueServer(restless, sends("", 503)), { excludeTestServices: true })(
  "before the first list of models",
  (it) => {
    it.effect("collections cannot be made, 503: nobody knows what models there are", () =>
      Effect.gen(function* () {
        const { adminKey, ask } = yield* TestServer
        assert.deepStrictEqual(errorOf(yield* create(adminKey)), [503, "server_error", "overloaded", null])
        const { json, status } = yield* ask("GET", "/api/v1/models")
        const meta = { total: 0, returned: 0, collections: 0 }
        assert.deepStrictEqual([status, json], [200, { object: "list", data: [], meta }])
        const upstream = yield* TestUpstream
        upstream.otherwise = sends(trappedList)
        yield* eventually(
          "a collection",
          Effect.map(create(adminKey), ({ status }) => status === 201)
        )
      })
    )
  }
)
