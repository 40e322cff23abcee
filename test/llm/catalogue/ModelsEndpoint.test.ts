import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ModelList } from "#schemas/llm/Model.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { catalogueServer, TestUpstream } from "./CatalogueServer.ts"
import { sends } from "./ListServer.ts"
import { listOf, upstreamModel } from "./UpstreamModels.ts"

const models = "/api/v1/models"

const collection = (name: string, key: string, ...members: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    return textOf(yield* ask("POST", "/api/v1/collections", { key, json: { name, models: members } }), "id")
  })

const routerKey = (owner: string, scope: object) =>
  Effect.flatMap(TestServer, ({ makeKey }) => makeKey({ kind: "router", ...scope }, owner))

const list = (query: string, key?: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const answer = yield* ask("GET", `${models}?${query}`, key === undefined ? {} : { key })
    const { data, meta, object } = Schema.decodeUnknownSync(ModelList)(answer.json)
    assert.deepStrictEqual([answer.status, object], [200, "list"])
    return { ids: data.map(({ id }) => id), data, meta }
  })

const names = ["acme/free:free", "acme/large", "router/auto", "borealis/talk", "borealis/nearly"]

layer(catalogueServer(), { excludeTestServices: true })("GET /models", (it) => {
  it.effect("answers the fields of a model, and no others than those that clients of such lists know", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const answer = yield* ask("GET", `${models}?search=acme/large`)
      assert.deepStrictEqual(answer.json, {
        object: "list",
        data: [
          {
            id: "acme/large",
            object: "model",
            created: 1_700_000_005,
            owned_by: "acme",
            name: "Acme: Large",
            description: "Sees and THINKS.\nSecond line.",
            context_length: 200_000,
            architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
            categories: ["vision", "tools", "long-context", "reasoning"],
            pricing: {
              prompt: "0.00000051",
              completion: "0.00000306",
              request: "0.01836",
              image: "0.0000000850000000000000068"
            },
            supported_parameters: ["max_tokens", "reasoning", "tools"],
            top_provider: { context_length: 200_000, max_completion_tokens: 64_000 }
          }
        ],
        meta: { total: 1, returned: 1, collections: 0 }
      })
    })
  )

  it.effect("takes every parameter of the contract, and passes over unknown ones", () =>
    Effect.gen(function* () {
      const { key } = yield* (yield* TestServer).makeUser()
      for (const [query, expected] of [
        ["", names],
        ["search=THINKS", ["acme/large"]],
        ["category=tools,long-context", ["acme/free:free", "acme/large"]],
        ["input_modality=text%2Caudio", ["borealis/talk"]],
        ["free=true", ["acme/free:free"]],
        ["free=false", names],
        ["tools=true", ["acme/free:free", "acme/large"]],
        ["min_context=100001", ["acme/large", "router/auto"]],
        ["max_prompt_price=0.5", ["acme/free:free", "borealis/nearly"]],
        ["max_prompt_price=5.1e-1&tools=true", ["acme/free:free", "acme/large"]],
        ["sort=newest&limit=1", ["router/auto"]],
        ["sort=price-desc&limit=1", ["acme/large"]],
        ["sort=price-asc&offset=4", ["router/auto"]],
        ["sort=context-desc&limit=2", ["router/auto", "acme/large"]],
        ["sort=context-asc&limit=1", ["borealis/nearly"]],
        ["limit=2&offset=1", ["acme/large", "router/auto"]],
        ["colour=blue&supported_parameters=tools", names]
      ] as const) {
        assert.deepStrictEqual((yield* list(query, key)).ids, expected, query)
      }
      assert.deepStrictEqual((yield* list("tools=true&limit=1", key)).meta, {
        total: 2,
        returned: 1,
        collections: 0
      })
    })
  )

  it.effect("refuses every parameter that makes no sense with 400, and names it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const long = "x".repeat(201)
      for (const [param, ...values] of [
        ["search", long, "a%00b", "a&search=b"],
        ["category", long],
        ["input_modality", long],
        ["free", "yes", "1", "TRUE", ""],
        ["tools", "no"],
        ["min_context", "-1", "1.5", "many", "", "1e400"],
        ["max_prompt_price", "-1", "NaN", "Infinity", "cheap", "", "1e300"],
        ["sort", "price", "", "NAME"],
        ["limit", "0", "-1", "x", "1.5", ""],
        ["offset", "-1", "x"],
        ["include_collections", "maybe"]
      ] as const) {
        for (const value of values) {
          const { json, status } = yield* ask("GET", `${models}?${param}=${value}`)
          const { error } = json as { error: { code: string; message: string; param: string; type: string } }
          const note = `${param}=${value}`
          assert.deepStrictEqual(
            [status, error.param, error.type, error.code],
            [400, param, "invalid_request_error", "invalid_value"],
            note
          )
          assert.match(error.message, new RegExp(`^${param}: (expected |is there several times)`), note)
        }
      }
    })
  )

  it.effect("has the caller's collections first, outside paging and order, and counts models alone", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const [ada, bob] = [yield* makeUser(), yield* makeUser()]
      const zebra = yield* collection("Zebra", ada.key, "acme/large")
      yield* collection("Ant", ada.key, "acme/large")
      yield* collection("Bob's", bob.key, "acme/large")
      const { data, ids, meta } = yield* list("sort=price-desc&limit=1&offset=1", ada.key)
      assert.deepStrictEqual(ids, ["collection/zebra", "collection/ant", "borealis/talk"])
      assert.deepStrictEqual(meta, { total: 5, returned: 1, collections: 2 })
      assert.deepStrictEqual(data[0], {
        id: "collection/zebra",
        object: "model",
        owned_by: "collection",
        name: "Zebra",
        collection: { id: zebra, auto_route: true }
      })
      assert.deepStrictEqual((yield* list("include_collections=false", ada.key)).meta.collections, 0)
      assert.deepStrictEqual((yield* list("include_collections=true", bob.key)).ids, [
        "collection/bob-s",
        ...names
      ])
    })
  )

  it.effect("omits collections where a filter for models is set", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      yield* collection("Mine", key, "acme/large")
      for (const filter of [
        "search=a",
        "category=tools",
        "input_modality=text",
        "free=true",
        "tools=true",
        "min_context=1",
        "max_prompt_price=1"
      ]) {
        assert.strictEqual((yield* list(filter, key)).meta.collections, 0, filter)
        assert.strictEqual(
          (yield* list(`${filter}&include_collections=true`, key)).meta.collections,
          0,
          filter
        )
      }
      for (const other of ["sort=newest", "limit=1", "offset=9", "free=false", "tools=false"]) {
        assert.strictEqual((yield* list(other, key)).meta.collections, 1, other)
      }
    })
  )

  it.effect("shows a limited router key what it may use, and nothing else", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key: owner } = yield* makeUser()
      const [first, second] = [
        yield* collection("First", owner, "acme/large"),
        yield* collection("Second", owner, "acme/large")
      ]
      const seen = (scope: object) =>
        Effect.gen(function* () {
          const { key } = yield* routerKey(owner, scope)
          return yield* list("", key)
        })
      assert.deepStrictEqual((yield* seen({})).ids, ["collection/first", "collection/second", ...names])
      const byModel = yield* seen({ models: ["router/auto", "not/there"] })
      assert.deepStrictEqual(byModel.ids, ["router/auto"])
      assert.deepStrictEqual(byModel.meta, { total: 1, returned: 1, collections: 0 })
      const byCollection = yield* seen({ collections: [second] })
      assert.deepStrictEqual(byCollection.ids, ["collection/second"])
      assert.deepStrictEqual(byCollection.meta, { total: 0, returned: 0, collections: 1 })
      assert.deepStrictEqual((yield* seen({ models: ["acme/large"], collections: [first] })).ids, [
        "collection/first",
        "acme/large"
      ])
      assert.deepStrictEqual((yield* seen({ models: [] })).ids, [])
    })
  )

  it.effect("answers 405 to other methods", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const posted = yield* ask("POST", models, { json: {} })
      assert.deepStrictEqual([posted.status, posted.headers.get("allow")], [405, "GET, HEAD"])
    })
  )
})

