import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Notice } from "#streams/notify/channels/Channel.ts"
import { type PushPayload, pushPayload, pushRequest, topicOf } from "#streams/notify/channels/PushRequest.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import { anyNotice, createdAtMillis, notice } from "./Notices.ts"
import { PushBrowser, verifiedToken } from "./PushBrowser.ts"

const read = (payload: Uint8Array): PushPayload => JSON.parse(Buffer.from(payload).toString())

const payloadOf = (change: Partial<Notice>, isSmaller = false): PushPayload =>
  read(pushPayload({ ...notice, ...change }, { isSmaller }))

describe("the payload of a push", () => {
  const url = "https://ci.example.com/run/7"
  const long = "word ".repeat(799)
  const { pageUrl, settingsUrl } = notice

  it("has the title or else the app, the text, the delivery's id as tag, and the time", () => {
    const { at, tag, text, title } = payloadOf({})
    assert.deepStrictEqual(
      { at, tag, text, title },
      { at: createdAtMillis, tag: notice.deliveryId, text: "It ended well.", title: "backup" }
    )
    assert.strictEqual(payloadOf({ title: "Done" }).title, "Done")
    assert.strictEqual(payloadOf({ hasPaperclip: true }).text, "📎 It ended well.")
  })

  it("opens the page if that shows more, else the message's address, else the page if the text was cut, else the settings", () => {
    const clicks = (change: Partial<Notice>) => {
      const { open, page, url } = payloadOf(change)
      return { open, page, url }
    }
    const no = undefined
    assert.deepStrictEqual(clicks({ hasView: true, url }), { open: pageUrl, page: no, url })
    assert.deepStrictEqual(clicks({ hasView: true }), { open: pageUrl, page: no, url: no })
    assert.deepStrictEqual(clicks({ url }), { open: url, page: no, url: no })
    assert.deepStrictEqual(clicks({}), { open: settingsUrl, page: no, url: no })
    assert.deepStrictEqual(clicks({ message: long }), { open: pageUrl, page: no, url: no })
    assert.deepStrictEqual(clicks({ message: long, url }), { open: url, page: pageUrl, url: no })
    assert.deepStrictEqual(clicks({ message: long, url, hasView: true }), { open: pageUrl, page: no, url })
  })

  it("has at most 3,990 bytes and, after 413, 2,000, with as much of the text as fits", () => {
    for (const [isSmaller, maxBytes] of [
      [false, 3_990],
      [true, 2_000]
    ] as const) {
      const payload = pushPayload({ ...notice, message: "a".repeat(4_000) }, { isSmaller })
      assert.strictEqual(payload.length, maxBytes)
      assert.match(read(payload).text, /^a+…$/)
    }
    const exact = "a".repeat(3_990 - pushPayload({ ...notice, hasView: true, message: "" }).length)
    assert.strictEqual(payloadOf({ hasView: true, message: exact }).text, exact)
    assert.match(payloadOf({ hasView: true, message: `${exact}b` }).text, /a…$/)
  })

  it("leaves out a long address, which the page has too, and then the rest of a long title, before the text gets too short", () => {
    const wide = `https://example.com/${"€".repeat(2_000)}`
    assert.deepInclude(payloadOf({ url: wide }), { text: notice.message, open: pageUrl })
    assert.isUndefined(payloadOf({ url: wide }).url)
    assert.deepInclude(payloadOf({ url: wide, hasView: true }), { text: notice.message, open: pageUrl })
    const title = "\u0001".repeat(200)
    assert.strictEqual(payloadOf({ title, message: long }).title, title)
    const small = payloadOf({ title, message: long, pageUrl: `https://example.com/${"a".repeat(600)}` }, true)
    assert.strictEqual(small.title, `${"\u0001".repeat(32)}…`)
    assert.isAbove(small.text.length, 900)
    const nowhere = payloadOf({ pageUrl: `https://example.com/${"a".repeat(4_000)}`, hasView: true })
    assert.deepInclude(nowhere, { text: notice.message, title: "backup" })
    assert.isUndefined(nowhere.open)
  })

  it("fits, is valid JSON and cuts nothing without need, whatever the message has", () => {
    fc.assert(
      fc.property(anyNotice, fc.boolean(), (one, isSmaller) => {
        const payload = pushPayload(one, { isSmaller })
        assert.isAtMost(payload.length, isSmaller ? 2_000 : 3_990)
        const { open, tag, text, title } = read(payload)
        assert.strictEqual(tag, one.deliveryId)
        assert.include([one.pageUrl, one.settingsUrl, one.url], open)
        const whole = one.hasPaperclip ? `📎 ${one.message}` : one.message
        const begins = (cut: string, all: string) =>
          cut === all || (cut.endsWith("…") && all.startsWith(cut.slice(0, -1)))
        assert.isTrue(begins(text, whole) && begins(title, one.title ?? one.app))
        if (text === whole) return
        assert.isTrue(Buffer.byteLength(JSON.stringify(text)) > 190 || text.length > whole.length - 2)
        assert.notStrictEqual(open, one.settingsUrl)
      }),
      { numRuns: 80 }
    )
  })
})

