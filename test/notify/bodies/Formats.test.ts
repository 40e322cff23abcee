import { assert, describe, it } from "@effect/vitest"
import { formatOf } from "#streams/notify/bodies/DetectFormat.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderMarkdown } from "#streams/notify/bodies/RenderMarkdown.ts"
import { checkSafe } from "./SafeHtml.ts"

const lines = (...texts: ReadonlyArray<string>): string => texts.join("\n")
const away = 'rel="noopener noreferrer nofollow"'

describe("a body of `auto`", () => {
  const auto = (text: string): string => formatOf({ text, format: "auto" })

  it("is JSON where its text is an object or an array of at most 64 levels", () => {
    for (const text of ['{"a":1}', " [1, 2]\n", "[]", `${"[".repeat(64)}${"]".repeat(64)}`])
      assert.strictEqual(auto(text), "json", text)
    for (const text of ["42", '"a"', "null", "{a:1}", "[1,]", `${"[".repeat(65)}${"]".repeat(65)}`, "{}{}"])
      assert.strictEqual(auto(text), "text", text)
  })

  it("is a log where it has a terminal's colours, or most of its lines begin with an instant", () => {
    const stamps = [
      "2026-11-23T04:00:00.123Z a",
      "2026-11-23 04:00:00,123 a",
      "[2026/11/23 04:00:00] a",
      "04:00:00.1 a",
      "Nov 23 04:00:00 host sshd[1]: a",
      "Mon Nov 23 04:00:00 2026 a",
      '127.0.0.1 - - [23/Nov/2026:04:00:00 +0000] "GET / HTTP/1.1" 200',
      "I1123 04:00:00.123456 1 a.go:1] a",
      "INFO 2026-11-23T04:00:00Z a",
      "[WARN] 04:00:00 a",
      "[   12.345678] usb 1-1: a",
      "1763870400.123 a"
    ]
    for (const stamp of stamps) assert.strictEqual(auto(lines(stamp, stamp)), "log", stamp)
    assert.strictEqual(
      auto(
        lines("2026-11-23 04:00:00 failed", "    at main (a.js:1)", "    at b", "    at c", "04:00:01 on")
      ),
      "log"
    )
    assert.strictEqual(auto("\u001b[32mdone\u001b[0m"), "log")
    for (const text of [
      "2026-11-23 04:00:00 one line",
      lines("a", "b", "04:00:00 c"),
      "\u001b]0;title\u0007"
    ])
      assert.strictEqual(auto(text), "text", text)
  })

  it("is Markdown where it has marks that other texts rarely have", () => {
    const texts = [
      lines("# Head", "", "Some **bold** text"),
      lines("- one", "- two"),
      lines("1. one", "2. two"),
      lines("```", "code", "```"),
      lines("| a | b |", "|---|---|", "| 1 | 2 |"),
      "See [the build](https://example.com/1)",
      lines("> quoted", "> more")
    ]
    for (const text of texts) assert.strictEqual(auto(text), "markdown", text)
  })

  it("is text else", () => {
    const texts = [
      "",
      "Backup done.",
      "one - two",
      "a * b * c",
      "# one comment",
      "[text](javascript:x)",
      lines("diff --git a/a b/a", "@@ -1,2 +1,2 @@", "- a", "+ b", "- c"),
      lines("-rw-r--r-- 1 root root a", "-rw-r--r-- 1 root root b"),
      "snake_case_name and __init__",
      "-----"
    ]
    for (const text of texts) assert.strictEqual(auto(text), "text", text)
  })
})