/** Fetched anew all the time. */
const restless = { catalogueRefreshMillis: 20, catalogueRetryMinMillis: 20, catalogueRetryMaxMillis: 20 }

layer(catalogueServer(restless), { excludeTestServices: true })("the list of models", (it) => {
  const metric = (name: string) =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { bytes } = yield* ask("GET", "/metrics")
      return new RegExp(`^signalbox_catalogue_${name} (\\S+)$`, "m").exec(Buffer.from(bytes).toString())?.[1]
    })

  it.effect("follows the upstream's, and stays with the last good one while that is of no use", () =>
    Effect.gen(function* () {
      const upstream = yield* TestUpstream
      assert.deepStrictEqual((yield* list("")).ids, names)
      assert.deepStrictEqual([yield* metric("models"), yield* metric("stale")], ["5", "0"])
      upstream.otherwise = sends("garbage")
      yield* eventually(
        "a stale list",
        Effect.map(metric("stale"), (stale) => stale === "1")
      )
      assert.deepStrictEqual((yield* list("")).ids, names)
      upstream.otherwise = sends(listOf(upstreamModel("new/one"), { id: 0 }))
      yield* eventually(
        "the new list",
        Effect.map(list(""), ({ ids }) => ids.length === 1)
      )
      assert.deepStrictEqual((yield* list("")).ids, ["new/one"])
      assert.deepStrictEqual(
        [yield* metric("models"), yield* metric("left_out"), yield* metric("stale")],
        ["1", "1", "0"]
      )
    })
  )
})

