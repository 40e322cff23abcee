import { assert, layer } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { signalbox } from "./Signalbox.ts"

/** For a machine that is busy with other work. */
const live = { excludeTestServices: true } as const
const main = normalize(join(import.meta.dirname, "../../src/cli/main.ts"))

/** More than ten requests' worth of page views, so that a kill comes in between. */
const pageViews = 24_000

const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

/** `20/Nov/2026`, as logs have it */
const yesterday = new Date(Date.now() - 86_400_000).toUTCString().split(" ").slice(1, 4).join("/")

const lineOf = (index: number): string =>
  `198.18.${(index >> 8) & 255}.${index & 255} - - [${yesterday}:${String(Math.floor(index / 1200)).padStart(2, "0")}:` +
  `${String(Math.floor(index / 20) % 60).padStart(2, "0")}:00 +0000] "GET /p/${index} HTTP/1.1" 200 1 "-" "${agent}"`

const logFile = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "signalbox-import-"))
    const file = join(directory, "access.log")
    await writeFile(file, Array.from({ length: pageViews }, (_, index) => lineOf(index)).join("\n"))
    return { directory, file }
  }),
  ({ directory }) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

/** Page views that the server has taken of the import that is under way. */
const reached = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(sql<{ next: number }>`SELECT next::float8 AS next FROM imports`, ([row]) => row?.next ?? 0)
)

layer(TestServer.own(), live)("an import that is killed", (it) => {
  it.effect("goes on where it was when it is run again, and stores every page view once", () =>
    Effect.gen(function* () {
      const { adminKey, ask, url } = yield* TestServer
      const { file } = yield* logFile
      const made = yield* ask("POST", "/api/v1/sites", { json: { name: "Log", domain: "example.org" } })
      const { id } = (made.json as { site: { id: string } }).site
      const env = { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }
      const words = ["import", "access-log", file, "--site", id, "--json"]

      const child = spawn(process.execPath, [main, ...words], { env, stdio: "ignore" })
      while ((yield* reached) === 0) yield* Effect.sleep(10)
      const ended = once(child, "exit")
      child.kill("SIGKILL")
      yield* Effect.promise(() => ended)
      const [, signal] = yield* Effect.promise(() => ended)
      assert.strictEqual(signal, "SIGKILL", "the import ended before it was killed")

      const again = yield* Effect.promise(() => signalbox(words, env))
      assert.strictEqual(again.code, 0, again.err)
      const outcome = JSON.parse(again.out) as Record<"pages" | "resumedAt" | "stored" | "sent", number>
      assert.strictEqual(outcome.pages, pageViews)
      assert.isAbove(outcome.resumedAt, 0)
      assert.isBelow(outcome.resumedAt, pageViews)
      assert.strictEqual(outcome.stored, pageViews - outcome.resumedAt)

      yield* eventually(
        "every page view is shown, once",
        Effect.map(ask("GET", `/api/v1/sites/${id}/stats?period=7d`), ({ json, status }) => {
          const shown = (json as { summary?: { pageviews: number } }).summary?.pageviews ?? 0
          assert.isAtMost(shown, pageViews)
          return status === 200 && shown === pageViews
        })
      )
    })
  )
})
