/**
 * Valid JSON that no store, log or peer can carry: text that is not well-formed Unicode (a lone surrogate has no UTF-8;
 * ClickHouse and Postgres refuse it), NUL where Postgres would keep it, numbers that overflow to infinity. All JSON
 * from outside is checked here: a request's for the fault, that of upstreams and visitors for a mended value.
 */

import { jsonDepthMax } from "./JsonDepth.ts"

/** The first place that cannot be stored. */
export interface JsonFault {
  /** `messages[2].content`; "" for the value itself */
  readonly field: string
  readonly text: string
}

export interface FitnessOptions {
  /** text goes to Postgres, which has no NUL */
  readonly isNulRefused: boolean
}

/**
 * Whether JSON text may hold such a value. If not, the parsed value need not be searched: valid UTF-8 has no lone
 * surrogates, and JSON no raw NUL, so that only escapes, exponents and very long numbers matter.
 */
export const mayBeUnfit = (json: string): boolean =>
  (json.includes("\\u") && /\\u(?:[dD][89a-fA-F]|0000)/.test(json)) ||
  /\d(?:[eE]\+?0*[1-9]\d{2}|\d{299})/.test(json)

const illFormed = "expected well-formed Unicode, not half of a surrogate pair"
const nul = "expected text without NUL characters"
const overflow = "expected a number within the range of a double"
const tooDeep = `nested deeper than ${jsonDepthMax}`

/** The first fault in a parsed value, in the order of its members. */
export const jsonFaultOf = (value: unknown, options: FitnessOptions): JsonFault | undefined => {
  const path: Array<string | number> = []
  const text = faultIn(value, options, path)
  return text === undefined ? undefined : { field: fieldOf(path), text }
}

/** Leaves the path of the fault in `path`. */
const faultIn = (
  value: unknown,
  options: FitnessOptions,
  path: Array<string | number>
): string | undefined => {
  if (typeof value === "string") return faultOfText(value, options)
  if (typeof value === "number") return Number.isFinite(value) ? undefined : overflow
  if (typeof value !== "object" || value === null) return undefined
  if (path.length >= jsonDepthMax) return tooDeep
  const isList = Array.isArray(value)
  for (const [key, member] of isList ? value.entries() : Object.entries(value)) {
    path.push(key)
    const fault =
      (typeof key === "string" ? faultOfText(key, options) : undefined) ?? faultIn(member, options, path)
    if (fault !== undefined) return fault
    path.pop()
  }
  return undefined
}

const faultOfText = (text: string, { isNulRefused }: FitnessOptions): string | undefined => {
  if (!text.isWellFormed()) return illFormed
  return isNulRefused && text.includes("\u0000") ? nul : undefined
}

const fieldOf = (path: ReadonlyArray<string | number>): string =>
  path.reduce<string>((field, key) => {
    if (typeof key === "number") return `${field}[${key}]`
    const name = key.toWellFormed().replaceAll("\u0000", "\ufffd").slice(0, fieldLengthMax)
    return field === "" ? name : `${field}.${name}`
  }, "")

/** Characters of a member's name that a fault repeats: it is the sender's, and may be long. */
const fieldLengthMax = 100

/**
 * The value with every half of a surrogate pair replaced by U+FFFD and every overflowed number by null, for input that
 * its sender cannot correct. Changes the value itself, which has to come from `JSON.parse`; undefined where it nests
 * deeper than `jsonDepthMax`.
 */
export const mendedJson = (value: unknown): unknown => mended(value, 0)

const mended = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return value.toWellFormed()
  if (typeof value === "number") return Number.isFinite(value) ? value : null
  if (typeof value !== "object" || value === null) return value
  if (depth >= jsonDepthMax) return undefined
  return Array.isArray(value) ? mendedList(value, depth) : mendedRecord(value as Members, depth)
}

type Members = Record<string, unknown>

const mendedList = (list: Array<unknown>, depth: number): unknown => {
  for (const [index, member] of list.entries()) {
    const whole = mended(member, depth + 1)
    if (whole === undefined) return undefined
    list[index] = whole
  }
  return list
}

const mendedRecord = (record: Members, depth: number): unknown => {
  for (const name of Object.keys(record)) {
    const member = record[name]
    const whole = mended(member, depth + 1)
    if (whole === undefined) return undefined
    const wholeName = name.toWellFormed()
    if (wholeName !== name) delete record[name]
    // `JSON.parse` makes `__proto__` an own property, and it has to stay one.
    if (wholeName !== name || whole !== member) define(record, wholeName, whole)
  }
  return record
}

const define = (record: Members, name: string, value: unknown): void =>
  void Object.defineProperty(record, name, { value, configurable: true, enumerable: true, writable: true })
