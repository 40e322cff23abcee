import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Scope } from "#schemas/core/Credential.ts"
import { Admission, anyKey, entering } from "#src/accounts/Admission.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { RequestCounts } from "#src/accounts/RequestCounts.ts"
import { AppConfig } from "#src/Config.ts"

const principal = (changes: Partial<Principal>): Principal => ({
  kind: "account",
  id: "key_1",
  ownerId: "usr_1",
  scopes: ["full"],
  expiresAt: null,
  keyId: "key_1",
  keyName: "test",
  role: "user",
  models: null,
  collections: null,
  rateLimitPerMinute: null,
  ...changes
})

const sessionOf = (scopes: ReadonlyArray<string>) =>
  principal({ kind: "session", id: "web_1", scopes, keyId: "key_1" })

/** The callers, by what they show: a secret in Authorization, or a cookie. */
const callers: Readonly<Record<string, Principal>> = {
  full: principal({}),
  read: principal({ scopes: ["read"] }),
  photos: principal({ scopes: ["write:photos", "read:photos"] }),
  router: principal({ kind: "router", scopes: [] }),
  admin: principal({ role: "admin" }),
  adminsReader: principal({ role: "admin", scopes: ["read"] }),
  adminsRouter: principal({ role: "admin", kind: "router", scopes: [] }),
  session: sessionOf(["full"]),
  readSession: sessionOf(["read"])
}

const credentials = Layer.mock(Credentials)({
  authenticate: (secret) => Effect.succeed(callers[secret]),
  authenticateCookie: (cookie) => Effect.succeed(callers[cookie]),
  recall: () => undefined,
  holder: () => undefined
})

const admissionLayer = Admission.layer.pipe(
  Layer.provide([
    credentials,
    RateBuckets.layer({ rateBurst: 1_000 }),
    Layer.mock(RequestCounts)({ record: () => undefined })
  ]),
  Layer.provide(AppConfig.layerOf({}))
)

/** 200, or the status of the refusal. */
const statusOf = (
  shown: { readonly key?: string; readonly cookie?: string; readonly site?: string },
  access: object
) =>
  Effect.flatMap(Admission, (admission) => {
    const headers: Readonly<Record<string, string>> = {
      cookie: shown.cookie === undefined ? "" : `signalbox=${shown.cookie}`,
      "sec-fetch-site": shown.site ?? "",
      host: "box.example"
    }
    // A raw route's request, as the front gives it.
    const browser = { method: "POST", isProxied: false, header: (name: string) => headers[name] ?? "" }
    const authorization = shown.key === undefined ? "" : `Bearer ${shown.key}`
    const wanted = { ...anyKey, routerKeys: false, ...access }
    const caller = { remoteAddress: "192.0.2.1" }
    const entered = entering(
      admission,
      wanted,
      authorization,
      caller,
      () => browser,
      () => Effect.void
    )
    return Effect.matchEager(entered, {
      onFailure: ({ status }) => status,
      onSuccess: ({ refusal }) => refusal?.status ?? 200
    })
  })

layer(admissionLayer)("admission", (it) => {
  const scopes: ReadonlyArray<Scope | "any"> = ["any", "full", "read", "write", "read:photos", "write:photos"]
  for (const [key, covered] of [
    ["full", scopes],
    ["admin", scopes],
    ["session", scopes],
    ["read", ["any", "read", "read:photos"]],
    ["adminsReader", ["any", "read", "read:photos"]],
    ["readSession", ["any", "read", "read:photos"]],
    ["photos", ["any", "read:photos", "write:photos"]],
    ["router", []]
  ] as const)
    it.effect(`lets ${key} in where ${covered.join(", ") || "nothing"} is needed`, () =>
      Effect.gen(function* () {
        for (const scope of scopes)
          assert.strictEqual(
            yield* statusOf({ key }, { scope }),
            (covered as ReadonlyArray<string>).includes(scope) ? 200 : 403,
            scope
          )
      })
    )

  it.effect("lets router keys in where they may, whatever scope others need", () =>
    Effect.gen(function* () {
      for (const key of ["router", "adminsRouter"])
        for (const scope of scopes)
          assert.strictEqual(yield* statusOf({ key }, { routerKeys: true, scope }), 200)
    })
  )

  it.effect("lets administrators in with the scope that is needed", () =>
    Effect.gen(function* () {
      const statuses = yield* Effect.forEach(
        ["admin", "full", "session", "adminsReader", "adminsRouter"],
        (key) => statusOf({ key }, { administratorsOnly: true })
      )
      assert.deepStrictEqual(statuses, [200, 403, 403, 403, 403])
    })
  )

  for (const [note, shown, closed, open] of [
    ["a cookie", { cookie: "session" }, 401, 200],
    ["a cookie of the own page", { cookie: "session", site: "same-origin" }, 401, 200],
    ["a cookie of a foreign page", { cookie: "session", site: "cross-site" }, 401, 403],
    ["a bad cookie", { cookie: "x" }, 401, 401],
    ["a bad cookie of a foreign page", { cookie: "x", site: "cross-site" }, 401, 401],
    ["a cookie without the scope", { cookie: "readSession" }, 401, 403],
    ["a key beside a cookie", { key: "full", cookie: "readSession" }, 200, 200],
    ["a key from a foreign page", { key: "full", site: "cross-site" }, 200, 200],
    ["a bad key beside a cookie", { key: "x", cookie: "session" }, 401, 401],
    ["a cookie as a key", { key: "ssc_x" }, 401, 401],
    ["nothing", {}, 401, 401]
  ] as const)
    it.effect(`answers ${note} with ${closed}, and with ${open} where cookies are let in`, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* statusOf(shown, { cookies: false }), closed)
        assert.strictEqual(yield* statusOf(shown, { cookies: true }), open)
      })
    )
})
