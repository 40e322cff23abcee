import { assert, describe, it } from "@effect/vitest"
import { type AccessLogEntry, notAPage, parseLine } from "#src/analytics/cli/AccessLog.ts"

const line = (
  changes: { readonly request?: string; readonly status?: number; readonly referrer?: string } = {}
): string =>
  `83.149.9.216 - - [17/May/2015:10:05:03 +0200] "${changes.request ?? "GET /blog/?page=2 HTTP/1.1"}" ` +
  `${changes.status ?? 200} 512 "${changes.referrer ?? "-"}" "Mozilla/5.0 (X11)"`

const parsed = (text: string): AccessLogEntry => {
  const entry = parseLine(text)
  assert.isDefined(entry)
  return entry
}

describe("parseLine", () => {
  it("reads the fields of Combined Log Format, the time with its offset", () => {
    assert.deepStrictEqual(parsed(line({ referrer: "https://news.example/a" })), {
      address: "83.149.9.216",
      timeMillis: Date.parse("2015-05-17T08:05:03Z"),
      method: "GET",
      target: "/blog/?page=2",
      status: 200,
      referrer: "https://news.example/a",
      userAgent: "Mozilla/5.0 (X11)"
    })
  })

  it("takes an absent referrer as none, escaped quotes as quotes, and a user name with a space", () => {
    const text = line({ referrer: String.raw`https://a.example/?q=\"x\"` }).replace("- - [", "- ada l [")
    assert.strictEqual(parsed(text).referrer, 'https://a.example/?q="x"')
    assert.strictEqual(parsed(line()).referrer, "")
  })

  it("refuses what is not of the format", () => {
    for (const text of [
      "",
      "hello",
      line().slice(0, 60),
      line().replace("/May/", "/Foo/"),
      line({ request: "-" })
    ]) {
      assert.isUndefined(parseLine(text), text)
    }
  })
})

describe("notAPage", () => {
  const reason = (changes: Parameters<typeof line>[0]): string | undefined => notAPage(parsed(line(changes)))

  it("counts successful GETs of pages, from the browser's cache too", () => {
    assert.isUndefined(reason({}))
    assert.isUndefined(reason({ status: 304 }))
    assert.isUndefined(reason({ request: "GET /a.html HTTP/1.1" }))
    assert.isUndefined(reason({ request: "GET /release/1.2 HTTP/1.1" }))
  })

  it("leaves out other methods and statuses", () => {
    assert.strictEqual(reason({ request: "HEAD / HTTP/1.1" }), "method")
    assert.strictEqual(reason({ status: 301 }), "status")
    assert.strictEqual(reason({ status: 404 }), "status")
    assert.strictEqual(reason({ status: 500 }), "status")
  })

  it("leaves out assets, by extension and by a stylesheet or script as referrer", () => {
    assert.strictEqual(reason({ request: "GET /logo.PNG?v=2 HTTP/1.1" }), "asset")
    assert.strictEqual(reason({ request: "GET /robots.txt HTTP/1.1" }), "asset")
    assert.strictEqual(reason({ referrer: "https://example.com/style.css?v=1" }), "asset")
  })
})
