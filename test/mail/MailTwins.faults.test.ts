import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { LoadedServers, MailSide } from "./MailSides.ts"
import { plain } from "./Stage.ts"

const twins = 500

const stores = FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer))

layer(stores, { excludeTestServices: true })("calls with one Idempotency-Key", (it) => {
  it.effect(`${twins} at once to two servers, and more behind a restart of both, are one mail`, () =>
    Effect.gen(function* () {
      const { newAdminKey: key = "" } = yield* FirstBoot
      const { dataDir, databaseUrl } = yield* TestStores
      const loaded = new LoadedServers()
      const sides = ["one", "other"].map((name) => {
        const own = { databaseUrl, dataDir: join(dataDir, name), leaseMillis: 60_000 }
        return new MailSide({ ...own, relayPort: null, onUnknown: "resend" }, loaded)
      })
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          loaded.end()
          await Promise.all(sides.map((side) => side.kill()))
        })
      )
      const start = Effect.promise(() => Promise.all(sides.map((side) => side.start())))
      const api = (which: number) => ({ url: sides[which % 2]?.url ?? "", adminKey: () => key })
      const headers = { "Idempotency-Key": "order-42" }
      const call = (which: number) => ask(api(which), "POST", "/send", { json: plain, headers })
      const calls = (many: number) =>
        Effect.promise(() => Promise.all(Array.from({ length: many }, (_, which) => call(which))))
      const idsOf = (answers: Effect.Success<ReturnType<typeof calls>>) =>
        answers.map(({ body, status }) => {
          assert.strictEqual(status, 200, JSON.stringify(body))
          return (body as { readonly message_id: string }).message_id
        })
      const replays = (answers: Effect.Success<ReturnType<typeof calls>>) =>
        answers.filter((answer) => answer.headers.get("idempotent-replay") === "true").length

      yield* start
      const first = yield* calls(twins)
      const [id = "", ...others] = new Set(idsOf(first))
      assert.deepStrictEqual(others, [])
      assert.strictEqual(replays(first), twins - 1)

      yield* Effect.promise(() => Promise.all(sides.map((side) => side.kill())))
      yield* start
      const again = yield* calls(20)
      assert.deepStrictEqual([...new Set(idsOf(again))], [id])
      assert.strictEqual(replays(again), 20)

      const read = (path: string) =>
        Effect.promise(async () => (await ask(api(0), "GET", `/api/v1/emails${path}`)).body)
      const { recipients } = (yield* read(`/${id}?wait=30`)) as {
        readonly recipients: ReadonlyArray<{ readonly status: string }>
      }
      assert.deepStrictEqual(
        recipients.map(({ status }) => status),
        ["sent"]
      )
      for (const path of ["?limit=1", "/inbox?limit=1"]) {
        const { meta } = (yield* read(path)) as { readonly meta: { readonly total: number } }
        assert.strictEqual(meta.total, 1, path)
      }
    }).pipe(Effect.scoped)
  )
})
