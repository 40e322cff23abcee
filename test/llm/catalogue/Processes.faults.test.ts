import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { limits } from "#src/Limits.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { ask as askProcess } from "#test/harness/ApiClient.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { catalogueServer, TestUpstream } from "./CatalogueServer.ts"

/** A second server: a process of its own on the same stores and the same upstream. */
const otherProcess = Effect.gen(function* () {
  const { clickhouseUrl, databaseUrl } = yield* TestStores
  const { url } = yield* TestUpstream
  const env = {
    ROOMS: "accounts,llm",
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    UPSTREAM_URL: url
  }
  return yield* Effect.acquireRelease(
    Effect.promise(() => startServer({ env })),
    (server) => Effect.promise(() => server.dispose())
  )
})

type Other = Effect.Success<typeof otherProcess>

const read = (other: Other, path: string) =>
  Effect.flatMap(TestServer, ({ adminKey }) =>
    Effect.promise(() => askProcess(other, "GET", path, { key: adminKey }))
  )

const promptOf = (other: Other, id: string) =>
  Effect.map(read(other, `/api/v1/models/${id}`), ({ body }) =>
    Predicate.hasProperty(body, "pricing") && Predicate.hasProperty(body.pricing, "prompt")
      ? body.pricing.prompt
      : undefined
  )

layer(catalogueServer(), { excludeTestServices: true })("in another process", (it) => {
  it.effect("collections and markups come, change and go by themselves", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const other = yield* otherProcess
      // Less than half of the second that a change may take, so that one lost poll is no breach.
      assert.isBelow(limits.cachePollMillis, 500)
      const becomes = (what: string, path: string, status: number) =>
        eventually(
          what,
          Effect.map(read(other, path), (answer) => answer.status === status)
        )
      const json = { name: "Shared", models: ["acme/large"] }
      const path = `/api/v1/collections/${textOf(yield* ask("POST", "/api/v1/collections", { json }), "id")}`
      yield* becomes("the collection is there", "/api/v1/models/collection/shared", 200)
      yield* ask("PATCH", path, { json: { slug: "renamed" } })
      yield* becomes("its new name", "/api/v1/models/collection/renamed", 200)
      assert.strictEqual((yield* read(other, "/api/v1/models/collection/shared")).status, 404)
      yield* ask("DELETE", path)
      yield* becomes("it is gone", "/api/v1/models/collection/renamed", 404)

      assert.strictEqual(yield* promptOf(other, "acme/large"), "0.00000051")
      yield* ask("PUT", "/api/v1/admin/markups/acme", { json: { percent: 10 } })
      yield* eventually(
        "the new price",
        Effect.map(promptOf(other, "acme/large"), (prompt) => prompt === "0.00000055")
      )
    }).pipe(Effect.scoped)
  )

  it.effect("killed and started again without its upstream, has the models of before", () =>
    Effect.gen(function* () {
      const other = yield* otherProcess
      const upstream = yield* TestUpstream
      yield* Effect.promise(() => other.stop("SIGKILL"))
      yield* Effect.promise(() => upstream.close())
      yield* Effect.promise(() => other.start())
      assert.strictEqual((yield* read(other, "/api/v1/models/acme/free:free")).status, 200)
      const { body, status } = yield* read(other, "/readyz")
      assert.strictEqual(status, 200)
      assert.match(
        JSON.stringify(body),
        /"catalogue":\{"status":"degraded","detail":"5 models of [^"]+; the upstream's list cannot be fetched: ECONNREFUSED/
      )
    }).pipe(Effect.scoped)
  )
})
