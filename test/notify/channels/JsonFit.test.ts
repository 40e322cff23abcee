import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { cutForJson } from "#streams/notify/channels/JsonFit.ts"
import { hostileText } from "./Notices.ts"

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

const graphemes = (text: string): ReadonlyArray<string> =>
  Array.from(new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text), ({ segment }) => segment)

describe("a cut text", () => {
  it("ends on a grapheme, with an ellipsis", () => {
    for (const [text, maxBytes, cut] of [
      ["hello world", 11, "hello world"],
      ["hello world", 10, "hello w…"],
      ["hello world", 9, "hello…"],
      ["hello world", 8, "hello…"],
      ["hello", 3, "…"],
      ["hello", 2, ""],
      ["", 0, ""],
      ["a\u{1F469}\u200D\u{1F469}\u200D\u{1F467}b", 19, "a…"],
      ["a\u{1F469}\u200D\u{1F469}\u200D\u{1F467}bcdefg", 22, "a\u{1F469}\u200D\u{1F469}\u200D\u{1F467}…"],
      ["xe\u0301yz", 5, "x…"],
      ["\u{1F1E9}\u{1F1EA}\u{1F1EB}\u{1F1F7}", 15, "\u{1F1E9}\u{1F1EA}…"],
      ["\n\n\n\n", 7, "…"],
      ['""""', 7, '""…'],
      ["\uD800\uD800", 11, "\uD800…"]
    ] as const)
      assert.strictEqual(cutForJson(text, maxBytes), cut, `${JSON.stringify(text)} in ${maxBytes}`)
  })

  it("ends before what is whole", () => {
    for (const [text, maxBytes, cut] of [
      ["a <b c> d", 9, "a <b c> d"],
      ["a <b c> def", 10, "a <b c>…"],
      ["a <b c> def", 9, "a…"],
      ["<b c>", 4, "…"],
      ["<a> <b>", 6, "<a>…"]
    ] as const)
      assert.strictEqual(cutForJson(text, maxBytes, /<.*?>/gu), cut, `${text} in ${maxBytes}`)
  })

  it("is as long as it can be, whatever the text", () => {
    fc.assert(
      fc.property(hostileText(400), fc.nat({ max: 500 }), (text, maxBytes) => {
        const cut = cutForJson(text, maxBytes)
        assert.isAtMost(jsonBytes(cut), maxBytes)
        if (jsonBytes(text) <= maxBytes) return assert.strictEqual(cut, text)
        if (maxBytes < 3) return assert.strictEqual(cut, "")
        const parts = graphemes(text)
        let kept = 0
        while (jsonBytes(parts.slice(0, kept + 1).join("")) <= maxBytes - 3) kept++
        assert.strictEqual(cut, `${parts.slice(0, kept).join("").trimEnd()}…`)
      }),
      { numRuns: 100 }
    )
  })
})