describe("a body as HTML", () => {
  const htmlOf = (text: string, format: "text" | "json" | "log"): string => {
    const { html } = renderBody(text, format)
    checkSafe(html)
    return html
  }

  it("is text as it is, with links, and without the punctuation behind them", () => {
    assert.strictEqual(
      htmlOf('a < b & "c"\r\nsee https://example.com/x_(y)?a=1&b=2. Or (http://a.b)!\u0007', "text"),
      '<pre class="text" dir="auto"><span class="part">a &lt; b &amp; &quot;c&quot;\n' +
        `see <a href="https://example.com/x_(y)?a=1&amp;b=2" ${away}>https://example.com/x_(y)?a=1&amp;b=2</a>. ` +
        `Or (<a href="http://a.b" ${away}>http://a.b</a>)!\u2407</span></pre>`
    )
  })

  it("is JSON on one line where it fits, else on lines that can be folded", () => {
    assert.strictEqual(
      htmlOf('{"a":[1,true,null],"b":{},"c":"x"}', "json"),
      '<div class="json">{ <span class="key">&quot;a&quot;</span>: [<span class="value">1</span>, ' +
        '<span class="value">true</span>, <span class="null">null</span>], <span class="key">&quot;b&quot;</span>: {}, ' +
        '<span class="key">&quot;c&quot;</span>: <span class="string">&quot;x&quot;</span> }</div>'
    )
    const long = "x".repeat(90)
    assert.strictEqual(
      htmlOf(JSON.stringify({ list: [long, 1, 2], url: "https://example.com/a?b&c" }), "json"),
      '<div class="json"><details open><summary>{ <small>2 members</small></summary><div class="in">' +
        '<details open><summary><span class="key">&quot;list&quot;</span>: [ <small>3 items</small></summary><div class="in">' +
        `<span class="string">&quot;${long}&quot;</span>,\n<span class="value">1</span>, <span class="value">2</span></div></details>],\n` +
        `<span class="key">&quot;url&quot;</span>: &quot;<a href="https://example.com/a?b&amp;c" ${away}>` +
        "https://example.com/a?b&amp;c</a>&quot;</div></details>}</div>"
    )
  })

  it("shows what is not seen in JSON as JSON would write it", () => {
    const html = htmlOf(
      JSON.stringify(["\u202eevil\u200b\ufeff", "\ud83d\ude00"]).replace("evil", "\ud800"),
      "json"
    )
    assert.include(html, "&quot;\\u202e\\ud800\\u200b\\ufeff&quot;")
    assert.include(html, "\ud83d\ude00")
  })

  it("is text with a remark where it should be JSON and is not", () => {
    const { format, html, remark } = renderBody("{oops", "json")
    assert.deepStrictEqual(
      [format, html],
      ["text", '<pre class="text" dir="auto"><span class="part">{oops</span></pre>']
    )
    assert.include(remark, "no JSON")
  })

  it("is a log with instants, levels and colours, and without other sequences", () => {
    const text = lines(
      "2026-11-23T04:00:00.123Z ERROR failed: http://a.b/c",
      "[04:00:01] level=warn slow",
      "\u001b[1;31mred \u001b[22mthin\u001b[0m plain \u001b[97;44mon blue\u001b[m",
      "\u001b[38;5;196mcube\u001b[38;2;0;0;0mrgb\u001b[7mswapped\u001b[27;39;4munder\u001b[0m",
      "\u001b]8;;http://evil.test\u0007text\u001b]8;;\u0007\u001b[2K\u001b]0;title\u001b\\ only"
    )
    assert.strictEqual(
      htmlOf(text, "log"),
      lines(
        '<pre class="log"><span class="part"><span class="time">2026-11-23T04:00:00.123Z</span> <span class="error">ERROR</span>' +
          ` failed: <a href="http://a.b/c" ${away}>http://a.b/c</a>`,
        '<span class="time">[04:00:01]</span> <span class="warn">level=warn</span> slow',
        '<span class="bold f1">red </span><span class="f1">thin</span> plain <span class="b4">on blue</span>',
        '<span class="f9">cube</span><span class="f0">rgb</span><span class="b0">swapped</span><span class="under">under</span>',
        "text only</span></pre>"
      )
    )
  })

  it("is in parts of 500 lines", () => {
    const text = Array.from({ length: 1_001 }, (_, index) => `line ${index}`).join("\n")
    for (const format of ["text", "log"] as const) {
      const { elements, text: whole } = checkSafe(htmlOf(text, format))
      assert.strictEqual(elements.filter(({ attributes }) => attributes["class"] === "part").length, 3)
      assert.strictEqual(whole, text)
    }
  })

  it("is Markdown with headings one lower, tables, and images as links", () => {
    const text = lines(
      "# Head",
      "Some *text*, ~~gone~~, `code` & <b>html</b> https://example.com/x",
      "",
      "3. three",
      "   - [x](https://example.com 'title') ![pic](http://a.b/c.png) [![badge](http://a.b/d.svg)](mailto:a@b.c)",
      "",
      "| a | b |",
      "|---|--:|",
      "| 1 | 2 |",
      "",
      "```js",
      "1 < 2",
      "```",
      "[no](javascript:alert) ![no](data:x) [no](/n/me)"
    )
    const { html } = renderMarkdown(text)
    checkSafe(html)
    assert.strictEqual(
      html,
      lines(
        '<div class="markdown" dir="auto"><h2>Head</h2>',
        "<p>Some <em>text</em>, <s>gone</s>, <code>code</code> &amp; &lt;b&gt;html&lt;/b&gt; " +
          `<a href="https://example.com/x" ${away}>https://example.com/x</a></p>`,
        '<ol start="3">',
        "<li>three",
        "<ul>",
        `<li><a href="https://example.com" ${away}>x</a> <a href="http://a.b/c.png" ${away}>pic</a> ` +
          `<a href="mailto:a@b.c" ${away}>badge</a></li>`,
        "</ul>",
        "</li>",
        "</ol>",
        '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>',
        "<thead>",
        "<tr>",
        "<th>a</th>",
        '<th class="right">b</th>',
        "</tr>",
        "</thead>",
        "<tbody>",
        "<tr>",
        "<td>1</td>",
        '<td class="right">2</td>',
        "</tr>",
        "</tbody>",
        "</table></div>",
        "<pre><code>1 &lt; 2",
        "</code></pre>",
        "<p>[no](javascript:alert) ![no](data:x) [no](/n/me)</p>",
        "</div>"
      )
    )
  })
})
