import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { catalogueServer } from "#test/llm/catalogue/CatalogueServer.ts"
import { signalbox } from "./Signalbox.ts"

const run = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(args, { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }))
  )

layer(catalogueServer(), { excludeTestServices: true })("signalbox", (it) => {
  it.effect("makes, lists, changes and deletes collections", () =>
    Effect.gen(function* () {
      const made = yield* run(
        "collections",
        "create",
        "My set",
        "--model",
        "acme/large",
        "--model",
        "borealis/talk",
        "--no-auto-route",
        "--json"
      )
      assert.strictEqual(made.code, 0, made.err)
      const { id, ...fields } = JSON.parse(made.out)
      assert.deepInclude(fields, { model: "collection/my-set", auto_route: false })
      assert.deepStrictEqual(
        fields.models.map((member: { id: string }) => member.id),
        ["acme/large", "borealis/talk"]
      )
      const listed = yield* run("collections", "list")
      assert.match(listed.out, /^ID +MODEL +NAME +AUTO ROUTE +MODELS$/m)
      assert.match(listed.out, /collection\/my-set +My set +false +acme\/large borealis\/talk$/m)
      const changed = yield* run(
        "collections",
        "update",
        id,
        "--slug",
        "mine",
        "--auto-route",
        "--model",
        "acme/free:free"
      )
      assert.match(changed.out, /collection\/mine +My set +true +acme\/free:free$/m)
      const refused = yield* run("collections", "create", "Other", "--model", "acme/none")
      assert.deepStrictEqual([refused.code, refused.out], [1, ""])
      assert.include(refused.err, "models[0]: there is no such model")
      assert.include(
        (yield* run("collections", "create", "Other")).err,
        "models: expected at least one model id"
      )
      assert.strictEqual((yield* run("collections", "delete", id)).out.trim(), `Deleted ${id}`)
      const gone = yield* run("collections", "delete", id)
      assert.deepStrictEqual([gone.code, gone.err.includes("Collection not found")], [1, true])
    })
  )

  it.effect("lists and sets markups", () =>
    Effect.gen(function* () {
      const set = yield* run("markups", "set", "acme", "3.5")
      assert.strictEqual(set.out.trim(), "acme is marked up by 3.5 % from now on, everywhere within a second")
      const listed = yield* run("markups", "list")
      assert.match(listed.out, /^PROVIDER +PERCENT +IS DEFAULT$/m)
      assert.match(listed.out, /^acme +3\.5 +false$/m)
      assert.match(listed.out, /^borealis +2 +true$/m)
      const refused = yield* run("markups", "set", "acme", "--", "-1")
      assert.deepStrictEqual(
        [refused.code, refused.err.includes("percent: expected a percentage")],
        [1, true]
      )
    })
  )
})
