import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Adjustments, ChannelKind, Verdict } from "#streams/notify/channels/Channel.ts"
import { retryAfterMillis } from "#streams/notify/channels/RetryAfter.ts"
import { type NetworkFault, verdictOf, verdictOfFault } from "#streams/notify/channels/Verdict.ts"

const nowMillis = Date.UTC(2026, 10, 22, 12)
const day = 24 * 3_600_000

interface Answered {
  readonly adjustments?: Adjustments
  readonly retryAfter?: string
  readonly body?: string
}

const judged = (
  kind: ChannelKind,
  status: number,
  { adjustments = {}, body, retryAfter }: Answered = {}
): Verdict =>
  verdictOf(
    kind,
    {
      status,
      header: (name) => (name === "retry-after" ? retryAfter : undefined),
      ...(body === undefined ? {} : { body: Buffer.from(body) })
    },
    { adjustments, nowMillis }
  )

const tagOf = (kind: ChannelKind, status: number, adjustments: Adjustments = {}) =>
  judged(kind, status, { adjustments })._tag

type Row = readonly [from: number, to: number, push: Verdict["_tag"], webhook: Verdict["_tag"]]

/** Every status, with the verdicts of a push service and of a webhook. */
const table: ReadonlyArray<Row> = [
  [0, 199, "Again", "Again"],
  [200, 299, "Delivered", "Delivered"],
  [300, 399, "Dead", "Dead"],
  [400, 400, "Dead", "Dead"],
  [401, 401, "NewSignature", "Dead"],
  [402, 402, "Dead", "Dead"],
  [403, 403, "NewSignature", "Dead"],
  [404, 404, "Gone", "Dead"],
  [405, 409, "Dead", "Dead"],
  [410, 410, "Gone", "Gone"],
  [411, 412, "Dead", "Dead"],
  [413, 413, "Smaller", "Smaller"],
  [414, 428, "Dead", "Dead"],
  [429, 429, "Again", "Again"],
  [430, 499, "Dead", "Dead"],
  [500, 999, "Again", "Again"]
]

describe("the verdict on an answer", () => {
  it("is told for every status and both kinds", () => {
    const statuses: Array<number> = []
    for (const [from, to, push, webhook] of table)
      for (let status = from; status <= to; status++) {
        statuses.push(status)
        assert.strictEqual(tagOf("push", status), push, `push ${status}`)
        assert.strictEqual(tagOf("webhook", status), webhook, `webhook ${status}`)
      }
    assert.deepStrictEqual(
      statuses,
      Array.from({ length: 1_000 }, (_, status) => status)
    )
    for (const odd of [-1, 1_000, 1e9, Number.NaN]) assert.strictEqual(tagOf("push", odd), "Again", `${odd}`)
  })

  it("asks for fewer bytes and for a new signature once each", () => {
    const [small, signed] = [{ isSmaller: true }, { hasNewSignature: true }]
    for (const kind of ["push", "webhook"] as const) {
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
