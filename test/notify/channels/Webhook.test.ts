import { createHmac, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ChannelRequest } from "#streams/notify/channels/Channel.ts"
import {
  webhookConfirmation,
  webhookRequest,
  webhookSecret,
  webhookSignature
} from "#streams/notify/channels/Webhook.ts"
import { anyNotice, createdAtMillis, notice } from "./Notices.ts"

const key = randomBytes(32)
const target = { url: "https://hooks.example.com/a", secret: webhookSecret(key) }
const nowMillis = createdAtMillis + 1_999

/** As the specification has a receiver check a request; it answers the body. */
const received = ({ body, headers }: ChannelRequest): unknown => {
  const { "webhook-id": id, "webhook-signature": signature, "webhook-timestamp": timestamp } = headers
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  assert.strictEqual(signature, `v1,${createHmac("sha256", key).update(signed).digest("base64")}`)
  assert.strictEqual(headers["content-type"], "application/json")
  return JSON.parse(Buffer.from(body).toString())
}

describe("a generic webhook", () => {
  it("is signed as in the vector of Standard Webhooks", () => {
    const signature = webhookSignature(
      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330" },
      Buffer.from('{"test": 2432232314}')
    )
    assert.strictEqual(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  })

  it("has a secret of 24 to 64 bytes", () => {
    assert.match(webhookSecret(randomBytes(24)), /^whsec_[\w+/]{32}$/)
    for (const length of [0, 23, 65])
      assert.throws(() => webhookSecret(randomBytes(length)), "has 24 to 64 bytes")
  })

  it("gets the message with the id of the delivery and the second of the attempt", () => {
    const request = webhookRequest(target, notice, { nowMillis })
    assert.deepInclude(request, { url: target.url, method: "POST" })
    assert.strictEqual(request.headers["webhook-id"], notice.deliveryId)
    assert.strictEqual(request.headers["webhook-timestamp"], String(createdAtMillis / 1_000 + 1))
    assert.deepStrictEqual(received(request), {
      type: "message.created",
      timestamp: "2026-11-22T12:00:00.000Z",
      data: {
        id: notice.messageId,
        project: { slug: "nightly", name: "Nightly jobs" },
        app: "backup",
        priority: "normal",
        message: "It ended well."
      }
    })
  })

  it("gets title, address and the page that shows more, and never the settings", () => {
    const url = "https://ci.example.com/run/7"
    const full = { ...notice, title: "Done", url, hasView: true, hasPaperclip: true }
    const request = webhookRequest(target, full, { nowMillis })
    assert.deepInclude((received(request) as { data: object }).data, {
      title: "Done",
      message: "📎 It ended well.",
      url,
      viewUrl: notice.pageUrl
    })
    assert.notInclude(Buffer.from(request.body).toString(), "sbt_")
  })

  it("gets the same body and id when it is repeated", () => {
    const first = webhookRequest(target, notice, { nowMillis })
    const again = webhookRequest(target, notice, { nowMillis: nowMillis + 60_000 })
    assert.deepStrictEqual(again.body, first.body)
    assert.strictEqual(again.headers["webhook-id"], first.headers["webhook-id"])
    received(again)
  })

  it("is asked to confirm itself by a link", () => {
    const channel = { channelId: "chn_0123456789abcdefABCDEF", url: "https://signalbox.example.com/n/c/x" }
    const request = webhookConfirmation(target, channel, nowMillis)
    assert.strictEqual(request.headers["webhook-id"], channel.channelId)
    assert.deepStrictEqual(received(request), {
      type: "channel.confirmation",
      timestamp: "2026-11-22T12:00:01.999Z",
      data: { confirmUrl: channel.url }
    })
  })

  it("gets every message whole or, after 413, in 2,000 bytes with the page for the rest", () => {
    fc.assert(
      fc.property(anyNotice, (one) => {
        const message = one.hasPaperclip ? `📎 ${one.message}` : one.message
        const { data } = received(webhookRequest(target, one, { nowMillis })) as {
          data: { message: string; title?: string; url?: string }
        }
        assert.deepStrictEqual([data.message, data.title, data.url], [message, one.title, one.url])
        const small = webhookRequest(target, one, { nowMillis, adjustments: { isSmaller: true } })
        assert.isAtMost(small.body.length, 2_000)
        const cut = (received(small) as { data: { message: string; viewUrl?: string } }).data
        if (cut.message === message) return
        assert.isTrue(cut.message.endsWith("…") && message.startsWith(cut.message.slice(0, -1)))
        assert.strictEqual(cut.viewUrl, one.pageUrl)
      }),
      { numRuns: 50 }
    )
  })
})
