import { hostname } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { payloadsOf } from "#test/notify/sandbox/SandboxClient.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { commandsOf, runCommands } from "./Readme.ts"

/** A digest is due up to 80 seconds later. */
layer(TestServer.own(), { excludeTestServices: true })("README's commands of notifications", (it) => {
  it.effect(
    "make a project, have a browser, a webhook, a Slack and a person in Telegram join, send in every way, and digests",
    () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const commands = commandsOf("Sending notifications").join("\n")
        const stdout = yield* Effect.promise(() => runCommands(commands, { url, key: adminKey }))
        for (const text of [
          "Build 42 failed",
          "Build 43 failed",
          "The change is ready for a look",
          "Five commits"
        ])
          assert.include(stdout, text)
        const sandbox = yield* sandboxOfServer
        const came = yield* Effect.promise(() => sandbox.accepted(26))
        const texts = payloadsOf(came.filter(({ kind }) => kind === "push")).map(({ text }) => text)
        assert.deepStrictEqual(texts, [
          "Build 42 failed",
          "📎 Build 43 failed",
          "The change is ready for a look",
          "📎 Five commits",
          "Build 44 failed",
          "Build 45 failed"
        ])
        // Each was asked to confirm.
        for (const [chat, count] of [
          ["webhook", 7],
          ["slack", 6]
        ] as const)
          assert.lengthOf(
            came.filter(({ kind }) => kind === chat),
            count
          )
        const inTelegram = came.filter(({ kind }) => kind === "telegram")
        const words = inTelegram.map(({ payload }) =>
          (payload as { readonly text: string }).text.replace(/\n.*/s, "")
        )
        // Answers of the bot and notifications come each in their order, in whichever order together.
        const [welcome, settings] = [
          "Notifications of Nightly builds come here from now on.",
          "Your settings. The address is yours alone; the one that was sent before works no more."
        ]
        const isAnswer = (word: string): boolean => word === welcome || word === settings
        assert.deepStrictEqual(words.filter(isAnswer), [welcome, settings])
        assert.deepStrictEqual(
          words.filter((word) => !isAnswer(word)),
          ["ci", "ci", "agent", hostname(), "2 messages"]
        )
        for (const kind of ["slack", "telegram"]) {
          const digest = JSON.stringify(payloadsOf(came.filter((entry) => entry.kind === kind)).at(-1))
          for (const text of ["2 messages", "Build 44 failed", "Build 45 failed"])
            assert.include(digest, text)
        }
      })
  )
})
