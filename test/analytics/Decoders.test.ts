import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { HttpApiError } from "effect/http-api"
import * as fc from "fast-check"
import { BrowserEvent } from "#schemas/analytics/BrowserEvent.ts"
import { CollectEvent } from "#schemas/analytics/CollectEvent.ts"
import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { keptProps } from "#streams/analytics/KeptProps.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { fieldFault } from "#schemas/core/FieldFault.ts"

/** The schema's result for an input: every key with null for an absent one, or the text of its first fault. */
const bySchema = <S extends Schema.Codec<object, unknown>>(schema: S, keys: ReadonlyArray<string>) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (input: unknown): unknown => {
    const result = decode(input)
    if (Result.isSuccess(result)) {
      const decoded = new Map(Object.entries(result.success))
      return Object.fromEntries(keys.map((key) => [key, decoded.get(key) ?? null]))
    }
    const { field, text } = fieldFault(
      new HttpApiError.HttpApiSchemaError({ kind: "Payload", cause: result.failure })
    )
    return `${field}: ${text}`.slice(0, 300)
  }
}

const byHand =
  (decode: (input: unknown) => object | FieldFault) =>
  (input: unknown): unknown => {
    const decoded = decode(input)
    return decoded instanceof FieldFault ? decoded.message : decoded
  }

const browserBySchema = bySchema(BrowserEvent, ["s", "k", "u", "n", "r", "tz", "pv", "e", "p"])
const browserByHand = byHand(decodeBrowserEvent)
const collectKeys = "url name ip userAgent referrer country visitor props timestamp id".split(" ")
const collectBySchema = bySchema(CollectEvent, collectKeys)
const collectByHand = byHand(decodeCollectEvent)

const sized = (max: number) =>
  fc.constantFrom(0, 1, 2, max - 1, max, max + 1).map((length) => "x".repeat(Math.max(0, length)))

const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    Infinity,
    -Infinity,
    86_400_000,
    86_400_001,
    "",
    "pageview",
    "engage",
    "DE",
    "de1"
  ),
  fc.double(),
  fc.string({ unit: "binary" })
)
const propKey = fc.oneof(fc.constantFrom("__proto__", "constructor", "toString", ""), sized(64), fc.string())
const props = fc
  .array(fc.tuple(propKey, fc.oneof(scalar, sized(256), fc.constant({}), fc.constant([]))), { maxLength: 33 })
  .map((entries) =>
    JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v ?? null)}`)}}`)
  )
const goodProps = fc.dictionary(
  fc.string({ minLength: 1, maxLength: 64 }),
  fc.oneof(fc.string(), fc.integer(), fc.boolean()),
  {
    maxKeys: 32
  }
)
const anything = fc.oneof(scalar, fc.jsonValue(), props)

/** Mostly good fields, so that faults far down the order of keys are reached too. */
const mostly = (good: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 12, arbitrary: good }, { weight: 1, arbitrary: anything })

const browserInput = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record(
      {
        s: mostly(fc.oneof(fc.constant("st_0000000000000000000001"), sized(64))),
        k: mostly(fc.constantFrom("pageview", "event", "engage")),
        u: mostly(fc.oneof(fc.webUrl(), sized(4096))),
        n: mostly(fc.oneof(fc.constant("signup"), sized(120))),
        r: mostly(sized(10_000)),
        tz: mostly(sized(64)),
        pv: mostly(sized(64)),
        e: mostly(fc.nat({ max: 86_400_001 })),
        p: mostly(fc.oneof(goodProps, props)),
        other: anything
      },
      { requiredKeys: [] }
    )
  },
  { weight: 1, arbitrary: anything }
)

