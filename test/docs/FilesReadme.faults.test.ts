import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { commandsOf, runCommands } from "./Readme.ts"

const blocks = commandsOf("Sharing files")

layer(TestServer.own(), { excludeTestServices: true })("README's commands of shared files", (it) => {
  const run = (commands: string) =>
    Effect.flatMap(TestServer, ({ adminKey, url }) =>
      Effect.promise(() => runCommands(commands, { url, key: adminKey }))
    )

  it.effect("upload a file, make a link for one download, and download it, in three lines", () =>
    Effect.gen(function* () {
      const [first = ""] = blocks
      assert.lengthOf(first.trim().split("\n"), 3)
      yield* run(first)
      const { ask } = yield* TestServer
      const { json } = yield* ask("GET", "/api/share-links")
      const { links } = json as { readonly links: ReadonlyArray<object> }
      assert.deepInclude(links[0], { name: "README.md", uses: 1, maxRequests: 1, singleUse: true })
    })
  )

  it.effect("upload, download and share by the command line", () =>
    Effect.gen(function* () {
      const stdout = yield* run(blocks[1] ?? "")
      for (const text of [
        "sent to work/2027",
        "2027/docs/contract/files.md",
        "# Changelog",
        "CHANGELOG.md  1     3"
      ])
        assert.include(stdout, text)
    })
  )
})
