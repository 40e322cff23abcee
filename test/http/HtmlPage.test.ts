import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { html } from "#src/http/Html.ts"
import { renderPage } from "#src/http/HtmlPage.ts"

const page = { title: "A & B", main: html`<h1>${"<b>"}</h1>`, links: [], style: ".own { color: red }" }

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

const policyOf = (headers: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  (headers["content-security-policy"] ?? "").split("; ")

describe("a page that the server makes", () => {
  it("is a whole document whose texts are texts", () => {
    const { contentType, text } = renderPage(page)
    assert.strictEqual(contentType, "text/html; charset=utf-8")
    assert.match(text, /^<!doctype html>\s*<html lang="en">/)
    assert.include(text, "<title>A &amp; B · Signalbox</title>")
    assert.include(text, "<h1>&lt;b&gt;</h1>")
    assert.match(text, /<\/html>\s*$/)
  })

  it("runs no script unless it is given one", () => {
    const { headers, text } = renderPage(page)
    assert.notInclude(text, "<script")
    const style = /<style>(.*)<\/style>/s.exec(text)?.[1] ?? assert.fail("no style")
    assert.include(style, page.style)
    assert.deepStrictEqual(policyOf(headers), [
      "default-src 'none'",
      `style-src ${hashOf(style)}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'"
    ])
  })

  it("runs the script that it is given and no other, by its hash", () => {
    const script = `if (1 < 2 && "a") document.title = "run"`
    const { headers, text } = renderPage({ ...page, script })
    assert.include(text, `<script type="module">${script}</script>`)
    const policy = policyOf(headers)
    assert.include(policy, `script-src ${hashOf(script)}`)
    assert.include(policy, "connect-src 'self'")
    assert.notInclude(policy.join(), "unsafe")
  })

  it("refuses a style or a script that would end its own element", () => {
    assert.throws(() => renderPage({ ...page, script: `"</SCRIPT><b>"` }), "would end its own element")
    assert.throws(() => renderPage({ ...page, style: "</style>" }), "would end its own element")
  })
})
