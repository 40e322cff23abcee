import { assert, layer } from "@effect/vitest"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { signalbox } from "./Signalbox.ts"

/** For a machine that is busy with other work: the command is started a dozen times. */
const live = { excludeTestServices: true } as const

const chrome =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
const bot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"

/** `20/Nov/2026`, as logs have it */
const yesterday = new Date(Date.now() - 86_400_000).toUTCString().split(" ").slice(1, 4).join("/")

const minutes = (index: number): string =>
  `${String(Math.floor(index / 60) % 24).padStart(2, "0")}:${String(index % 60).padStart(2, "0")}`

const request = (index: number, path: string, agent: string): string =>
  `198.18.0.${index % 250} - - [${yesterday}:${minutes(index)}:00 +0000] "GET ${path} HTTP/1.1" 200 1 "-" "${agent}"`

/** Of six lines one is an asset's and one a bot's. */
const lineOf = (index: number): string => {
  if (index % 6 === 2) return request(index, `/style-${index}.css`, chrome)
  return request(index, `/p/${index}`, index % 6 === 4 ? bot : chrome)
}

const lines = (from: number, to: number): ReadonlyArray<string> =>
  Array.from({ length: to - from }, (_, index) => lineOf(from + index))

const pagesIn = (from: number, to: number): number =>
  lines(from, to).filter((line) => !line.includes(".css")).length

const countedIn = (from: number, to: number): number =>
  lines(from, to).filter((line) => !line.includes(".css") && !line.includes("GPTBot")).length

interface Outcome {
  readonly pages: number
  readonly resumedAt: number
  readonly stored: number
  readonly dropped: Record<string, number>
}

/** A site of its own, and a file that is imported into it as often as it is written. */
const growingLog = Effect.gen(function* () {
  const { adminKey, ask, url } = yield* TestServer
  const made = yield* ask("POST", "/api/v1/sites", { json: { name: "Log", domain: "example.org" } })
  const { id } = (made.json as { site: { id: string } }).site
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-import-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
  )
  const file = join(directory, "access.log")
  const run = (content: string, ...flags: ReadonlyArray<string>) =>
    Effect.promise(async () => {
      await writeFile(file, content)
      const env = { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }
      return await signalbox(["import", "access-log", file, "--site", id, ...flags], env)
    })
  const imported = (content: string) =>
    Effect.map(run(content, "--json"), ({ code, err, out }) => {
      assert.strictEqual(code, 0, err)
      return JSON.parse(out) as Outcome
    })
  const shows = (pageviews: number) =>
    eventually(
      `${pageviews} page views are shown`,
      Effect.map(ask("GET", `/api/v1/sites/${id}/stats?period=7d`), ({ json }) => {
        const { summary } = json as { summary: { pageviews: number } }
        assert.isAtMost(summary.pageviews, pageviews)
        return summary.pageviews === pageviews
      })
    )
  return { id, run, imported, shows }
})

const whole = (parts: ReadonlyArray<string>): string => parts.map((line) => `${line}\n`).join("")

layer(TestServer.own({}), live)("a log that grows between its imports", (it) => {
  it.effect("counts each line once, however often it has grown, and an older copy of it not at all", () =>
    Effect.gen(function* () {
      const { imported, shows } = yield* growingLog
      let before = 0
      for (const length of [300, 301, 700, 1500]) {
        const outcome = yield* imported(whole(lines(0, length)))
        assert.strictEqual(outcome.pages, pagesIn(0, length))
        assert.strictEqual(outcome.resumedAt, pagesIn(0, before))
        assert.strictEqual(outcome.stored, countedIn(before, length))
        before = length
      }
      yield* shows(countedIn(0, 1500))
      for (const length of [1500, 700, 300]) {
        const outcome = yield* imported(whole(lines(0, length)))
        assert.deepInclude(outcome, { stored: 0, resumedAt: outcome.pages })
      }
      yield* shows(countedIn(0, 1500))
    })
  )

  it.effect("is known again when its last line was imported without its newline, or left half written", () =>
    Effect.gen(function* () {
      const { imported, shows } = yield* growingLog
      // Line 300 is a page view.
      const unfinished = whole(lines(0, 300)) + lineOf(300)
      assert.strictEqual((yield* imported(unfinished)).stored, countedIn(0, 301))
      assert.strictEqual((yield* imported(unfinished)).stored, 0)
      assert.strictEqual((yield* imported(whole(lines(0, 301)))).stored, 0)
      assert.strictEqual((yield* imported(whole(lines(0, 400)))).stored, countedIn(301, 400))
      const half = whole(lines(0, 500)) + lineOf(500).slice(0, 60)
      assert.strictEqual((yield* imported(half)).stored, countedIn(400, 500))
      assert.strictEqual((yield* imported(whole(lines(0, 501)))).stored, countedIn(500, 501))
      yield* shows(countedIn(0, 501))
    })
  )

  it.effect("is refused where it goes on otherwise than what was imported of it", () =>
    Effect.gen(function* () {
      const { imported, run, shows } = yield* growingLog
      yield* imported(whole(lines(0, 300)))
      yield* imported(whole(lines(0, 400)))
      const other = yield* run(whole([...lines(0, 300), ...lines(900, 1000)]))
      assert.strictEqual(other.code, 1)
      assert.include(other.err, "begins like a file that was imported before and goes on otherwise")
      assert.strictEqual((yield* imported(whole(lines(900, 1000)))).stored, countedIn(900, 1000))
      yield* shows(countedIn(0, 400) + countedIn(900, 1000))
    })
  )

  it.effect("says what was dropped and why: in the command, among the imports and among the drops", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { id, imported, run } = yield* growingLog
      yield* imported(whole(lines(0, 60)))
      const { out } = yield* run(whole(lines(0, 120)))
      assert.include(out, `${pagesIn(0, 60)} page views had been imported before`)
      assert.include(out, `${countedIn(60, 120)} stored; dropped: 10 bot (10 GPTBot)`)
      const listed = (yield* ask("GET", `/api/v1/sites/${id}/imports`)).json as {
        imports: ReadonlyArray<Record<string, unknown>>
      }
      const [latest, first, ...others] = listed.imports
      assert.lengthOf(others, 0)
      assert.deepInclude(latest, {
        continues: first?.["name"],
        lines: pagesIn(0, 120),
        stored: countedIn(0, 120),
        failed: 0
      })
      assert.deepStrictEqual(latest?.["dropped"], { bot: 20 })
      assert.strictEqual(first?.["continues"], null)
      const { drops } = (yield* ask("GET", `/api/v1/sites/${id}/drops`)).json as {
        drops: ReadonlyArray<{ reason: string; count: number; bot: { name: string } | null }>
      }
      assert.deepStrictEqual(
        drops.map(({ bot: named, count, reason }) => [reason, named?.name, count]),
        [["bot", "GPTBot", 20]]
      )
    })
  )
})
