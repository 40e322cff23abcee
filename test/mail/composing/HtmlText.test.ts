import { assert, describe, it } from "@effect/vitest"
import { strippedText, textOfHtml } from "#src/mail/composing/HtmlText.ts"

describe("the text of HTML", () => {
  it("has headings as they are, links once, descriptions of images and no style", () => {
    const html =
      "<html><head><title>t</title><style>p{}</style></head><body><h1>Ähm &amp; so</h1>" +
      '<p>a <a href="https://a.example/">https://a.example/</a></p><img src="https://t.example/pixel"><ul><li>x</ul>'
    assert.strictEqual(textOfHtml(html), "Ähm & so\n\na https://a.example/\n\n * x")
  })

  it("is stripped where it is nested too deep or would grow without end", () => {
    assert.strictEqual(textOfHtml(`${"<b>".repeat(50_000)}deep`), "deep")
    assert.strictEqual(textOfHtml(`a${"<hr>".repeat(20_000)}b`), "a\n\nb")
  })
})

describe("stripped HTML", () => {
  it("is the text between the tags", () => {
    for (const [html, text] of [
      ["<p>a</p><p>b  c</p>", "a\n\nb c"],
      ["a<br>b<br/>c", "a\nb\nc"],
      ["<b>bo</b>ld", "bold"],
      ["<style>p > a {}</style>x<script>1 < 2</script>y<!-- <p>z</p> -->", "xy"],
      ["x<style>no end <p>a</p>", "x"],
      ["x<!-- no end <p>a</p>", "x"],
      ["1 < 2 &lt; 3 &#x41;&#66; &nbsp;&unknown; &#x110000;", "1 < 2 < 3 AB &unknown; &#x110000;"],
      ["&amp;lt;", "&lt;"],
      ["", ""]
    ] as const)
      assert.strictEqual(strippedText(html), text, html)
  })

  it("takes time in proportion to its length", () => {
    const repeated = (part: string, size: number) => part.repeat(Math.ceil(size / part.length))
    const millis = (html: string): number => {
      const from = performance.now()
      strippedText(html)
      return performance.now() - from
    }
    for (const part of [
      "<",
      "<a",
      "<!--",
      "<style>",
      "<style></style",
      "<a b=",
      " ",
      "&",
      "&#",
      " \n",
      "<br>",
      "</style "
    ]) {
      const [short, long] = [20_000, 2_000_000].map((size) => Math.max(5, millis(repeated(part, size))))
      // A hundred times the length; what grows with its square takes ten thousand times as long.
      assert.isBelow((long ?? 0) / (short ?? 1), 1_500, part)
    }
  })
})