describe("the request of a push", () => {
  const vapid = new Vapid({ secret: randomBytes(32), subject: "mailto:ops@example.com" })
  const nowMillis = createdAtMillis + 1_500

  it("goes to the endpoint, signed for its origin, and only the browser reads it", async () => {
    const browser = await PushBrowser.make("https://push.example.net:8443/p/token?a=1")
    const request = pushRequest(browser.target, notice, { vapid, nowMillis })
    const { authorization = "", ...headers } = request.headers
    assert.deepStrictEqual(headers, {
      ttl: String(72 * 3_600 - 2),
      urgency: "high",
      topic: notice.deliveryId,
      "content-type": "application/octet-stream",
      "content-encoding": "aes128gcm"
    })
    assert.deepInclude(request, { url: browser.target.endpoint, method: "POST" })
    assert.strictEqual((await verifiedToken(authorization)).claims.aud, "https://push.example.net:8443")
    assert.deepStrictEqual(read((await browser.decrypt(request.body)).plaintext), payloadOf({}))
  })

  it("has the same Topic and tag when it is repeated, and a new signature or fewer bytes when it was asked for them", async () => {
    const browser = await PushBrowser.make()
    const long = { ...notice, message: "a".repeat(4_000) }
    const first = pushRequest(browser.target, long, { vapid, nowMillis })
    assert.strictEqual(first.body.length, 4_093)
    const adjustments = { isSmaller: true, hasNewSignature: true }
    const second = pushRequest(browser.target, long, { vapid, nowMillis, adjustments })
    assert.strictEqual(second.headers["topic"], first.headers["topic"])
    assert.notStrictEqual(second.headers["authorization"], first.headers["authorization"])
    assert.strictEqual(second.body.length, 2_103)
    assert.strictEqual(read((await browser.decrypt(second.body)).plaintext).tag, notice.deliveryId)
  })

  it("tells urgency by priority and the seconds that are left, never below 0", async () => {
    const { target } = await PushBrowser.make()
    const headersOf = (change: Partial<Notice>, at = nowMillis) =>
      pushRequest(target, { ...notice, ...change }, { vapid, nowMillis: at }).headers
    assert.strictEqual(headersOf({ priority: "low" })["urgency"], "low")
    assert.strictEqual(headersOf({ priority: "high" })["urgency"], "high")
    assert.strictEqual(headersOf({}, notice.expiresAtMillis - 999)["ttl"], "0")
    assert.strictEqual(headersOf({}, notice.expiresAtMillis + 60_000)["ttl"], "0")
  })

  it("has a Topic of at most 32 base64url characters for every id", () => {
    assert.strictEqual(topicOf("dlv_0123456789abcdefABCDEF"), "dlv_0123456789abcdefABCDEF")
    for (const odd of ["", "a b", "dlv_€", "a".repeat(33), "a\r\nb", "dlv_1\n"])
      assert.match(topicOf(odd), /^[A-Za-z0-9_-]{32}$(?!\n)/)
    assert.notStrictEqual(topicOf("a b"), topicOf("a c"))
  })
})
