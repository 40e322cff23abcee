import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ShownFormat } from "#streams/notify/bodies/Body.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import { formatOf } from "#streams/notify/bodies/DetectFormat.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderMarkdown } from "#streams/notify/bodies/RenderMarkdown.ts"
import { renderLines, renderSource } from "#streams/notify/bodies/RenderText.ts"
import { fragments, hostileBodies } from "./HostileBodies.ts"
import { checkSafe, type Parsed } from "./SafeHtml.ts"

const htmlOf = (text: string, format: ShownFormat): string =>
  (format === "markdown" ? renderMarkdown(text) : renderBody(text, format)).html

const formats = ["text", "markdown", "json", "log"] as const

const schemesOf = { text: /^https?:/i, json: /^https?:/i, log: /^https?:/i, markdown: /^(?:https?|mailto):/i }

/** More of them in LargeBodies.faults.test.ts. */
const numRuns = 40

const hrefsOf = ({ elements }: Parsed): ReadonlyArray<string | undefined> =>
  elements.filter(({ name }) => name === "a").map(({ attributes }) => attributes["href"])

describe("the HTML of a body", () => {
  for (const format of formats) {
    it(`has no element and no attribute but the allowed ones, and no link but to the web and mail, as ${format}`, () => {
      const hrefs = hostileBodies.flatMap((body) => hrefsOf(checkSafe(htmlOf(body, format))))
      assert.isAbove(hrefs.length, 2)
      for (const href of hrefs) assert.match(href ?? "", schemesOf[format])
    })

    it(`has none for any text, as ${format}`, () => {
      fc.assert(
        fc.property(fragments, (body) => void checkSafe(htmlOf(body, format))),
        { numRuns }
      )
    })
  }

  it("finds a format for every body, and the same for the same", () => {
    for (const text of hostileBodies) {
      const format = formatOf({ text, format: "auto" })
      assert.include(formats, format)
      for (const asked of formats) assert.strictEqual(formatOf({ text, format: asked }), asked)
    }
  })

  it("has the whole text, of text and of its source", () => {
    const check = (body: string): void => {
      assert.strictEqual(checkSafe(htmlOf(body, "text")).text, cleanText(body))
      assert.strictEqual(checkSafe(renderSource(body)).text, cleanText(body))
      assert.strictEqual(checkSafe(renderLines(body)).text, cleanText(body))
    }
    hostileBodies.forEach(check)
    fc.assert(fc.property(fragments, check), { numRuns })
  })

  it("has the whole text of a log but for a terminal's sequences", () => {
    // Without the characters that begin a sequence, and those of which some are left out.
    const plain = fragments.map((text) => text.replace(/[^\n !-~]/g, ""))
    fc.assert(
      fc.property(plain, (body) => assert.strictEqual(checkSafe(htmlOf(body, "log")).text, body)),
      { numRuns }
    )
  })

  it("has all of a JSON value, in its own words", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 6 }), (value) => {
        for (const body of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
          const { text } = checkSafe(htmlOf(body, "json"))
          assert.strictEqual(JSON.stringify(JSON.parse(text)), JSON.stringify(JSON.parse(body)))
        }
      }),
      { numRuns }
    )
    const exact = '{"a":1e400,"a":12345678901234567890,"__proto__":-0.0,"b":"\\u0041\\/"}'
    const { text } = checkSafe(htmlOf(exact, "json"))
    assert.strictEqual(text.replaceAll(" ", ""), exact)
  })
})
