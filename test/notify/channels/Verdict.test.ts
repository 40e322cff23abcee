import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Adjustments, ChannelKind, Verdict } from "#streams/notify/channels/Channel.ts"
import { retryAfterMillis } from "#streams/notify/channels/RetryAfter.ts"
import { type NetworkFault, verdictOf, verdictOfFault } from "#streams/notify/channels/Verdict.ts"

const nowMillis = Date.UTC(2026, 10, 22, 12)
const day = 24 * 3_600_000

interface Answered {
  readonly adjustments?: Adjustments
  /** beside `Retry-After`, names in lower case */
  readonly headers?: Readonly<Record<string, string>>
  readonly retryAfter?: string
  readonly body?: string
}

const judged = (
  kind: ChannelKind,
  status: number,
  { adjustments = {}, body, headers = {}, retryAfter }: Answered = {}
): Verdict =>
  verdictOf(
    kind,
    {
      status,
      header: (name) => (name === "retry-after" ? retryAfter : headers[name]),
      ...(body === undefined ? {} : { body: Buffer.from(body) })
    },
    { adjustments, nowMillis }
  )

const tagOf = (kind: ChannelKind, status: number, adjustments: Adjustments = {}) =>
  judged(kind, status, { adjustments })._tag

type Tag = Verdict["_tag"]
type Row = readonly [from: number, to: number, push: Tag, webhook: Tag, slack: Tag, discord: Tag]

/** Every status, with the verdicts of a push service, a webhook, Slack and Discord. */
const table: ReadonlyArray<Row> = [
  [0, 199, "Again", "Again", "Again", "Again"],
  [200, 299, "Delivered", "Delivered", "Delivered", "Delivered"],
  [300, 399, "Dead", "Dead", "Dead", "Dead"],
  [400, 400, "Dead", "Dead", "Dead", "Dead"],
  [401, 401, "NewSignature", "Dead", "Dead", "Dead"],
  [402, 402, "Dead", "Dead", "Dead", "Dead"],
  [403, 403, "NewSignature", "Dead", "Dead", "Dead"],
  [404, 404, "Gone", "Dead", "Gone", "Gone"],
  [405, 409, "Dead", "Dead", "Dead", "Dead"],
  [410, 410, "Gone", "Gone", "Gone", "Dead"],
  [411, 412, "Dead", "Dead", "Dead", "Dead"],
  [413, 413, "Smaller", "Smaller", "Smaller", "Smaller"],
  [414, 428, "Dead", "Dead", "Dead", "Dead"],
  [429, 429, "Again", "Again", "Again", "Again"],
  [430, 499, "Dead", "Dead", "Dead", "Dead"],
  [500, 999, "Again", "Again", "Again", "Again"]
]

const kinds = ["push", "webhook", "slack", "discord"] as const

describe("the verdict on an answer", () => {
  it("is told for every status and kind: push 404/410, Slack 404/410, Discord 404, generic 410 are gone", () => {
    const statuses: Array<number> = []
    for (const [from, to, ...tags] of table)
      for (let status = from; status <= to; status++) {
        statuses.push(status)
        for (const [n, kind] of kinds.entries())
          assert.strictEqual(tagOf(kind, status), tags[n], `${kind} ${status}`)
      }
    assert.deepStrictEqual(
      statuses,
      Array.from({ length: 1_000 }, (_, status) => status)
    )
    for (const odd of [-1, 1_000, 1e9, Number.NaN])
      for (const kind of kinds) assert.strictEqual(tagOf(kind, odd), "Again", `${odd}`)
  })

  it("asks for fewer bytes and for a new signature once each", () => {
    const [small, signed] = [{ isSmaller: true }, { hasNewSignature: true }]
    for (const kind of kinds) {
      assert.strictEqual(tagOf(kind, 413, small), "Dead")
      assert.strictEqual(tagOf(kind, 413, signed), "Smaller")
    }
    for (const status of [401, 403]) {
      assert.strictEqual(tagOf("push", status, signed), "Dead")
      assert.strictEqual(tagOf("push", status, small), "NewSignature")
    }
  })

  it("has the pause that the service asks for with 429 and 5xx, and with nothing else", () => {
    for (const status of [429, 500, 503])
      assert.deepInclude(judged("push", status, { retryAfter: "120" }), {
        _tag: "Again",
        afterMillis: 120_000
      })
    assert.notProperty(judged("webhook", 503, { retryAfter: "soon" }), "afterMillis")
    for (const status of [201, 400, 404, 413])
      assert.notProperty(judged("push", status, { retryAfter: "120" }), "afterMillis")
  })

  it("says who answered what, and Apple's reason, but nothing that a stranger wrote", () => {
    const errorOf = (kind: ChannelKind, status: number, body?: string) => {
      const verdict = judged(kind, status, body === undefined ? {} : { body })
      return verdict._tag === "Delivered" ? "" : verdict.error
    }
    assert.strictEqual(
      errorOf("push", 403, '{"reason":"BadJwtToken"}'),
      "the push service answered 403 (BadJwtToken)"
    )
    const plain = "the push service answered 400"
    for (const body of [
      undefined,
      "",
      "<html>https://push.example.net/token</html>",
      '{"reason":"https://push.example.net/token"}',
      `{"reason":"${"a".repeat(41)}"}`,
      `{"reason":"Bad","more":"${"a".repeat(2_000)}"}`,
      '{"reason":{"a":"Bad"}}'
    ])
      assert.strictEqual(errorOf("push", 400, body), plain, body)
    assert.strictEqual(errorOf("webhook", 400, '{"reason":"Token"}'), "the webhook answered 400")
    assert.strictEqual(errorOf("slack", 404, "no_service"), "the chat answered 404 (no_service)")
    assert.strictEqual(errorOf("slack", 400, "invalid_payload\n"), "the chat answered 400 (invalid_payload)")
    for (const body of ["no_such_word", "https://chat.example.com/token", '{"error":"no_service"}', ""])
      assert.strictEqual(errorOf("slack", 400, body), "the chat answered 400", body)
    assert.strictEqual(
      errorOf("discord", 404, '{"message": "Unknown Webhook", "code": 10015}'),
      "Discord answered 404 (code 10015)"
    )
    for (const body of [
      '{"message": "token", "code": 0}',
      '{"code": "10015"}',
      '{"code": 12345678}',
      "<html>"
    ])
      assert.strictEqual(errorOf("discord", 400, body), "Discord answered 400", body)
  })

  it("has Discord's retry_after, seconds with decimals, and the rest of a window that is used up", () => {
    const limited = (body: string, more: Answered = {}) => judged("discord", 429, { body, ...more })
    const again = (afterMillis: number): Verdict => ({
      _tag: "Again",
      error: "Discord answered 429",
      afterMillis
    })
    const body = '{"message": "You are being rate limited.", "retry_after": 0.6451, "global": false}'
    assert.deepStrictEqual(limited(body), again(646))
    assert.deepStrictEqual(limited(body, { retryAfter: "1" }), again(646))
    assert.deepStrictEqual(limited('{"retry_after": 90000.5}'), again(day))
    assert.deepStrictEqual(limited("error code: 1015", { retryAfter: "7" }), again(7_000))
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.25" }
    assert.deepStrictEqual(limited("", { headers }), again(1_250))
    for (const nonsense of ['{"retry_after": "soon"}', '{"retry_after": -1}', '{"retry_after": 0}', "{"])
      assert.notProperty(limited(nonsense), "afterMillis", nonsense)
    assert.deepStrictEqual(judged("discord", 204, { headers }), { _tag: "Delivered", afterMillis: 1_250 })
    assert.deepStrictEqual(
      judged("discord", 200, { headers: { ...headers, "x-ratelimit-remaining": "4" } }),
      {
        _tag: "Delivered"
      }
    )
    assert.notProperty(judged("discord", 400, { headers, body }), "afterMillis")
  })

  it("has a second between messages to a webhook of Slack's", () => {
    assert.deepStrictEqual(judged("slack", 200), { _tag: "Delivered", afterMillis: 1_000 })
    assert.deepInclude(judged("slack", 429, { retryAfter: "30" }), { _tag: "Again", afterMillis: 30_000 })
    assert.notProperty(judged("slack", 503), "afterMillis")
  })
})

