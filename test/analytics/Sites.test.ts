import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { normaliseDomain, SiteDirectory, Sites } from "#src/analytics/sites/Sites.ts"
import { offeredPurges } from "./OfferedPurges.ts"
import { TestStores } from "#test/harness/TestStores.ts"

describe("normaliseDomain", () => {
  it("drops scheme, www., user, port, path and case, and keeps international names as punycode", () => {
    assert.strictEqual(normaliseDomain("https://ada@WWW.Example.com:8443/path?q=1#f"), "example.com")
    assert.strictEqual(normaliseDomain("bücher.example"), "xn--bcher-kva.example")
    assert.strictEqual(normaliseDomain("blog.example.co.uk."), "blog.example.co.uk")
    assert.strictEqual(normaliseDomain("localhost"), "localhost")
    assert.strictEqual(normaliseDomain("127.0.0.1:3000"), "127.0.0.1")
  })

  it("refuses what leaves no host name", () => {
    for (const text of [
      "",
      " ",
      "com",
      "co.uk",
      "ftp://example.com",
      "exa mple.com",
      "-a.example",
      "a..b",
      "javascript:alert(1)",
      "[::"
    ]) {
      assert.isUndefined(normaliseDomain(text), text)
    }
  })
})

const layers = Sites.layer.pipe(
  Layer.provide(offeredPurges),
  Layer.provideMerge(SiteDirectory.layer),
  Layer.provideMerge(TestStores.layer)
)

layer(layers)("Sites", (it) => {
  const owner = "usr_0000000000000000000001"
  const makeOwner = Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`INSERT INTO users ${sql.insert({ id: owner, email: "a@b.example", name: "A", role: "user" })}
      ON CONFLICT DO NOTHING`
    return yield* Sites
  })

  it.effect("makes a site that is found by id and by secret at once, and stores no secret", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const directory = yield* SiteDirectory
      const sql = yield* SqlClient
      const { secret, site } = yield* sites.create(owner, {
        name: "Blog",
        domain: "https://www.Example.com/"
      })
      assert.strictEqual(site.domain, "example.com")
      assert.strictEqual(site.timezone, "UTC")
      assert.match(secret, /^ssk_[0-9A-Za-z]{40}$/)
      assert.strictEqual(directory.findBySecret(secret)?.site.id, site.id)
      assert.deepStrictEqual(yield* sites.find(site.id, owner), site)
      const rows = yield* sql`SELECT sites::text FROM sites WHERE id = ${site.id}`
      assert.notInclude(JSON.stringify(rows), secret.slice(12))
    })
  )

  it.effect("names the field that is no domain or no time zone", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const noDomain = yield* Effect.flip(sites.create(owner, { name: "A", domain: "a b" }))
      assert.match(noDomain.message, /^domain: /)
      const noZone = yield* Effect.flip(
        sites.create(owner, { name: "A", domain: "a.example", timezone: "Mars/Base" })
      )
      assert.match(noZone.message, /^timezone: /)
      // Intl takes an offset for a zone, but it is no name of IANA's.
      const offset = yield* Effect.flip(
        sites.create(owner, { name: "A", domain: "a.example", timezone: "+02:00" })
      )
      assert.match(offset.message, /^timezone: /)
    })
  )

  it.effect("replaces a secret: the old one finds nothing", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const directory = yield* SiteDirectory
      const { secret, site } = yield* sites.create(owner, { name: "A", domain: "a.example" })
      const rotated = yield* sites.rotateSecret(site.id, owner)
      assert.isUndefined(directory.findBySecret(secret))
      assert.strictEqual(directory.findBySecret(rotated)?.id, site.id)
    })
  )

  it.effect("treats a site of somebody else as if it did not exist", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const { site } = yield* sites.create(owner, { name: "A", domain: "a.example" })
      const other = "usr_0000000000000000000002"
      for (const attempt of [
        sites.find(site.id, other),
        sites.update(site.id, other, { name: "B" }),
        sites.remove(site.id, other),
        sites.rotateSecret(site.id, other)
      ]) {
        assert.strictEqual((yield* Effect.flip(Effect.asVoid(attempt)))._tag, "NotFound")
      }
      assert.notInclude(
        sites.list(other).map(({ id }) => id),
        site.id
      )
    })
  )

  it.effect("forgets a deleted site everywhere", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const directory = yield* SiteDirectory
      const { secret, site } = yield* sites.create(owner, { name: "A", domain: "a.example" })
      yield* sites.remove(site.id, owner)
      assert.isUndefined(directory.get(site.id))
      assert.isUndefined(directory.findBySecret(secret))
      assert.strictEqual((yield* Effect.flip(sites.remove(site.id, owner)))._tag, "NotFound")
    })
  )

  it.effect("changes only what is given", () =>
    Effect.gen(function* () {
      const sites = yield* makeOwner
      const { site } = yield* sites.create(owner, { name: "A", domain: "a.example", public: true })
      const changed = yield* sites.update(site.id, owner, { timezone: "Europe/Berlin" })
      assert.deepStrictEqual({ ...changed }, { ...site, timezone: "Europe/Berlin" })
      assert.deepStrictEqual(yield* sites.update(site.id, owner, {}), changed)
    })
  )
})
