import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { at } from "./Asking.ts"
import { diagnosticRooms } from "./DiagnosticRoom.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"
import { clients, undecided } from "./OfficialClients.ts"

const live = { excludeTestServices: true } as const

layer(TestServer.own({ rooms: new Set(["accounts", "diagnostic"]) }, { rooms: diagnosticRooms }), live)(
  "the official TypeScript client",
  (it) => {
    for (const [era, connect] of Object.entries(clients))
      for (const path of ["/mcp", "/api/mcp"])
        it.effect(`of ${era} connects to ${path}, lists the tools and calls them`, () =>
          Effect.gen(function* () {
            const { adminKey, url } = yield* TestServer
            const spoken = yield* Effect.acquireRelease(
              Effect.promise(() => connect(new URL(`${url}${path}`), adminKey)),
              ({ close }) => Effect.promise(close)
            )
            assert.deepStrictEqual([spoken.version(), spoken.instructions()], [era, "Tools that tests call."])
            const hasSession = path === "/api/mcp" && era !== "2026-07-28"
            assert.strictEqual(spoken.session()?.startsWith("session-of-") ?? false, hasSession)
            const tools = at(yield* Effect.promise(spoken.list), "tools") as ReadonlyArray<unknown>
            assert.deepStrictEqual(
              tools.map((tool) => at(tool, "name")),
              [...diagnosticServer.tools.keys()]
            )
            const call = (name: string, args: Record<string, unknown> = {}) =>
              Effect.promise(() => spoken.call(name, args))
            const measured = yield* call("measure", { text: "four" })
            assert.deepStrictEqual(at(measured, "structuredContent"), { characters: 4 })
            assert.deepStrictEqual(at(measured, "content"), [{ type: "text", text: '{"characters":4}' }])
            for (const [name, args, text] of [
              ["measure", { text: 5 }, "text: expected text"],
              ["test_error_handling", {}, "This tool intentionally returns an error for testing"]
            ] as const) {
              const failed = yield* call(name, args)
              assert.deepStrictEqual([at(failed, "isError"), at(failed, "content", 0, "text")], [true, text])
            }
            const mixed = yield* call("test_multiple_content_types")
            assert.deepStrictEqual(
              [0, 1, 2].map((index) => at(mixed, "content", index, "type")),
              ["text", "image", "resource"]
            )
            const unknown = yield* Effect.promise(() =>
              spoken.call("nothing", {}).then(
                () => "it was called",
                (error: unknown) => String(error)
              )
            )
            assert.include(unknown, "Unknown tool: nothing")
          }).pipe(Effect.scoped)
        )

    for (const [manner, connect] of Object.entries(undecided))
      it.effect(`of the newest version ${manner} settles on a version`, () =>
        Effect.gen(function* () {
          const { adminKey, url } = yield* TestServer
          const spoken = yield* Effect.promise(() => connect(new URL(`${url}/mcp`), adminKey))
          assert.strictEqual(spoken.version(), manner === "by itself" ? "2025-11-25" : "2026-07-28")
          const region = yield* Effect.promise(() => spoken.call("test_custom_header", { region: "Zürich " }))
          assert.strictEqual(at(region, "content", 0, "text"), "Zürich ")
          yield* Effect.promise(spoken.close)
        })
      )
  }
)
