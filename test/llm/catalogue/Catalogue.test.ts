import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { Catalogue, catalogueReadiness } from "#src/llm/catalogue/Catalogue.ts"
import { MarkupDirectory } from "#src/llm/catalogue/MarkupDirectory.ts"
import { Markups } from "#src/llm/catalogue/Markups.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { breaksOff, ListServer, sends, sendsWithoutEnd, staysSilent } from "./ListServer.ts"
import { listOf, trappedList, upstreamModel } from "./UpstreamModels.ts"

/** A catalogue of its own, as a process would have it, until the scope closes. */
const catalogueOf = (server: ListServer, isSandbox = false) => {
  const address = Layer.succeed(UpstreamAddress, { url: server.url, apiKey: undefined, isSandbox })
  return Effect.map(
    Effect.gen(function* () {
      const scope = yield* Scope.Scope
      return yield* Layer.buildWithScope(
        Markups.layer.pipe(
          Layer.provideMerge(Catalogue.layer),
          Layer.provideMerge(MarkupDirectory.layer),
          Layer.provide(Upstream.layer),
          Layer.provide(address),
          // Its log is tested by the mirror's own test.
          Layer.provide(Logger.layer([])),
          Layer.fresh
        ),
        scope
      )
    }),
    (context) => ({
      ...Context.get(context, Catalogue),
      markups: Context.get(context, Markups),
      directory: Context.get(context, MarkupDirectory)
    })
  )
}

const idsOf = (catalogue: Catalogue["Service"]) => catalogue.all().map(({ id }) => id)

const lists = (...ids: ReadonlyArray<string>) => sends(listOf(...ids.map((id) => upstreamModel(id))))

const limits = {
  catalogueBytes: 64 * 1024,
  catalogueFetchMillis: 300,
  catalogueStartMillis: 20_000,
  catalogueRetryMinMillis: 20,
  catalogueRetryMaxMillis: 40
}

