/**
 * An exact decimal number, `units / 10^scale`. Prices have up to 23 digits after the point and are never floats.
 * Source: contract/llm#money.
 */
export interface Decimal {
  readonly units: bigint
  /** digits after the point, 0 or more */
  readonly scale: number
}

export const zero: Decimal = { units: 0n, scale: 0 }

/** Digits after the point that are read; longer ones come from no real list. */
const scaleMax = 100

const notation = /^([+-]?)(\d{0,100})(?:\.(\d{0,100}))?(?:[eE]([+-]?\d{1,3}))?$/

/** From text in plain or exponent notation; undefined where it is no number, or has over 100 digits. */
export const parse = (text: string): Decimal | undefined => {
  const [, sign, whole = "", fraction = "", exponent = "0"] = notation.exec(text) ?? []
  if (sign === undefined || whole + fraction === "") return undefined
  const scale = fraction.length - Number(exponent)
  if (Math.abs(scale) > scaleMax) return undefined
  const digits = BigInt(whole + fraction) * (sign === "-" ? -1n : 1n)
  return reduce(scale >= 0 ? { units: digits, scale } : { units: digits * 10n ** BigInt(-scale), scale: 0 })
}

/** The shortest decimal that reads back as this double: the writer's own text, up to 15 digits. */
export const fromNumber = (value: number): Decimal | undefined =>
  Number.isFinite(value) ? parse(String(value)) : undefined

/** Without trailing zeros behind the point. */
const reduce = (value: Decimal): Decimal => {
  let { units, scale } = value
  while (scale > 0 && units % 10n === 0n) {
    units /= 10n
    scale--
  }
  return { units, scale }
}

/** No exponent, no trailing zeros: "0.00000025". */
export const format = ({ units, scale }: Decimal): string => {
  const reduced = reduce({ units, scale })
  if (reduced.scale === 0) return String(reduced.units)
  const digits = String(reduced.units < 0n ? -reduced.units : reduced.units).padStart(reduced.scale + 1, "0")
  const point = digits.length - reduced.scale
  return `${reduced.units < 0n ? "-" : ""}${digits.slice(0, point)}.${digits.slice(point)}`
}

export const add = (a: Decimal, b: Decimal): Decimal => {
  const scale = Math.max(a.scale, b.scale)
  return { units: scaled(a, scale) + scaled(b, scale), scale }
}

export const multiply = (a: Decimal, b: Decimal): Decimal => ({
  units: a.units * b.units,
  scale: a.scale + b.scale
})

/** Below 0, 0 or above 0, as `a` is below, at or above `b`. */
export const compare = (a: Decimal, b: Decimal): number => {
  const scale = Math.max(a.scale, b.scale)
  const difference = scaled(a, scale) - scaled(b, scale)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** Powers of ten of prices: raising one anew takes longer than the rest. */
const powersOfTen: ReadonlyArray<bigint> = Array.from(
  { length: 64 },
  (_, exponent) => 10n ** BigInt(exponent)
)

const powerOfTen = (exponent: number): bigint => powersOfTen[exponent] ?? 10n ** BigInt(exponent)

const scaled = ({ units, scale }: Decimal, to: number): bigint =>
  to === scale ? units : units * powerOfTen(to - scale)

/** The integer number of `10^-digits`, halves rounded away from zero: USD to pico-USD with 12 digits. */
export const rounded = ({ units, scale }: Decimal, digits: number): bigint => {
  if (scale <= digits) return units * powerOfTen(digits - scale)
  const divisor = powerOfTen(scale - digits)
  const half = units < 0n ? -divisor / 2n : divisor / 2n
  return (units + half) / divisor
}