layer(catalogueServer(), { excludeTestServices: true })("GET /models/{id}", (it) => {
  it.effect("takes an id with its slash raw or percent-encoded", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const listed = (yield* list("search=acme/free:free")).data[0]
      for (const id of ["acme/free:free", "acme%2Ffree:free", "acme%2ffree%3Afree", "acme/free%3Afree"]) {
        const answer = yield* ask("GET", `${models}/${id}`)
        assert.deepStrictEqual([answer.status, answer.json], [200, listed], id)
      }
    })
  )

  it.effect("takes a collection's name likewise, the caller's own alone", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const [ada, bob] = [yield* makeUser(), yield* makeUser()]
      const id = yield* collection("Mine", ada.key, "acme/large")
      for (const path of ["collection/mine", "collection%2Fmine"]) {
        const answer = yield* ask("GET", `${models}/${path}`, { key: ada.key })
        assert.deepStrictEqual(
          [answer.status, answer.json],
          [
            200,
            {
              id: "collection/mine",
              object: "model",
              owned_by: "collection",
              name: "Mine",
              collection: { id, auto_route: true }
            }
          ]
        )
        assert.strictEqual((yield* ask("GET", `${models}/${path}`, { key: bob.key })).status, 404)
      }
    })
  )

  it.effect("answers 404 in the OpenAI form for what is not there", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const id of ["acme/none", "acme%2Fnone", "acme", "collection/none", "collection", "ACME/large"]) {
        const answer = yield* ask("GET", `${models}/${id}`)
        assert.deepStrictEqual(
          [answer.status, answer.json],
          [
            404,
            {
              error: {
                message: "There is no such model",
                type: "invalid_request_error",
                code: "model_not_found",
                param: "id"
              }
            }
          ],
          id
        )
      }
    })
  )

  it.effect("answers 403 beyond a key's scope, whether it is there or not", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key: owner } = yield* makeUser()
      const inScope = yield* collection("In", owner, "acme/large")
      yield* collection("Out", owner, "acme/large")
      const byModel = yield* routerKey(owner, { models: ["acme/large", "acme/gone"] })
      const byCollection = yield* routerKey(owner, { collections: [inScope] })
      for (const [key, id, status] of [
        [byModel.key, "acme/large", 200],
        [byModel.key, "acme/gone", 404],
        [byModel.key, "acme/free:free", 403],
        [byModel.key, "acme/none", 403],
        [byModel.key, "collection/in", 403],
        [byModel.key, "collection/none", 403],
        [byCollection.key, "collection/in", 200],
        [byCollection.key, "collection/out", 403],
        [byCollection.key, "collection/none", 403],
        [byCollection.key, "acme/large", 403],
        [byCollection.key, "acme/none", 403]
      ] as const) {
        const answer = yield* ask("GET", `${models}/${id}`, { key })
        assert.strictEqual(answer.status, status, id)
        if (status === 403) {
          assert.deepInclude((answer.json as { error: object }).error, {
            type: "permission_error",
            code: "model_not_allowed"
          })
        }
      }
    })
  )
})