describe("the verdict on a fault of the network", () => {
  it("is told for every kind", () => {
    const kinds = {
      name: "Again",
      connect: "Again",
      tls: "Again",
      time: "Again",
      size: "Again",
      answer: "Again",
      busy: "Again",
      redirect: "Dead",
      request: "Dead"
    } as const
    const texts = Object.entries(kinds).map(([kind, tag]) => {
      const fault = { _tag: "EgressFailed", kind } as NetworkFault
      const verdict = verdictOfFault(fault)
      assert.strictEqual(verdict._tag, tag, kind)
      return "error" in verdict ? verdict.error : ""
    })
    assert.strictEqual(new Set(texts).size, texts.length)
    assert.deepStrictEqual(verdictOfFault({ _tag: "EgressRefused", reason: "loopback address" }), {
      _tag: "Dead",
      error: "its address may not be reached: loopback address"
    })
  })
})

describe("Retry-After", () => {
  it("is seconds or a date in one of three forms, at most 24 h", () => {
    for (const [value, millis] of [
      ["1", 1_000],
      ["120", 120_000],
      [" 7 ", 7_000],
      ["0.25", 250],
      ["0.0001", 1],
      ["00060", 60_000],
      ["86400", day],
      ["86401", day],
      ["9".repeat(400), day],
      ["Sun, 22 Nov 2026 12:00:30 GMT", 30_000],
      ["Sunday, 22-Nov-26 12:00:30 GMT", 30_000],
      ["Sun Nov 22 12:00:30 2026", 30_000],
      ["Tue Dec  1 12:00:30 2026", day],
      ["Fri, 31 Dec 9999 23:59:59 GMT", day]
    ] as const)
      assert.strictEqual(retryAfterMillis(value, nowMillis), millis, value)
  })

  it("is none where it is over, or nonsense", () => {
    for (const value of [
      undefined,
      "",
      " ",
      "0",
      "0.0",
      "-5",
      "+5",
      "1e3",
      "0x10",
      "5 s",
      "5,5",
      "120, 120",
      "Infinity",
      "NaN",
      ".5",
      "5.",
      "٣",
      "2026-11-22T12:00:30Z",
      "Sun, 22 Nov 2026 12:00:00 GMT",
      "Sun, 22 Nov 2026 11:59:59 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT",
      "Sun, 22 Nov 2026 12:00:30 +0000",
      "Sun, 22 Nov 2026 12:00:30 GMT (really)",
      "Sun, 99 Nov 2026 12:00:30 GMT",
      "Sun, 22 Nov 12026 12:00:30 GMT"
    ])
      assert.isUndefined(retryAfterMillis(value, nowMillis), value)
  })

  it("is a whole pause within bounds, whatever the header has and the clock says", () => {
    fc.assert(
      fc.property(fc.string(), fc.double({ noNaN: true }), (value, at) => {
        const millis = retryAfterMillis(value, at)
        if (millis !== undefined) assert.isTrue(Number.isInteger(millis) && millis >= 1 && millis <= day)
      })
    )
  })
})
