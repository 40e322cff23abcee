import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import { AppConfig } from "#src/Config.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { renderedBody } from "#src/notify/pages/BodyRenderer.ts"
import type { Body } from "#streams/notify/bodies/Body.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderMarkdown } from "#streams/notify/bodies/RenderMarkdown.ts"
import { fragments, largeBodies, repeatedBodies } from "./HostileBodies.ts"
import { checkSafe } from "./SafeHtml.ts"

const megabyte = 1024 * 1024

/** CPU time of this process, which others on the machine hardly change. */
const cpuMillisOf = (run: () => unknown): number => {
  const before = process.cpuUsage()
  run()
  const { system, user } = process.cpuUsage(before)
  return (system + user) / 1_000
}

describe("a body of 1 MB", () => {
  for (const format of ["text", "json", "log"] as const) {
    it(`becomes safe HTML of a bounded size, as ${format}`, () => {
      for (const [name, body] of largeBodies(megabyte)) {
        const { html } = renderBody(body, format)
        checkSafe(html)
        // Escapes are 6 characters for 1, and brackets on lines of their own some 8.
        assert.isAtMost(html.length, 10 * megabyte, name)
        assert.isAtMost(html.split(/<[a-z]/).length, 60_000, name)
      }
    })

    it(`takes time that grows with its length alone, as ${format}`, () => {
      for (const [index, [name, body]] of largeBodies(megabyte).entries()) {
        const [, small = ""] = largeBodies(megabyte / 8)[index] ?? []
        renderBody(small, format)
        const [part, whole] = [small, body].map((text) => cpuMillisOf(() => renderBody(text, format)))
        // Quadratic would be 64 times; little ones are noise.
        assert.isAtMost(
          whole ?? 0,
          30 * Math.max(part ?? 0, 20),
          `${name}: ${part} ms for an eighth, ${whole} ms`
        )
      }
    })
  }

  it("has marks for 50,000 words at most, and says so", () => {
    const { html, remark } = renderBody("http://a.b ".repeat(50_001), "text")
    assert.strictEqual(html.split("<a ").length - 1, 50_000)
    assert.include(remark, "50000")
    assert.strictEqual(renderBody("http://a.b ".repeat(49_000), "text").remark, undefined)
  })
})

it("is safe for any text, in every format", () => {
  const check = (text: string): void => {
    for (const format of ["text", "json", "log"] as const) checkSafe(renderBody(text, format).html)
    checkSafe(renderMarkdown(text).html)
  }
  fc.assert(fc.property(fragments, check), { numRuns: 3_000 })
})

describe("a body that is rendered beside the event loop", () => {
  const within = <A>(effect: Effect.Effect<A, never, Workers>) =>
    effect.pipe(
      Effect.provide(
        Workers.layer.pipe(
          Layer.provide(AppConfig.layerOf({ limits: { workerThreads: 1, workerProcesses: 1 } }))
        )
      )
    )
  const rendered = (format: Body["format"], text: string) => renderedBody("one", { format, text })

  it.live("is in its format: Markdown of any size to 256 KB, all others to 1 MB", () =>
    within(
      Effect.gen(function* () {
        const markdown = "# Head\n\n- *a*\n- b\n\n"
        const cases = [
          ["auto", markdown, "markdown"],
          ["auto", markdown.repeat(1_000), "markdown"],
          ["markdown", "plain words ".repeat(20_000), "markdown"],
          ["text", markdown, "text"],
          ["auto", "plain words ".repeat(80_000), "text"],
          ["auto", `[${"1,".repeat(400_000)}1]`, "json"],
          ["auto", "2026-11-23T04:00:00Z started\n".repeat(30_000), "log"],
          ["auto", '{"a":1}', "json"]
        ] as const
        for (const [format, text, shown] of cases) {
          const body = yield* rendered(format, text)
          assert.strictEqual(body.format, shown, `${format} ${text.slice(0, 20)}`)
          checkSafe(body.html)
          assert.isTrue(body.remark === undefined || body.remark.startsWith("Too many marks"), body.remark)
        }
      })
    )
  )

  it.live("is text where its Markdown is more than 256 KB, in bytes", () =>
    within(
      Effect.gen(function* () {
        const fits = `- ü\n- b\n\n${"x ".repeat(131_067)}`
        assert.strictEqual(Buffer.byteLength(fits), 256 * 1024)
        assert.strictEqual((yield* rendered("markdown", fits)).format, "markdown")
        for (const format of ["markdown", "auto"] as const) {
          const body = yield* rendered(format, `${fits}\n`)
          assert.strictEqual(body.format, "text")
          assert.include(body.remark, "256 KB")
        }
        // Fewer characters than that, but more bytes.
        assert.strictEqual((yield* rendered("markdown", `# ${"ü".repeat(200_000)}`)).format, "text")
      })
    )
  )

  it.live("is text where its Markdown takes too long or grows too large, and the next one is well", () =>
    within(
      Effect.gen(function* () {
        const slow = "![".repeat(128 * 1024)
        const started = performance.now()
        const body = yield* rendered("markdown", slow)
        assert.isAtMost(performance.now() - started, 30_000)
        // A quick machine may be done with it.
        if (body.format === "text") assert.include(body.remark, "in time")
        checkSafe(body.html)
        const large = yield* rendered(
          "markdown",
          `[a]: http://x/${"y".repeat(2_000)}\n\n${"[a]\n\n".repeat(40_000)}`
        )
        checkSafe(large.html)
        assert.isAtMost(large.html.length, 10 * megabyte)
        assert.strictEqual((yield* rendered("markdown", "# Head")).format, "markdown")
      })
    )
  )

  it.live("is safe as Markdown, at 256 KB of the worst cases", () =>
    within(
      Effect.forEach([...largeBodies(256 * 1024), ...repeatedBodies(256 * 1024)], ([name, body]) =>
        Effect.map(rendered("markdown", body), ({ html, remark }) => {
          checkSafe(html)
          assert.isTrue(remark === undefined || remark.includes("in time"), `${name}: ${remark}`)
        })
      )
    )
  )
})
