import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { EventDrain } from "#src/analytics/store/EventDrain.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { Stats } from "#src/analytics/reads/Stats.ts"
import { drained } from "./DrainedLog.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const site: SiteRow = {
  id: "st_0000000000000000000001",
  dataset: "st_0000000000000000000001",
  user_id: "usr_1",
  name: "Example",
  domain: "example.org",
  timezone: "UTC",
  public: false,
  secret_hash: "",
  visitorSecret: new Uint8Array(),
  retentionDays: null,
  firstEventAt: null,
  resetAt: null,
  createdAt: new Date(0)
}

const stores = Stats.layer.pipe(Layer.provide(drained), Layer.provideMerge(TestStores.layer))

const nothing = {
  visitors: 0,
  visits: 0,
  pageviews: 0,
  events: 0,
  viewsPerVisit: 0,
  bounceRate: 0,
  avgDurationSec: 0
}

describe("stats", () => {
  layer(stores, { excludeTestServices: true })((it) => {
    it.effect("of a site without events are zeros, in complete series", () =>
      Effect.gen(function* () {
        const found = yield* (yield* Stats).ofSite(site, {})
        assert.strictEqual(found.timeseries.length, 30)
        assert.deepStrictEqual(found.summary, nothing)
        assert.isTrue(
          found.timeseries.every(({ pageviews, visitors, visits }) => pageviews + visitors + visits === 0)
        )
      })
    )
  })

  it.effect("fail while what was accepted cannot be made visible, rather than leave it out", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip((yield* Stats).ofSite(site, { period: "today" }))
      assert.strictEqual(failed._tag, "SinkUnavailable")
    }).pipe(
      Effect.provide(
        Stats.layer.pipe(
          Layer.provide(
            Layer.effect(
              EventDrain,
              Effect.map(EventDrain, (drain) => ({
                ...drain,
                freshen: () => Effect.fail(new SinkUnavailable({ problem: "away", cause: undefined }))
              }))
            )
          ),
          Layer.provide(drained),
          Layer.provide(TestStores.layer)
        )
      )
    )
  )
})
