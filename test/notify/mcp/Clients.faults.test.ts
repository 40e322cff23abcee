import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { at } from "#test/mcp/Asking.ts"
import { clients, undecided } from "#test/mcp/OfficialClients.ts"
import { contentsOf } from "../SentFiles.ts"
import { live, makeStage, type SentBody } from "../Stage.ts"

const binary = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7 + (index >> 8)) & 255)

const call = {
  app: "agent",
  message: "The build failed",
  body: { failed: ["one", "two"] },
  attachments: [
    { filename: "build.log", text: "line 1\nline 2 €" },
    { filename: "core.bin", content_base64: Buffer.from(binary).toString("base64") }
  ]
}

const speakers = { ...clients, ...undecided }

layer(TestServer.own({ rooms: new Set(["accounts", "notify"]) }), live)("an official client", (it) => {
  for (const [era, connect] of Object.entries(speakers))
    it.effect(
      `${era in clients ? `of ${era}` : era} sends a notification with files, and is told of failures`,
      () =>
        Effect.gen(function* () {
          const { url } = yield* TestServer
          const stage = yield* makeStage
          yield* stage.project({ slug: "builds" })
          const key = yield* stage.projectKey()
          const spoken = yield* Effect.acquireRelease(
            Effect.promise(() => connect(new URL(`${url}/mcp`), key)),
            ({ close }) => Effect.promise(close)
          )
          const newest = era.includes("newest") ? "2026-07-28" : "2025-11-25"
          assert.strictEqual(spoken.version(), era in clients ? era : newest)
          assert.isUndefined(spoken.session())
          assert.match(spoken.instructions() ?? "", /^Sends notifications/)
          const tools = at(yield* Effect.promise(spoken.list), "tools") as ReadonlyArray<unknown>
          assert.deepStrictEqual(
            tools.map((tool) => at(tool, "name")),
            ["send_notification", "list_projects"]
          )
          // The clients hold structured content to the published schema.
          const sent = yield* Effect.promise(() => spoken.call("send_notification", call))
          const { messages } = at(sent, "structuredContent") as SentBody
          assert.strictEqual(at(sent, "content", 0, "text"), JSON.stringify(at(sent, "structuredContent")))
          assert.deepStrictEqual([messages.length, messages[0]?.attachments], [1, 2])
          const files = yield* contentsOf(messages[0])
          assert.deepStrictEqual(
            files.map(({ filename }) => filename),
            ["build.log", "core.bin"]
          )
          assert.strictEqual(files[0]?.bytes.toString(), "line 1\nline 2 €")
          assert.isTrue(files[1]?.bytes.equals(binary))
          const projects = yield* Effect.promise(() => spoken.call("list_projects", {}))
          assert.strictEqual(at(projects, "structuredContent", "projects", 0, "slug"), "builds")
          const failed = yield* Effect.promise(() =>
            spoken.call("send_notification", { app: "agent", message: "m", project: "none" })
          )
          assert.deepStrictEqual(
            [at(failed, "isError"), at(failed, "content", 0, "text")],
            [true, "project: not found"]
          )
        }).pipe(Effect.scoped)
    )
})
