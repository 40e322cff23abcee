import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization, type Meter, Metered } from "#schemas/core/Authorization.ts"
import { ErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import { bodyOf, headersOf } from "#schemas/core/Problem.ts"
import { Admission, anyKey } from "#src/accounts/Admission.ts"
import type { ConfigChanges } from "#src/Config.ts"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import type { Room } from "#src/Room.ts"
import { rooms } from "#src/Rooms.ts"
import { type Answer, TestServer, textOf } from "#test/harness/TestServer.ts"

const sends: Meter = { name: "Sends", per: "owner", shape: "window", limit: 5, seconds: 3_600 }
const looks: Meter = { name: "Looks", per: "credential", shape: "bucket", limit: 2, seconds: 3_600 }
const visits: Meter = { name: "Visits", per: "address", shape: "window", limit: 2, seconds: 30 }

const bulks: Meter = { name: "Bulks", per: "owner", shape: "window", limit: 3, seconds: 3_600 }

const success = Schema.Struct({ done: Schema.Literal(true) })

class Sends extends HttpApiGroup.make("sends")
  .add(
    HttpApiEndpoint.get("plain", "/plain", { success }).annotate(OpenApi.Summary, "Look"),
    HttpApiEndpoint.get("send", "/send", { success })
      .annotate(OpenApi.Summary, "Send")
      .annotate(Metered, { meter: sends, cost: 2 }),
    HttpApiEndpoint.get("look", "/look", { success })
      .annotate(OpenApi.Summary, "Look")
      .annotate(Metered, { meter: looks, cost: 1 }),
    HttpApiEndpoint.get("visit", "/visit", { success })
      .annotate(OpenApi.Summary, "Visit")
      .annotate(Metered, { meter: visits, cost: 1 }),
    HttpApiEndpoint.get("bulk", "/bulk", { success })
      .annotate(OpenApi.Summary, "Send much")
      .annotate(Metered, { meter: bulks, cost: 10 })
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .prefix("/api/v1") {}

class SendsRoomApi extends HttpApi.make("signalbox").add(Sends) {}

const done = () => Effect.succeed({ done: true as const })

const sendsRoom: Room = {
  name: "sends",
  needs: [],
  api: SendsRoomApi,
  rawApi: HttpApi.make("signalbox"),
  migrations: { postgres: [], clickhouse: [] },
  commands: async () => [],
  server: async () => ({
    served: HttpApiBuilder.layer(SendsRoomApi).pipe(
      Layer.provide(
        HttpApiBuilder.group(SendsRoomApi, "sends", (handlers) =>
          handlers.handleAll({ plain: done, send: done, look: done, visit: done, bulk: done })
        )
      )
    ),
    raw: RawRoutes.add(rawSend),
    paths: []
  })
}

/** The same meter as the endpoint's, at another cost. */
const rawSend = Effect.map(Admission, (admission) => [
  {
    method: "GET" as const,
    path: "/send.txt",
    cors: "configured" as const,
    headers: ["authorization"],
    maxBodyBytes: 0,
    handle: (request, _body, reply) => {
      const access = { ...anyKey, routerKeys: false, metering: { meter: sends, cost: 1 } }
      const entered = admission.enter(request.header("authorization"), access, request)
      Effect.runFork(
        Effect.map(Effect.orDie(entered), ({ headers, refusal }) =>
          refusal === undefined
            ? reply.send(200, Object.entries(headers), "sent")
            : reply.send(
                refusal.status,
                Object.entries({ "content-type": "application/json", ...headers, ...headersOf(refusal) }),
                bodyOf(refusal, "plain")
              )
        )
      )
    }
  } satisfies HotRoute
])

const told = ({ headers, status }: Answer) => [
  status,
  ...["limit", "remaining", "reset"].map((name) => Number(headers.get(`ratelimit-${name}`)))
]

const live = { excludeTestServices: true } as const
const server = (changes: ConfigChanges) =>
  layer(
    TestServer.own({ rooms: new Set(["accounts", "sends"]), ...changes }, { rooms: [...rooms, sendsRoom] }),
    live
  )

server({ limits: { ratePerMinute: 600, rateBurst: 120 } })("an endpoint's own meter", (it) => {
  it.effect(
    "counts its cost for all keys of an owner, on ordinary and raw routes, beside the keys' rate",
    () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const { key: second } = yield* makeKey({}, key)
        assert.deepStrictEqual(told(yield* ask("GET", "/api/v1/plain", { key })).slice(0, 2), [200, 600])
        assert.deepStrictEqual(told(yield* ask("GET", "/api/v1/send", { key })), [200, 5, 3, 3_600])
        const raw = yield* ask("GET", "/send.txt", { key: second })
        assert.deepStrictEqual(told(raw).slice(0, 3), [200, 5, 2])
        assert.strictEqual((yield* ask("GET", "/api/v1/send", { key: second })).status, 200)
        const refused = yield* ask("GET", "/api/v1/send", { key })
        assert.deepStrictEqual(told(refused).slice(0, 3), [429, 5, 0])
        const wait = refused.headers.get("retry-after")
        assert.isAtLeast(Number(wait), 3_500)
        assert.strictEqual(wait, refused.headers.get("ratelimit-reset"))
        assert.strictEqual(refused.headers.get("x-should-retry"), "false")
        const text = /^Sends are limited to 5 in 3600 s; try again in 3\d{3} s$/
        assert.match(textOf(refused, "error"), text)
        const rawRefused = yield* ask("GET", "/send.txt", { key: second })
        assert.strictEqual(rawRefused.status, 429)
        assert.match(textOf(rawRefused, "error"), text)
        assert.strictEqual(rawRefused.headers.get("x-should-retry"), "false")
        assert.strictEqual((yield* ask("GET", "/api/v1/plain", { key })).status, 200)
        const { key: other } = yield* makeUser()
        assert.deepStrictEqual(
          told(yield* ask("GET", "/api/v1/send", { key: other })).slice(0, 3),
          [200, 5, 3]
        )
      })
  )

  it.effect("takes a cost above its limit as the limit", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      assert.deepStrictEqual(told(yield* ask("GET", "/api/v1/bulk", { key })), [200, 3, 0, 3_600])
      assert.strictEqual((yield* ask("GET", "/api/v1/bulk", { key })).status, 429)
    })
  )

  it.effect("is a bucket of the key, with its limit and seconds in the headers", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { key } = yield* makeKey()
      assert.deepStrictEqual(told(yield* ask("GET", "/api/v1/look", { key })), [200, 2, 1, 1_800])
      assert.strictEqual((yield* ask("GET", "/api/v1/look", { key })).status, 200)
      const refused = yield* ask("GET", "/api/v1/look", { key })
      assert.deepStrictEqual(told(refused).slice(0, 3), [429, 2, 0])
      assert.match(textOf(refused, "error"), /^Looks are limited to 2 in 3600 s; try again in 1[78]\d\d s$/)
      const { key: other } = yield* makeKey()
      assert.strictEqual((yield* ask("GET", "/api/v1/look", { key: other })).status, 200)
    })
  )

  it.effect("counts an address whatever its keys", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const keys = yield* Effect.all([makeUser(), makeUser(), makeUser()])
      const answers = yield* Effect.forEach(keys, ({ key }) => ask("GET", "/api/v1/visit", { key }))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200, 200, 429]
      )
      const last = answers.at(-1) ?? assert.fail("no answer")
      assert.match(textOf(last, "error"), /^Visits are asked for too often from your address; try again/)
      assert.isNull(last.headers.get("x-should-retry"), "the wait is short")
    })
  )
})

server({ rateLimitMode: "block" })("in block mode", (it) => {
  it.effect("a meter's refusal is 403", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const statuses = yield* Effect.forEach([1, 2, 3], () => ask("GET", "/api/v1/send", { key }))
      assert.deepStrictEqual(
        statuses.map(({ status }) => status),
        [200, 200, 403]
      )
    })
  )
})
