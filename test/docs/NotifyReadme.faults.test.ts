import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { promisify } from "node:util"
import { TestServer } from "#test/harness/TestServer.ts"
import { payloadsOf } from "#test/notify/sandbox/SandboxClient.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"

const root = normalize(join(import.meta.dirname, "../.."))

/** The commands of README.md's section on notifications, as they stand there. */
const commands =
  /^## Sending notifications$.*?^```sh\n(.*?)^```$/ms.exec(
    readFileSync(join(root, "README.md"), "utf8")
  )?.[1] ?? ""

layer(TestServer.own(), { excludeTestServices: true, timeout: 120_000 })(
  "README's commands of notifications",
  (it) => {
    it.effect("make a project, have a browser and a webhook join, and send to them in every way", () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const script = commands.replace("http://127.0.0.1:8080", url)
        assert.include(script, url)
        const { stdout } = yield* Effect.promise(() =>
          promisify(execFile)("bash", ["-e", "-o", "pipefail", "-c", script], {
            cwd: root,
            env: {
              PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}`,
              SIGNALBOX_URL: url,
              SIGNALBOX_KEY: adminKey
            },
            maxBuffer: 16 * 1024 * 1024
          })
        )
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
