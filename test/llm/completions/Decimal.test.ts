import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { picoOf, picoOfNumber, usdOf } from "#schemas/llm/Money.ts"

const decimals = fc.record({
  units: fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
  scale: fc.integer({ min: 0, max: 30 })
})

/** Both as integers of the smaller unit of the two. */
const aligned = (a: Decimal.Decimal, b: Decimal.Decimal): readonly [bigint, bigint] => [
  a.units * 10n ** BigInt(b.scale),
  b.units * 10n ** BigInt(a.scale)
]

const decimal = (text: string): Decimal.Decimal => Decimal.parse(text) ?? assert.fail(`${text} is no decimal`)

describe("a decimal", () => {
  it("reads back from its text as what it was", () => {
    fc.assert(
      fc.property(decimals, (value) => {
        const text = Decimal.format(value)
        assert.match(text, /^(0|-?(0\.\d*[1-9]|[1-9]\d*(\.\d*[1-9])?))$/)
        const [a, b] = aligned(value, decimal(text))
        assert.strictEqual(a, b)
      })
    )
  })

  it("is read from plain text and with an exponent", () => {
    const texts: ReadonlyArray<readonly [string, string]> = [
      ["0.00000025", "0.00000025"],
      ["2.5e-7", "0.00000025"],
      ["1E3", "1000"],
      ["+1.50", "1.5"],
      ["-0", "0"],
      [".5", "0.5"],
      ["5.", "5"],
      ["000.100", "0.1"]
    ]
    for (const [text, shown] of texts) assert.strictEqual(Decimal.format(decimal(text)), shown)
    for (const text of ["", ".", "-", "1,5", "0x10", "1e", "NaN", "Infinity", " 1", "1e999", "1".repeat(101)])
      assert.isUndefined(Decimal.parse(text), text)
  })

  it("is what a double was written as, and nothing for what is no number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }), (value) => {
        const read = Decimal.fromNumber(value)
        if (read === undefined) assert.isBelow(Math.abs(value), 1e-80)
        else assert.strictEqual(Number(Decimal.format(read)), value === 0 ? 0 : value)
      })
    )
    for (const value of [NaN, Infinity, -Infinity]) assert.isUndefined(Decimal.fromNumber(value))
  })

  it("adds, multiplies and compares exactly", () => {
    fc.assert(
      fc.property(decimals, decimals, (a, b) => {
        const [x, y] = aligned(a, b)
        const scale = a.scale + b.scale
        assert.strictEqual(Math.sign(Decimal.compare(a, b)), x < y ? -1 : x > y ? 1 : 0)
        assert.strictEqual(Decimal.compare(Decimal.add(a, b), { units: x + y, scale }), 0)
        assert.strictEqual(Decimal.compare(Decimal.multiply(a, b), { units: a.units * b.units, scale }), 0)
      })
    )
  })

  it("is rounded to the nearest, a half away from zero", () => {
    const rounded = (text: string) => Decimal.rounded(decimal(text), 1)
    for (const [text, tenths] of [
      ["0.05", 1n],
      ["-0.05", -1n],
      ["0.0499999", 0n],
      ["-0.0499999", 0n],
      ["0.15", 2n],
      ["1", 10n],
      ["-1.25", -13n]
    ] as const)
      assert.strictEqual(rounded(text), tenths, text)
    fc.assert(
      fc.property(decimals, fc.nat(20), (value, digits) => {
        const result = Decimal.rounded(value, digits)
        const off = result * 10n ** BigInt(value.scale) - value.units * 10n ** BigInt(digits)
        assert.isTrue(2n * (off < 0n ? -off : off) <= 10n ** BigInt(value.scale))
      })
    )
  })
})

describe("an amount of money", () => {
  it("survives being shown as a number, up to 15 digits", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 15n) + 1n, max: 10n ** 15n - 1n }), (pico) => {
        assert.strictEqual(picoOfNumber(usdOf(pico)), pico)
      })
    )
  })

  it("is shown as the number that its text reads as", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.nat(18), (large, digits) => {
        const pico = large / 10n ** BigInt(digits)
        assert.strictEqual(usdOf(pico), Number(Decimal.format({ units: pico, scale: 12 })))
      }),
      { numRuns: 10_000 }
    )
  })

  it("is a whole number of pico-dollars, the nearest one", () => {
    assert.strictEqual(picoOf(decimal("0.0000000000005")), 1n)
    assert.strictEqual(picoOf(decimal("0.00000000000049")), 0n)
    assert.strictEqual(picoOfNumber(0.1), 100_000_000_000n)
    assert.isUndefined(picoOfNumber(NaN))
  })
})
