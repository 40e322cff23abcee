import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fs from "node:fs"
import { join } from "node:path"
import { GeoIp } from "#src/analytics/ingest/GeoIp.ts"
import { AppConfig } from "#src/Config.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"

/** The types of MaxMind DB's data section that these files need. Source: MaxMind DB file format 2.0. */
const field = (value: string | number | Readonly<Record<string, unknown>>): Buffer => {
  if (typeof value === "string")
    return Buffer.concat([Buffer.of((2 << 5) | value.length), Buffer.from(value)])
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return Buffer.concat([Buffer.of((6 << 5) | 4), bytes])
  }
  const entries = Object.entries(value).flatMap(([key, inner]) => [
    field(key),
    field(typeof inner === "string" || typeof inner === "number" ? inner : { ...Object(inner) })
  ])
  return Buffer.concat([Buffer.of((7 << 5) | Object.keys(value).length), ...entries])
}

/** A database that knows one thing: the addresses whose first bit is 0 are in the country. */
const database = (ipVersion: 4 | 6, country: string): Buffer => {
  const unknown = 1
  const known = 1 + 16
  const tree = Buffer.alloc(6)
  tree.writeUIntBE(known, 0, 3)
  tree.writeUIntBE(unknown, 3, 3)
  const metadata = field({
    node_count: 1,
    record_size: 24,
    ip_version: ipVersion,
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
    database_type: "Test"
  })
  const marker = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1")
  return Buffer.concat([tree, Buffer.alloc(16), field({ country: { iso_code: country } }), marker, metadata])
}

const withDatabase = (content: Uint8Array | undefined) =>
  Effect.gen(function* () {
    const path = join(yield* temporaryDirectory, "country.mmdb")
    if (content !== undefined) fs.writeFileSync(path, content)
    const layer = GeoIp.layer.pipe(Layer.provide(AppConfig.layerOf({ geoipDb: path })))
    return Effect.runSync(Effect.provide(GeoIp, yield* Layer.build(layer)))
  })

describe("the country of an address", () => {
  it.effect("is what the operator's database says", () =>
    Effect.gen(function* () {
      const { countryOf } = yield* withDatabase(database(4, "NL"))
      assert.strictEqual(countryOf("10.0.0.1"), "NL")
      assert.strictEqual(countryOf("192.0.2.1"), "")
      const six = yield* withDatabase(database(6, "SE"))
      assert.strictEqual(six.countryOf("2001:db8::1"), "SE")
      assert.strictEqual(six.countryOf("fe80::1"), "")
    })
  )

  it.effect("is unknown where the database has no such addresses, and without a database", () =>
    Effect.gen(function* () {
      const { countryOf } = yield* withDatabase(database(4, "NL"))
      assert.strictEqual(countryOf("2001:db8::1"), "")
      const none = yield* Layer.build(GeoIp.layer.pipe(Layer.provide(AppConfig.layerOf({}))))
      assert.strictEqual(Effect.runSync(Effect.provide(GeoIp, none)).countryOf("10.0.0.1"), "")
    })
  )

  it.effect(
    "is not served from a file that is missing or no database: the start fails and names GEOIP_DB",
    () =>
      Effect.gen(function* () {
        for (const content of [undefined, Buffer.from("not a database"), Buffer.alloc(0)]) {
          const error = yield* Effect.flip(withDatabase(content))
          assert.match(error.message, /^GEOIP_DB: /)
        }
      })
  )
})
