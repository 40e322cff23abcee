import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { fileHeaders, previewOf } from "#src/notify/pages/AttachmentPreview.ts"
import { messagePage } from "#src/notify/pages/MessagePage.ts"
import {
  goneFilePage,
  goneMessagePage,
  noFilePage,
  noMessagePage,
  styleText
} from "#src/notify/pages/NotifyPage.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderSource, renderText } from "#streams/notify/bodies/RenderText.ts"
import { hostileBodies } from "#test/notify/bodies/HostileBodies.ts"
import { fileWith, messageWith } from "./TestMessages.ts"

const hostile = `"><script>alert(1)</script>'\u202e&`
const escaped = "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;'&amp;"
const away = 'rel="noopener noreferrer nofollow"'

/** Elements of a page, without those of the wordmark, and the values of an attribute. */
const namesIn = (text: string): ReadonlySet<string> =>
  new Set(Array.from(text.matchAll(/<([a-z]\w*)/g), ([, name = ""]) => name))
const valuesOf = (attribute: string, text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g")), ([, value = ""]) => value)

describe("the page of a message", () => {
  it("has heading, sender, time, text with links, the link by its host, and how long it is kept", () => {
    const { status, text } = messagePage(messageWith({ priority: "high" }))
    assert.strictEqual(status, 200)
    assert.include(text, "<title>Build 1234 failed · Signalbox</title>")
    assert.include(text, "<h1><bdi>Build 1234 failed</bdi></h1>")
    assert.match(
      text,
      /<bdi>ci<\/bdi> · <time datetime="2026-11-23T04:00:00.000Z">23 Nov 2026, 04:00 UTC<\/time>/
    )
    assert.include(text, "High priority")
    assert.include(text, `2 of 310 tests failed on main.\nSee <a href="https://ci.example.com/1234" ${away}>`)
    assert.include(text, `<a class="button" href="https://ci.example.com/1234?tab=log&amp;all" ${away}`)
    assert.match(text, /Open <bdi>ci\.example\.com<\/bdi>/)
    assert.include(text, 'kept until <time datetime="2027-02-21T04:00:00.000Z">')
  })

  it("is headed by the app where it has no title, which is then not said twice", () => {
    const { text } = messagePage(messageWith({ title: undefined, url: undefined }))
    assert.include(text, "<h1><bdi>ci</bdi></h1>")
    assert.strictEqual(text.split("<bdi>ci</bdi>").length, 2)
    assert.notInclude(text, "button")
  })

  it("takes nothing that others wrote for markup", () => {
    const file = fileWith(hostile, hostile, { head: { html: renderText(hostile).html, isWhole: true } })
    const texts = { project: hostile, app: hostile, title: hostile, message: hostile }
    const body = { format: "text", html: "<pre></pre>", remark: hostile.replace("\u202e", "") } as const
    const { text } = messagePage(
      messageWith({ ...texts, url: `https://evil.test/${hostile}`, body, files: [file] })
    )
    assert.notInclude(text, "<script")
    assert.notInclude(text, "\u202e")
    assert.include(text, `<h1><bdi>${escaped}</bdi></h1>`)
    for (const attribute of ["onclick", "onload", "style"])
      assert.deepStrictEqual(valuesOf(attribute, text), [])
    for (const page of [goneFilePage(hostile, hostile, 0), noFilePage(hostile)])
      assert.notInclude(page.text, "<script")
  })

  it("has no script, no style of its own and no address of another server but in links", () => {
    const files = [
      fileWith("a.png", "image/png"),
      fileWith("b.mp4", "video/mp4"),
      fileWith("c.mp3", "audio/mpeg"),
      fileWith("d.pdf", "application/pdf"),
      fileWith("e.bin", "application/octet-stream")
    ]
    const body = renderBody(hostileBodies.join("\n"), "text")
    const { text } = messagePage(messageWith({ body, files }))
    for (const name of ["script", "style", "iframe", "object", "embed", "form", "base"])
      assert.isFalse(namesIn(text).has(name), name)
    for (const source of [...valuesOf("src", text), ...valuesOf("srcset", text), ...valuesOf("poster", text)])
      assert.match(source, /^\/n\/m\/T+\/a\/att_\w+$/)
    const links = Array.from(text.matchAll(/<link [^>]*>/g), ([link]) => link)
    assert.deepStrictEqual(links, [
      '<link rel="icon" href="/n/icon-192.png" />',
      '<link rel="stylesheet" href="/n/pages.css" />'
    ])
    // The id of what the skip link is to, and of headings.
    assert.deepStrictEqual([...valuesOf("id", text)].sort(), ["body", "files", "main"])
  })

  it("says what may be loaded, is in no index and no shared cache, and tells no one its address", () => {
    const pages = [
      messagePage(messageWith()),
      noMessagePage(),
      goneMessagePage(90),
      noFilePage("p"),
      goneFilePage("p", "f", 0)
    ]
    for (const { contentType, headers, text } of pages) {
      assert.strictEqual(contentType, "text/html; charset=utf-8")
      assert.deepStrictEqual(headers, {
        "content-security-policy":
          "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-cache",
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex, nofollow"
      })
      assert.include(text, '<meta name="robots" content="noindex, nofollow" />')
      assert.include(text, '<html lang="en">')
    }
    assert.deepStrictEqual(
      pages.map(({ status }) => status),
      [200, 404, 410, 404, 410]
    )
  })

  it("shows the body in its format with a way to its source, and the source with a way back", () => {
    const path = messageWith().path
    const log = messagePage(messageWith({ body: renderBody("04:00:00 a\n<b>", "log") })).text
    assert.include(log, '<h2 id="body">Log</h2>')
    assert.include(
      log,
      '<pre class="log"><span class="part"><span class="time">04:00:00</span> a\n&lt;b&gt;</span></pre>'
    )
    assert.include(log, `<a href="${path}?source">Source</a>`)
    assert.include(log, `<a href="${path}/raw" download>Download</a>`)
    const source = messagePage(
      messageWith({ body: { source: { html: renderSource("\u001b[31m<b> http://a.b") } } })
    ).text
    assert.include(source, '<span class="part">\u241b[31m&lt;b&gt; http://a.b</span>')
    assert.include(source, `<a href="${path}">Formatted</a>`)
    assert.notInclude(messagePage(messageWith()).text, "Source")
  })

  it("shows files by their kinds, and names those that are gone", () => {
    const files = [
      fileWith("a.svg", "image/svg+xml", { size: 100 }),
      fileWith("b.json", "application/json", {
        head: { html: renderBody(`{"a":1}`, "json").html, isWhole: true },
        size: 2_048
      }),
      fileWith("c.txt", "text/plain; charset=utf-8", {
        head: { html: renderText("<b>").html, isWhole: false },
        size: 5_368_709
      }),
      fileWith("d.pdf", "application/pdf", { size: 1_610_612_736 }),
      fileWith("e.zip", "application/zip"),
      fileWith("f.png", "image/png", { isExpired: true })
    ]
    const { text } = messagePage(messageWith({ files }))
    const at = (name: string): string => `${messageWith().path}/a/att_${name}`
    assert.include(text, "6 files")
    assert.include(text, `<img src="${at("asvg")}" alt="a.svg" loading="lazy" decoding="async" />`)
    assert.include(text, '<div class="json">{ <span class="key">&quot;a&quot;</span>')
    assert.include(text, "<summary>Show the first 64 KB</summary>")
    assert.include(text, "&lt;b&gt;</span></pre>")
    assert.include(text, `<a href="${at("dpdf")}"><bdi>d.pdf</bdi></a>`)
    assert.include(
      text,
      `<a href="${at("ezip")}" download="e.zip" class="get" aria-label="Download e.zip">Download</a>`
    )
    assert.notInclude(text, at("fpng"))
    assert.match(text, /f\.png<\/bdi>\s+<span class="hint">12\.1 KB, was kept until <time/)
    for (const size of ["100 bytes", "2.0 KB", "5.1 MB", "1.5 GB"]) assert.include(text, size)
  })

  it("is under 30 KB with its style, packed, with a text of 4,000 characters and a body", () => {
    const message = Array.from({ length: 4_000 }, (_, index) =>
      String.fromCharCode(97 + ((index * 7) % 26))
    ).join("")
    const body = renderBody("2026-11-23T04:00:00Z INFO started\n".repeat(100), "log")
    const { text } = messagePage(messageWith({ message, body }))
    assert.isAtMost(gzipSync(text + styleText()).length, 30 * 1024)
  })
})

describe("a file of a message", () => {
  it("is shown by its type, without regard to parameters and case", () => {
    const kinds = {
      image: ["image/png", "IMAGE/JPEG", "image/svg+xml; charset=utf-8", "image/webp"],
      video: ["video/mp4", "video/x-unknown"],
      audio: ["audio/mpeg"],
      text: ["text/plain", "text/html", "text/csv;header=present", "application/json", "application/ld+json"],
      pdf: ["application/pdf"],
      none: ["image/tiff", "application/zip", "application/xhtml+xml", "", "text", "application/javascript"]
    }
    for (const [kind, types] of Object.entries(kinds))
      for (const type of types) assert.strictEqual(previewOf(type), kind, type)
  })

  it("goes out in a sandbox but for PDF; what a browser could run is text or a download", () => {
    const sent = (type: string) => {
      const { contentType, headers } = fileHeaders(type, 'n"\u00fc.x')
      assert.strictEqual(headers["x-content-type-options"], "nosniff")
      return [
        contentType,
        headers["content-disposition"]?.split(";")[0],
        headers["content-security-policy"]?.split(";")[0]
      ]
    }
    assert.deepStrictEqual(sent("image/png"), ["image/png", "inline", "sandbox"])
    assert.deepStrictEqual(sent("image/svg+xml"), ["image/svg+xml", "attachment", "sandbox"])
    assert.deepStrictEqual(sent("text/html"), ["text/plain; charset=utf-8", "inline", "sandbox"])
    assert.deepStrictEqual(sent("application/xhtml+xml"), ["application/xhtml+xml", "attachment", "sandbox"])
    assert.deepStrictEqual(sent("text/javascript"), ["text/plain; charset=utf-8", "inline", "sandbox"])
    assert.deepStrictEqual(sent("application/pdf"), ["application/pdf", "inline", "frame-ancestors 'none'"])
    assert.deepStrictEqual(sent("application/octet-stream"), [
      "application/octet-stream",
      "attachment",
      "sandbox"
    ])
    assert.include(
      fileHeaders("image/png", 'n"\u00fc.x').headers["content-disposition"],
      "filename*=UTF-8''n%22%C3%BC.x"
    )
  })
})
