import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { payloadsOf } from "#test/notify/sandbox/SandboxClient.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { commandsOf, runCommands } from "./Readme.ts"

layer(TestServer.own(), { excludeTestServices: true, timeout: 120_000 })(
  "README's commands of notifications",
  (it) => {
    it.effect("make a project, have a browser and a webhook join, and send to them in every way", () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const [commands = ""] = commandsOf("Sending notifications")
        const stdout = yield* Effect.promise(() => runCommands(commands, { url, key: adminKey }))
        for (const text of [
          "Build 42 failed",
          "Build 43 failed",
          "The change is ready for a look",
          "Five commits"
        ])
          assert.include(stdout, text)
        const sandbox = yield* sandboxOfServer
        const came = yield* Effect.promise(() => sandbox.accepted(9))
        const texts = payloadsOf(came.filter(({ kind }) => kind === "push")).map(({ text }) => text)
        assert.deepStrictEqual(texts, [
          "Build 42 failed",
          "📎 Build 43 failed",
          "The change is ready for a look",
          "📎 Five commits"
        ])
        assert.lengthOf(
          came.filter(({ kind }) => kind === "webhook"),
          5
        )
      })
    )
  }
)
