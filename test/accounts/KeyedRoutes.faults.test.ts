import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  AdministratorsOnly,
  Authorization,
  type Meter,
  Metered,
  NeedsScope,
  OpenToCookies,
  OpenToRouterKeys
} from "#schemas/core/Authorization.ts"
import { ErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import { type KeyedRoute, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import type { Room } from "#src/Room.ts"
import { rooms } from "#src/Rooms.ts"
import { type Answer, type Asked, TestServer } from "#test/harness/TestServer.ts"
import { askBy, isCleared, session, signIn, tokenOf } from "./sessions/SignedIn.ts"

const success = Schema.Struct({ done: Schema.Literal(true) })

const few = (name: string): Meter => ({ name, shape: "window", per: "owner", limit: 1, seconds: 3_600 })

/** Endpoints of every kind of access, under a path of their own. */
const groupOf = <const Name extends "ordinary" | "keyed">(name: Name) =>
  HttpApiGroup.make(name)
    .add(
      HttpApiEndpoint.post("full", "/full", { success }).annotate(OpenApi.Summary, "Full"),
      HttpApiEndpoint.post("read", "/read", { success })
        .annotate(OpenApi.Summary, "Read")
        .annotate(NeedsScope, "read"),
      HttpApiEndpoint.post("router", "/router", { success })
        .annotate(OpenApi.Summary, "Router")
        .annotate(OpenToRouterKeys, true),
      HttpApiEndpoint.post("admin", "/admin", { success })
        .annotate(OpenApi.Summary, "Admin")
        .annotate(AdministratorsOnly, true),
      HttpApiEndpoint.post("change", "/cookie", { success })
        .annotate(OpenApi.Summary, "Change")
        .annotate(OpenToCookies, true),
      HttpApiEndpoint.get("look", "/cookie", { success })
        .annotate(OpenApi.Summary, "Look")
        .annotate(OpenToCookies, true)
        .annotate(NeedsScope, "any"),
      HttpApiEndpoint.post("metered", "/metered", { success })
        .annotate(OpenApi.Summary, "Metered")
        .annotate(Metered, { meter: few(`Calls of ${name}`), cost: 1 }),
      HttpApiEndpoint.post("broken", "/broken", { success }).annotate(OpenApi.Summary, "Broken")
    )
    .middleware(Authorization)
    .middleware(ErrorBoundary)
    .prefix(`/api/v1/${name}`)

class Ordinary extends groupOf("ordinary") {}
class Keyed extends groupOf("keyed") {}
class TwiceRoomApi extends HttpApi.make("signalbox").add(Ordinary) {}

const done = () => Effect.succeed({ done: true as const })
const broken = () => Effect.die(new Error("broken"))

const keyed = (handle: KeyedRoute["handle"]): KeyedRoute => ({ maxBodyBytes: 0, handle })
const answers = keyed((exchange) => Effect.sync(() => exchange.sendJson(200, { done: true })))

const twiceRoom: Room = {
  name: "twice",
  needs: [],
  api: TwiceRoomApi,
  rawApi: HttpApi.make("signalbox").add(Keyed),
  migrations: { postgres: [], clickhouse: [] },
  commands: async () => [],
  server: async () => ({
    served: HttpApiBuilder.layer(TwiceRoomApi).pipe(
      Layer.provide(
        HttpApiBuilder.group(TwiceRoomApi, "ordinary", (handlers) =>
          handlers.handleAll({
            full: done,
            read: done,
            router: done,
            admin: done,
            change: done,
            look: done,
            metered: done,
            broken
          })
        )
      )
    ),
    raw: RawRoutes.addRaw(
      keyedRoutes(Keyed, {
        full: answers,
        read: answers,
        router: answers,
        admin: answers,
        change: answers,
        look: answers,
        metered: answers,
        broken: keyed(broken)
      })
    ),
    paths: []
  })
}

const paths = ["full", "read", "router", "admin", "cookie", "metered", "broken"]

/** The parts of an answer that its route decides on, but for the id of the request and the name of the meter. */
const toldBy = (answer: Answer) => ({
  status: answer.status,
  text: Buffer.from(answer.bytes)
    .toString()
    .replace(/req_\w+/, "")
    .replace(/of (ordinary|keyed)/, "")
    .replace(/\d+ s/, "s"),
  isCleared: isCleared(answer),
  headers: [
    "content-type",
    "www-authenticate",
    "x-content-type-options",
    "x-should-retry",
    "ratelimit-limit",
    "cache-control"
  ].map((name) => answer.headers.get(name))
})

const server = TestServer.own({ rooms: new Set(["accounts", "twice"]) }, { rooms: [...rooms, twiceRoom] })

layer(server, { excludeTestServices: true })("a raw route with the key of its caller", (it) => {
  it.effect("lets in those that an ordinary endpoint lets in, and answers others as it does", () =>
    Effect.gen(function* () {
      const { adminKey, ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const reader = (yield* makeKey({ scopes: ["read"] }, key)).key
      const router = (yield* makeKey({ kind: "router" }, key)).key
      const [cookie, readCookie, ended] = [yield* signIn(key), yield* signIn(reader), yield* signIn(key)]
      yield* askBy(ended, "DELETE", session)
      const token = yield* tokenOf(cookie)
      const shown: Readonly<Record<string, Asked>> = {
        administrator: { key: adminKey },
        account: { key },
        reader: { key: reader },
        router: { key: router },
        token: { key: token },
        "bad key": { key: "sk_x" },
        "other scheme": { key: "", headers: { authorization: `Basic ${key}`, cookie } },
        nothing: { key: "" },
        cookie: { key: "", headers: { cookie } },
        "own page": { key: "", headers: { cookie, "sec-fetch-site": "same-origin" } },
        "foreign page": { key: "", headers: { cookie, "sec-fetch-site": "cross-site" } },
        "foreign origin": { key: "", headers: { cookie, origin: "https://evil.example" } },
        "reader's cookie": { key: "", headers: { cookie: readCookie } },
        "forged cookie": { key: "", headers: { cookie: "signalbox=ssc_x" } },
        "ended session": { key: "", headers: { cookie: ended } },
        "key of a foreign page": { key, headers: { cookie, "sec-fetch-site": "cross-site" } }
      }
      const seen = new Set<string>()
      for (const [name, asked] of Object.entries(shown)) {
        for (const [method, path] of [["GET", "cookie"], ...paths.map((each) => ["POST", each])] as const) {
          const ordinary = toldBy(yield* ask(method ?? "", `/api/v1/ordinary/${path}`, asked))
          const raw = toldBy(yield* ask(method ?? "", `/api/v1/keyed/${path}`, asked))
          assert.deepStrictEqual(raw, ordinary, `${name}: ${method} ${path}`)
          seen.add(`${raw.status}${raw.isCleared ? " cleared" : ""}`)
        }
      }
      assert.sameMembers([...seen], ["200", "401", "401 cleared", "403", "429", "500"])
    })
  )

  it.effect("counts for its owner, refused or not", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      for (const path of ["full", "full", "admin"]) yield* ask("POST", `/api/v1/keyed/${path}`, { key })
      const stats = yield* ask("GET", "/api/v1/stats", { key })
      assert.deepInclude((stats.json as { readonly apiStats: object }).apiStats, {
        requestsToday: 3,
        errorCount: 1
      })
    })
  )
})