const collectInput = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record(
      {
        url: mostly(fc.oneof(fc.webUrl(), sized(4096))),
        name: mostly(sized(120)),
        ip: mostly(fc.oneof(fc.ipV4(), fc.ipV6(), sized(45))),
        userAgent: mostly(sized(1024)),
        referrer: mostly(sized(4096)),
        country: mostly(fc.constantFrom("DE", "de", "D", "DEU", "D1", "ÄÖ")),
        visitor: mostly(sized(128)),
        props: mostly(fc.oneof(goodProps, props)),
        timestamp: mostly(
          fc.oneof(
            fc.integer(),
            fc.constantFrom<unknown>("2026-11-21T08:30:00Z", Infinity, -Infinity, Number.NaN),
            sized(40)
          )
        ),
        id: mostly(sized(64)),
        other: anything
      },
      { requiredKeys: [] }
    )
  },
  { weight: 1, arbitrary: anything }
)

describe("the hand-tuned decoders", () => {
  it("read browser events as their schema does, faults included", () => {
    fc.assert(
      fc.property(browserInput, (input) =>
        assert.deepStrictEqual(browserByHand(input), browserBySchema(input))
      ),
      { numRuns: 2000 }
    )
  })

  it("read collected events as their schema does, faults included", () => {
    fc.assert(
      fc.property(collectInput, (input) =>
        assert.deepStrictEqual(collectByHand(input), collectBySchema(input))
      ),
      { numRuns: 2000 }
    )
  })
})

const page = { s: "st_1", k: "pageview", u: "https://example.org/" }

describe("a browser event", () => {
  const cases: ReadonlyArray<readonly [string, unknown, string]> = [
    ["s missing", { ...page, s: undefined }, "s: is required"],
    ["s a number", { ...page, s: 7 }, "s: expected text of 1 to 64 characters"],
    ["s of 65", { ...page, s: "x".repeat(65) }, "s: expected text of 1 to 64 characters"],
    ["k unknown", { ...page, k: "click" }, "k: expected pageview, event or engage"],
    ["u of 4097", { ...page, u: "x".repeat(4097) }, "u: expected text of 1 to 4096 characters"],
    ["n of 121", { ...page, n: "x".repeat(121) }, "n: expected text of 1 to 120 characters"],
    ["r a list", { ...page, r: [] }, "r: expected text"],
    ["tz of 65", { ...page, tz: "x".repeat(65) }, "tz: expected text of at most 64 characters"],
    ["pv of 65", { ...page, pv: "x".repeat(65) }, "pv: expected text of at most 64 characters"],
    ["e below 0", { ...page, e: -1 }, "e: expected a whole number of milliseconds from 0 to 86400000"],
    ["e as text", { ...page, e: "5" }, "e: expected a whole number of milliseconds from 0 to 86400000"],
    ["a list", [page], "body: expected a JSON object"],
    ["null", null, "body: expected a JSON object"]
  ]
  it.each(cases)("is refused with the field's name: %s", (_, input, fault) => {
    assert.strictEqual(browserByHand(JSON.parse(JSON.stringify(input))), fault)
  })

  it("takes every field at its limit", () => {
    const p = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [`${i}`.padEnd(64, "k"), "v".repeat(256)])
    )
    const text = (length: number) => "x".repeat(length)
    const event = {
      s: text(64),
      k: "event",
      u: text(4096),
      n: text(120),
      r: text(50_000),
      tz: text(64),
      pv: text(64),
      e: 86_400_000,
      p
    }
    assert.deepStrictEqual(browserByHand(event), event)
  })

  it("pollutes no prototype and keeps such keys as plain text", () => {
    const input = JSON.parse(
      `{"s":"st_1","k":"event","__proto__":{"u":"polluted"},"p":{"__proto__":"x","constructor":1}}`
    )
    const decoded = decodeBrowserEvent(input)
    assert.isFalse(decoded instanceof FieldFault)
    assert.isNull(decoded instanceof FieldFault ? "" : decoded.u)
    const { keys, values } = keptProps(decoded instanceof FieldFault ? null : decoded.p)
    assert.deepStrictEqual(
      [keys, values],
      [
        ["__proto__", "constructor"],
        ["x", "1"]
      ]
    )
    assert.notProperty({}, "u")
  })
})