layer(TestStores.layerWith({ limits }), { excludeTestServices: true })((it) => {
  describe("the catalogue", () => {
    it.effect("has the upstream's models with prices as soon as it is there, in the upstream's order", () =>
      Effect.gen(function* () {
        const server = yield* ListServer.make
        server.otherwise = sends(trappedList)
        const catalogue = yield* catalogueOf(server)
        assert.deepStrictEqual(server.requests, ["GET /api/v1/models"])
        assert.strictEqual(idsOf(catalogue)[2], "router/auto")
        assert.strictEqual(catalogue.get("acme/large")?.pricing.prompt, "0.00000051")
        assert.isUndefined(catalogue.get("acme/none"))
        assert.deepInclude(catalogue.status(), { models: 5, isStale: false })
      })
    )

    it.effect(
      "lives through an outage and through restarts with its last good list, then catches up by itself",
      () =>
        Effect.gen(function* () {
          const server = yield* ListServer.make
          server.otherwise = lists("a/one", "a/two")
          yield* Effect.scoped(catalogueOf(server))
          yield* Effect.promise(() => server.close())
          const restarted = yield* catalogueOf(server)
          assert.deepStrictEqual(idsOf(restarted), ["a/one", "a/two"])
          assert.isTrue(restarted.status().isStale)
          assert.match(restarted.status().problem ?? "", /ECONNREFUSED/)
          server.otherwise = lists("a/two", "a/three")
          yield* Effect.promise(() => server.open())
          yield* eventually(
            "the list of after the outage",
            Effect.sync(() => idsOf(restarted).includes("a/three") && !restarted.status().isStale)
          )
          assert.isUndefined(restarted.get("a/one"))
        })
    )

    it.effect("keeps its list through answers of no use: errors, garbage, cut, too long, silence", () =>
      Effect.gen(function* () {
        const server = yield* ListServer.make
        server.otherwise = lists("a/one")
        const catalogue = yield* catalogueOf(server)
        const other = listOf(upstreamModel("b/other"))
        for (const [answering, problem] of [
          [sends(other, 500), /^the upstream answered 500$/],
          [sends(other, 401), /^the upstream answered 401$/],
          [sends(other, 201), /^the upstream answered 201$/],
          [sends("<html>"), /^the list is not JSON$/],
          [sends(listOf()), /^the list is empty$/],
          [sends(other.slice(0, 40)), /^the list is not JSON$/],
          [breaksOff(other, 0), /./],
          [breaksOff(other, other.length - 1), /./],
          [
            sends(listOf(upstreamModel("b/other", { description: "x".repeat(64 * 1024) }))),
            /more than 65536 bytes/
          ],
          [sendsWithoutEnd, /more than 65536 bytes/],
          [staysSilent, /in 300 ms/]
        ] as const) {
          server.otherwise = answering
          const failed = yield* Effect.flip(catalogue.refresh)
          assert.match(failed.problem, problem)
          assert.deepStrictEqual(idsOf(catalogue), ["a/one"], failed.problem)
          assert.isTrue(catalogue.status().isStale)
        }
        server.otherwise = lists("a/two")
        yield* catalogue.refresh
        assert.deepStrictEqual([idsOf(catalogue), catalogue.status().isStale], [["a/two"], false])
      })
    )

    it.effect("says on /readyz what it has, and an outage, which makes no server unready", () =>
      Effect.gen(function* () {
        const server = yield* ListServer.make
        server.otherwise = lists("a/one")
        const catalogue = yield* catalogueOf(server)
        const readyz = Effect.gen(function* () {
          const { report } = yield* Readiness
          const { components, status } = yield* report
          return [status, components["catalogue"]?.status, components["catalogue"]?.detail]
        }).pipe(
          Effect.provide(catalogueReadiness.pipe(Layer.provideMerge(Readiness.layer))),
          Effect.provideService(Catalogue, catalogue)
        )
        const fetchedAt = catalogue.status().fetchedAt?.toISOString()
        assert.deepStrictEqual(yield* readyz, ["ready", "up", `1 models of ${fetchedAt}`])
        server.otherwise = sends("", 503)
        yield* Effect.flip(catalogue.refresh)
        const detail = `1 models of ${fetchedAt}; the upstream's list cannot be fetched: the upstream answered 503`
        assert.deepStrictEqual(yield* readyz, ["ready", "degraded", detail])
      })
    )

    it.effect("keeps one copy for each upstream, and one for the sandbox wherever it listens", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`DELETE FROM catalogue_copies`
        const [first, second] = [yield* ListServer.make, yield* ListServer.make]
        first.otherwise = lists("a/first")
        second.otherwise = lists("b/second")
        yield* Effect.scoped(catalogueOf(first))
        yield* Effect.scoped(catalogueOf(second))
        for (const server of [first, second]) yield* Effect.promise(() => server.close())
        assert.deepStrictEqual(idsOf(yield* catalogueOf(first)), ["a/first"])
        assert.deepStrictEqual(idsOf(yield* catalogueOf(second)), ["b/second"])
        const sandbox = yield* ListServer.make
        sandbox.otherwise = lists("sandbox/one")
        yield* Effect.scoped(catalogueOf(sandbox, true))
        assert.deepStrictEqual(idsOf(yield* catalogueOf(second, true)), ["sandbox/one"])
        const kept = yield* sql<{ upstream: string }>`SELECT upstream FROM catalogue_copies`
        assert.sameMembers(
          kept.map(({ upstream }) => upstream),
          [first.url, second.url, "sandbox"]
        )
      })
    )

    it.effect("never keeps an older list over a newer one of another process", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const server = yield* ListServer.make
        server.otherwise = lists("a/one")
        const catalogue = yield* catalogueOf(server)
        const newer = listOf(upstreamModel("a/newer"))
        yield* sql`UPDATE catalogue_copies SET body = ${newer}, fetched_at = now() + interval '1 hour'
          WHERE upstream = ${server.url}`
        yield* catalogue.refresh
        const [kept] = yield* sql<{
          body: string
        }>`SELECT body FROM catalogue_copies WHERE upstream = ${server.url}`
        assert.strictEqual(kept?.body, newer)
      })
    )

    it.effect(
      "prices by the provider's markup, from the change on, in every process; a call keeps what it got",
      () =>
        Effect.gen(function* () {
          const server = yield* ListServer.make
          server.otherwise = lists("acme/one", "other/one")
          const [here, there] = [yield* catalogueOf(server), yield* catalogueOf(server)]
          const admitted = here.get("acme/one")
          assert.deepStrictEqual(here.markups.get("acme"), { provider: "acme", percent: 2, isDefault: true })
          const set = yield* here.markups.set("acme", 12.345678)
          assert.deepStrictEqual(set, { provider: "acme", percent: 12.345678, isDefault: false })
          assert.strictEqual(here.get("acme/one")?.pricing.prompt, "0.00000112345678")
          assert.strictEqual(here.all()[0]?.pricing.completion, "0.00000224691356")
          assert.strictEqual(here.get("other/one")?.pricing.prompt, "0.00000102")
          assert.strictEqual(admitted?.pricing.prompt, "0.00000102")
          yield* there.directory.refreshNow
          assert.strictEqual(there.get("acme/one")?.pricing.prompt, "0.00000112345678")
          yield* here.markups.set("acme", 0)
          assert.strictEqual(here.get("acme/one")?.pricing.prompt, "0.000001")
          assert.strictEqual(
            here.get("acme/one"),
            here.get("acme/one"),
            "a price is not made anew for each call"
          )
        })
    )

    it.effect("lists the providers it has, and those whose markup was set, by name", () =>
      Effect.gen(function* () {
        const server = yield* ListServer.make
        server.otherwise = lists("beta/one", "alpha/one", "beta/two")
        const { markups } = yield* catalogueOf(server)
        yield* markups.set("unheard-of", 0.5)
        const listed = markups.list().filter(({ provider }) => provider !== "acme")
        assert.deepStrictEqual(listed, [
          { provider: "alpha", percent: 2, isDefault: true },
          { provider: "beta", percent: 2, isDefault: true },
          { provider: "unheard-of", percent: 0.5, isDefault: false }
        ])
      })
    )
  })
})
