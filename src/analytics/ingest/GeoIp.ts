import { readFile } from "node:fs/promises"
import { Context, Effect, Layer, Schema } from "effect"
import { Reader } from "mmdb-lib"
import type { CountryResponse } from "mmdb-lib"
import { AppConfig } from "#src/Config.ts"

/** The file that GEOIP_DB names is not there or is no MaxMind database. */
export class GeoIpUnreadable extends Schema.TaggedError<GeoIpUnreadable>()("GeoIpUnreadable", {
  path: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `GEOIP_DB: ${this.path} cannot be read as a MaxMind database (mmdb)`
  }
}

/** The country of an address by a MaxMind database that the operator brings; without one nothing is known. */
export class GeoIp extends Context.Service<
  GeoIp,
  {
    /** ISO-3166 alpha-2 of a canonical address, '' when unknown */
    readonly countryOf: (address: string) => string
  }
>()("signalbox/analytics/GeoIp") {
  static readonly layer = Layer.effect(
    GeoIp,
    Effect.gen(function* () {
      const { geoipDb } = yield* AppConfig
      if (geoipDb === undefined) return GeoIp.of({ countryOf: () => "" })
      const reader = yield* Effect.tryPromise({
        try: async () => new Reader<CountryResponse>(await readFile(geoipDb)),
        catch: (cause) => new GeoIpUnreadable({ path: geoipDb, cause })
      })
      return GeoIp.of({
        countryOf: (address) => {
          // The reader would take the first bits of an IPv6 address for an IPv4 one.
          if (reader.metadata.ipVersion === 4 && address.includes(":")) return ""
          const found = reader.get(address)
          return found?.country?.iso_code ?? found?.registered_country?.iso_code ?? ""
        }
      })
    })
  )
}
