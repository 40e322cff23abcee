import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { promisify } from "node:util"
import { TestServer } from "#test/harness/TestServer.ts"

const root = normalize(join(import.meta.dirname, "../.."))

/** The commands of README.md's section on shared files, as they stand there. */
const section = /^## Sharing files$(.*?)^## /ms.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""
const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands ?? "")

layer(TestServer.own(), { excludeTestServices: true, timeout: 120_000 })(
  "README's commands of shared files",
  (it) => {
    const run = (commands: string) =>
      Effect.flatMap(TestServer, ({ adminKey, url }) =>
        Effect.promise(() =>
          promisify(execFile)(
            "bash",
            ["-e", "-o", "pipefail", "-c", commands.replaceAll("http://127.0.0.1:8080", url)],
            {
              cwd: root,
              env: {
                PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}`,
                KEY: adminKey,
                SIGNALBOX_URL: url,
                SIGNALBOX_KEY: adminKey
              },
              maxBuffer: 16 * 1024 * 1024
            }
          )
        )
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
        const { stdout } = yield* run(blocks[1] ?? "")
        for (const text of [
          "sent to work/2027",
          "2027/docs/contract/files.md",
          "# Changelog",
          "CHANGELOG.md  1     3"
        ])
          assert.include(stdout, text)
      })
    )
  }
)
