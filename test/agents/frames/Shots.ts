import fc from "fast-check"
import { Schema } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { ClientFrame } from "#schemas/agents/ClientFrame.ts"
import { type Definitions, valuesOf } from "#test/contract/Generated.ts"

/** A client's message, and its permitted effects. */
export interface Shot {
  readonly text: string | Uint8Array
  readonly isBinary: boolean
  /**
   * `good`: a frame as the schema wants it; `faulty`: not so, in a field that can be named; `hopeless`: no JSON object with
   * a type, or one that is nested too deep; `huge`: longer than a frame may be
   */
  readonly kind: "good" | "faulty" | "hopeless" | "huge"
  /** of a faulty frame: which field is at fault */
  readonly field: string
}

type Fields = Readonly<Record<string, unknown>>

const document = JSON.parse(JSON.stringify(Schema.toJsonSchemaDocument(ClientFrame)))
const definitions: Definitions = document.definitions ?? {}

/** Frames as a reader of the schema would write them. */
export const goodFrames: fc.Arbitrary<Fields> = valuesOf(document.schema, definitions).map((frame) =>
  Object.assign({}, frame)
)

const isFrame = Schema.is(ClientFrame)

/** JSON cannot be written with recursion at this depth, so it is put in its place when everything else is written. */
const deepMark = "here it is deep"
const levels = 10_000
const deep = "[".repeat(levels) + "]".repeat(levels)

const written = (value: unknown): string => JSON.stringify(value).replaceAll(JSON.stringify(deepMark), deep)

const oddValues = fc.constantFrom<unknown>(
  null,
  true,
  -1,
  0.5,
  1e300,
  2 ** 53,
  "",
  "\u0000",
  "\ud800",
  "x".repeat(5_000),
  "é".repeat(200_000),
  [],
  [null],
  {},
  { length: 1e9 },
  deepMark,
  [[{ a: deepMark }]],
  { isHopeless: true, toString: 1, constructor: { prototype: 1 } }
)

/** Every place in a value, as the names that lead there. */
const placesIn = (value: unknown, depth = 0): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null || depth > 3
    ? []
    : Object.entries(value).flatMap(([name, inner]) => [
        [name],
        ...placesIn(inner, depth + 1).map((place) => [name, ...place])
      ])

/** A copy with another value at a place; without one, with none. */
const changed = (value: unknown, place: ReadonlyArray<string>, to?: { readonly value: unknown }): unknown => {
  const [name, ...rest] = place
  if (name === undefined || typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).flatMap(([key, inner]): ReadonlyArray<readonly [string, unknown]> => {
    if (key !== name) return [[key, inner]]
    if (rest.length > 0) return [[key, changed(inner, rest, to)]]
    return to === undefined ? [] : [[key, to.value]]
  })
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}

const isTooLong = ({ data, text, type }: Fields): string | undefined => {
  const { promptBytes, streamChunkBytes } = agentLimits
  const isAbove = (value: unknown, most: number) =>
    typeof value === "string" && Buffer.byteLength(value) > most
  if ((type === "prompt" || type === "steer") && isAbove(text, promptBytes)) return "text"
  return type === "tool.stream" && isAbove(data, streamChunkBytes) ? "data" : undefined
}

/** A frame's verdict by the schema and the limits of the contract. */
const judged = (text: string, field: string): Shot => {
  const shot = { text, isBinary: false, field }
  if (Buffer.byteLength(text) > agentLimits.frameBytes) return { ...shot, kind: "huge" }
  if (text.includes(deep)) return { ...shot, kind: "hopeless" }
  const value: unknown = JSON.parse(text)
  if (typeof value !== "object" || value === null || Array.isArray(value) || !("type" in value))
    return { ...shot, kind: "hopeless" }
  const fields: Fields = Object.assign({}, value)
  if (typeof fields["type"] !== "string") return { ...shot, kind: "hopeless" }
  if (!isFrame(value)) return { ...shot, kind: "faulty" }
  const long = isTooLong(fields)
  return long === undefined ? { ...shot, kind: "good" } : { ...shot, kind: "faulty", field: long }
}

/** A good frame in which one place is lost, or holds something else. */
const spoiled: fc.Arbitrary<Shot> = fc
  .tuple(
    goodFrames,
    fc.nat(),
    fc.oneof(oddValues, fc.jsonValue({ maxDepth: 2 })),
    fc.integer({ min: 0, max: 5 })
  )
  .map(([frame, pick, value, way]) => {
    const places = placesIn(frame).filter(([name]) => name !== "type")
    const place = places[pick % Math.max(places.length, 1)] ?? ["type"]
    const spoilt = changed(frame, place, way === 0 ? undefined : { value })
    return judged(written(spoilt), place[0] ?? "")
  })

const noTypes = [
  "",
  "Prompt",
  "hello ",
  "event",
  "ready",
  "tool.cancel",
  "__proto__",
  "toString",
  "\ud800",
  "x".repeat(9_000)
]

/** A frame of a kind that only the server sends, or of none. */
const unknown: fc.Arbitrary<Shot> = fc
  .tuple(goodFrames, fc.constantFrom(...noTypes))
  .map(([frame, type]) => judged(written({ ...frame, type }), "type"))

const hopelessTexts: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "{",
    "null",
    "[]",
    "7",
    '"hello"',
    "{}",
    '{"type":7}',
    '{"type":null}',
    "\u0000",
    "\ufeff{}"
  ),
  fc.constantFrom(deep, `{"type":${deep}}`),
  fc
    .jsonValue({ maxDepth: 1 })
    .filter((value) => typeof value !== "object")
    .map((value) => JSON.stringify(value)),
  goodFrames.map((frame) => JSON.stringify(frame).slice(0, -1))
)

const hopeless: fc.Arbitrary<Shot> = hopelessTexts.map((text) => ({
  text,
  isBinary: false,
  kind: "hopeless",
  field: ""
}))

const huge: fc.Arbitrary<Shot> = fc
  .tuple(fc.constantFrom("pong", "prompt", "tool.result"), fc.constantFrom(1, 4_096, 900_000))
  .map(([type, more]) => {
    const rest = "x".repeat(agentLimits.frameBytes + more - `{"type":"${type}","x":""}`.length)
    return { text: `{"type":"${type}","x":"${rest}"}`, isBinary: false, kind: "huge", field: "" }
  })

/** A good frame in bytes that are no text, or as a binary message. */
const bytes: fc.Arbitrary<Shot> = fc.tuple(goodFrames, fc.boolean()).map(([frame, isBinary]) => {
  const text = Buffer.from(written(frame))
  const broken = Buffer.concat([text.subarray(0, 2), Buffer.from([0xff, 0xc3, 0x28]), text.subarray(2)])
  return { text: isBinary ? text : broken, isBinary, kind: "hopeless", field: "" }
})

const good: fc.Arbitrary<Shot> = goodFrames.map((frame) => judged(written(frame), ""))

export const shots: fc.Arbitrary<Shot> = fc.oneof(
  { weight: 10, arbitrary: spoiled },
  { weight: 4, arbitrary: good },
  { weight: 1, arbitrary: unknown },
  { weight: 1, arbitrary: hopeless },
  { weight: 1, arbitrary: bytes },
  { weight: 1, arbitrary: huge }
)
