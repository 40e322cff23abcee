import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestServer, type Answer, type Asked, textOf } from "#test/harness/TestServer.ts"
import { chrome } from "./Senders.ts"
import { makeSite } from "./SiteProbe.ts"

const live = { excludeTestServices: true } as const
const sites = "/api/v1/sites"

interface SiteBody {
  readonly id: string
  readonly [field: string]: unknown
}

const siteOf = ({ json }: Answer): SiteBody => (json as { site: SiteBody }).site

const create = (fields: object = {}, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", sites, { ...asked, json: { name: "Blog", domain: "example.com", ...fields } })
  )

const collect = (secret: string) =>
  Effect.flatMap(TestServer, ({ ask }) => {
    const event = { name: "pageview", url: "https://example.com/", visitor: "v" }
    return Effect.map(ask("POST", "/api/v1/collect", { key: secret, json: event }), ({ status }) => status)
  })

layer(TestServer.shared, live)("sites", (it) => {
  it.effect("are made with 201, the site and a secret that is shown once, and listed oldest first", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const made = yield* create({}, { key })
      assert.strictEqual(made.status, 201)
      const { createdAt, id, ...rest } = siteOf(made)
      assert.match(id, /^st_[0-9A-Za-z]{22}$/)
      assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const defaults = { timezone: "UTC", public: false, retentionDays: null }
      const never = { firstEventAt: null, resetAt: null }
      assert.deepStrictEqual(rest, { name: "Blog", domain: "example.com", ...defaults, ...never })
      assert.match(textOf(made, "secret"), /^ssk_[0-9A-Za-z]{40}$/)
      const second = yield* create({ timezone: "Europe/Berlin", public: true }, { key })
      assert.deepInclude(siteOf(second), { timezone: "Europe/Berlin", public: true })
      const listed = yield* ask("GET", sites, { key })
      assert.deepStrictEqual([listed.status, listed.json], [200, { sites: [siteOf(made), siteOf(second)] }])
    })
  )

  it.effect("keep their domain without scheme, www., port and path, international names as punycode", () =>
    Effect.gen(function* () {
      for (const [domain, kept] of [
        ["https://www.Example.org:8443/a?b#c", "example.org"],
        ["bücher.example", "xn--bcher-kva.example"],
        ["blog.example.org", "blog.example.org"],
        ["localhost:3000", "localhost"]
      ] as const) {
        assert.strictEqual(siteOf(yield* create({ domain }))["domain"], kept)
      }
    })
  )

  it.effect("name the field that is missing or out of its limits, just outside; just inside is taken", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { id } = siteOf(yield* create())
      const label = "l".repeat(63)
      const longest = `${label}.${label}.${label}.${"l".repeat(61)}`
      for (const [field, inside, outside] of [
        [
          "name",
          ["x", "x".repeat(100), "名 😀"],
          [undefined, "", "x".repeat(101), "a\nb", "a\u0000", 1, null]
        ],
        [
          "domain",
          ["a", longest, "127.0.0.1"],
          [
            undefined,
            "",
            `${longest}l`,
            `${"l".repeat(64)}.example`,
            "a b",
            "-a.example",
            "ftp://a.example",
            1,
            null
          ]
        ],
        [
          "timezone",
          ["UTC", "America/St_Johns", "Europe/Berlin"],
          ["", "Mars/Base", "x".repeat(65), "+01:00 ", 1, null]
        ],
        ["public", [true, false], ["true", 1, null]]
      ] as const) {
        for (const value of inside) {
          const made = yield* create({ [field]: value })
          assert.strictEqual(made.status, 201, `${field} ${String(value)} ${JSON.stringify(made.json)}`)
          const changed = yield* ask("PATCH", `${sites}/${id}`, { json: { [field]: value } })
          assert.strictEqual(changed.status, 200, `${field} ${String(value)}`)
        }
        for (const value of outside) {
          const answers = [
            yield* create({ [field]: value }),
            ...(value === undefined
              ? []
              : [yield* ask("PATCH", `${sites}/${id}`, { json: { [field]: value } })])
          ]
          for (const refused of answers) {
            const what = `${field} ${String(value)} ${JSON.stringify(refused.json)}`
            assert.strictEqual(refused.status, 400, what)
            assert.isTrue(textOf(refused, "error").startsWith(`${field}: `), what)
          }
        }
      }
    })
  )

  it.effect("change what is given, and nothing else", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = siteOf(yield* create())
      const change = (json: object) => ask("PATCH", `${sites}/${site.id}`, { json })
      assert.deepStrictEqual((yield* change({})).json, site)
      const changed = yield* change({ domain: "www.example.net", public: true })
      assert.deepStrictEqual(changed.json, { ...site, domain: "example.net", public: true })
      for (const fixed of ["id", "secret"]) {
        const { json, status } = yield* change({ name: "other", [fixed]: "x" })
        assert.deepStrictEqual([status, json], [400, { error: `${fixed}: is not known here` }])
      }
    })
  )

  it.effect("are not found under an id that names none, of any form", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const id of ["", "x".repeat(300), "st_0000000000000000000000", "%00"])
        for (const [method, way, json] of [
          ["PATCH", "", { retentionDays: 1 }],
          ["DELETE", "", undefined],
          ["POST", "/reset", undefined]
        ] as const) {
          const refused = yield* ask(method, `${sites}/${id}${way}`, { json })
          assert.isAtLeast(refused.status, 400, `${method} ${id}`)
          assert.isBelow(refused.status, 500, `${method} ${id}`)
        }
    })
  )

  it.effect("get another secret; the old one stops, and both stop with the site", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const made = yield* create()
      const { id } = siteOf(made)
      const old = textOf(made, "secret")
      assert.strictEqual(yield* collect(old), 202)
      const rotated = yield* ask("POST", `${sites}/${id}/secret`)
      assert.strictEqual(rotated.status, 200)
      const fresh = textOf(rotated, "secret")
      assert.match(fresh, /^ssk_[0-9A-Za-z]{40}$/)
      assert.deepStrictEqual([yield* collect(old), yield* collect(fresh)], [401, 202])
      const hit = { s: id, k: "pageview", u: "https://example.com/" }
      const event = () => ask("POST", "/api/event", { key: "", json: hit })
      assert.strictEqual((yield* event()).status, 202)
      yield* ask("DELETE", `${sites}/${id}`)
      assert.strictEqual(yield* collect(fresh), 401)
      const refused = yield* event()
      assert.deepStrictEqual([refused.status, refused.json], [404, { error: "Unknown site" }])
    })
  )

  it.effect("show when their first event was as soon as it is accepted, by either way", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const shown = (id: string) =>
        Effect.map(ask("GET", sites), ({ json }) =>
          (json as { sites: ReadonlyArray<SiteBody> }).sites.find((site) => site.id === id)
        )
      const one = yield* makeSite()
      const timestamp = new Date(Date.now() - 3_600_000).toISOString()
      assert.strictEqual((yield* shown(one.id))?.["firstEventAt"], null)
      yield* one.collect([{ url: "/" }, { url: "/", timestamp }, { url: "/" }])
      assert.strictEqual((yield* shown(one.id))?.["firstEventAt"], timestamp)
      const other = yield* makeSite()
      const json = { s: other.id, k: "pageview", u: "https://example.com/" }
      const sent = yield* ask("POST", "/api/event", { key: "", json, headers: { "user-agent": chrome } })
      assert.strictEqual(sent.status, 202)
      assert.isString((yield* shown(other.id))?.["firstEventAt"])
    })
  )

  it.effect("show when their first event was, which may be before they were made", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      yield* site.importLines("old", [
        JSON.stringify({ url: "/", visitor: "b", timestamp: "2026-01-02T00:00:00Z" }),
        JSON.stringify({ url: "/", visitor: "a", timestamp: "2026-01-01T10:20:30+01:00" })
      ])
      const shown = Effect.map(ask("GET", sites), ({ json }) =>
        (json as { sites: ReadonlyArray<SiteBody> }).sites.find(({ id }) => id === site.id)
      )
      const noted = yield* Effect.repeat(shown, {
        until: (found) => found?.["firstEventAt"] !== null,
        schedule: Schedule.spaced(50)
      })
      assert.strictEqual(noted?.["firstEventAt"], "2026-01-01T09:20:30.000Z")
    })
  )
})
