import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { fill, stored, today } from "./PurgedStores.ts"
import { makeSite } from "./SiteProbe.ts"

const live = { excludeTestServices: true } as const

const limits = { purgeLookMillis: 500, purgeSettleMillis: 2_000, purgeRestMillis: 0 }

/** Nothing of the site is stored, but for the days of one dataset. */
const hasOnly = (id: string, dataset?: string, days: ReadonlyArray<number> = []) =>
  eventually(
    `only ${dataset ?? "nothing"} of ${id}`,
    Effect.map(stored(id), ({ events, visits }) => {
      const wanted = JSON.stringify(dataset === undefined ? [] : [[dataset.slice(id.length), days]])
      return [events, visits].every((rows) => JSON.stringify(rows) === wanted)
    })
  )

const event = { url: "https://example.com/", visitor: "v" }

layer(TestServer.own({ limits }), live)("purges by a server", (it) => {
  it.effect("follow a deletion, and what comes of the site afterwards", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const [site, other] = [yield* makeSite(), yield* makeSite()]
      for (const each of [site, other]) yield* each.collect([{ ...event, id: "1" }])
      yield* fill([site.id, other.id], [today - 1])
      yield* ask("DELETE", `/api/v1/sites/${site.id}`)
      yield* hasOnly(site.id)
      const isPurged = Effect.map(
        sql<{ is: boolean }>`SELECT purged_at IS NOT NULL AS is FROM sites WHERE id = ${site.id}`,
        ([row]) => row?.is === true
      )
      yield* eventually("the site is purged", isPurged)
      // As a log brings them that was away.
      yield* fill([site.id], [today])
      yield* hasOnly(site.id)
      yield* hasOnly(other.id, other.id, [today - 1, today])
    })
  )

  it.effect("take the sites of a deleted user", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const site = yield* makeSite({}, person.key)
      yield* site.collect([event])
      yield* fill([site.id], [today - 1])
      assert.strictEqual((yield* ask("DELETE", `/api/v1/admin/users/${person.id}`)).status, 200)
      yield* hasOnly(site.id)
    })
  )

  it.effect("follow a reset, while what comes then is kept", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      yield* site.collect([event])
      yield* ask("POST", `/api/v1/sites/${site.id}/reset`)
      yield* site.collect([event])
      yield* site.read("stats")
      yield* hasOnly(site.id, `${site.id}~1`, [today])
      assert.deepInclude((yield* site.read("stats")).json, {
        summary: {
          visitors: 1,
          visits: 1,
          pageviews: 1,
          events: 0,
          viewsPerVisit: 1,
          bounceRate: 100,
          avgDurationSec: 0
        }
      })
    })
  )

  it.effect("follow a shorter retention, and the days as they pass", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      yield* fill([site.id], [today, today - 5, today - 6, today - 700])
      yield* ask("PATCH", `/api/v1/sites/${site.id}`, { json: { retentionDays: 5 } })
      yield* hasOnly(site.id, site.id, [today - 5, today])
      // A row that is too old by now, without a change that would say so.
      yield* fill([site.id], [today - 6])
      yield* hasOnly(site.id, site.id, [today - 5, today])
    })
  )
})
