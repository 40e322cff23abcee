import { crc32 } from "node:zlib"
import { Schema } from "effect"
import { ToolError } from "#schemas/agents/ToolCall.ts"

/** The answer to the server about a call, but for its id. */
export const StoredOutcome = Schema.Struct({
  ok: Schema.Boolean,
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(ToolError),
  denied: Schema.optionalKey(Schema.Boolean),
  durationMs: Schema.Finite
})
export type StoredOutcome = typeof StoredOutcome.Type

const callId = Schema.String
export const JournalEntry = Schema.Union([
  /** first of each file */
  Schema.Struct({ kind: Schema.Literal("session"), url: Schema.String, root: Schema.String }),
  /** durable before the first side effect: from here on the outcome is unknown */
  Schema.Struct({ kind: Schema.Literal("started"), callId, promptId: Schema.String }),
  /** the user is asked, and nothing was done so far: the call may begin anew */
  Schema.Struct({ kind: Schema.Literal("asked"), callId }),
  Schema.Struct({ kind: Schema.Literal("finished"), callId, outcome: StoredOutcome }),
  /** the server said with the frame `seq` that it has the outcome */
  Schema.Struct({ kind: Schema.Literal("closed"), callId, seq: Schema.Int }),
  /** frames up to here were worked off */
  Schema.Struct({ kind: Schema.Literal("seen"), seq: Schema.Int }),
  /** lines of the file were lost: a call that it does not know may have begun */
  Schema.Struct({ kind: Schema.Literal("damaged") })
])
export type JournalEntry = typeof JournalEntry.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(JournalEntry))
const checksum = (json: string): string => crc32(json).toString(16).padStart(8, "0")

/** One line: CRC-32 of the JSON as 8 hexadecimal digits, a space, the JSON, a line feed. */
export const lineOf = (entry: JournalEntry): string => {
  const json = JSON.stringify(entry)
  return `${checksum(json)} ${json}\n`
}

const entryOf = (line: string): JournalEntry | undefined => {
  const json = line.slice(9)
  if (line[8] !== " " || line.slice(0, 8) !== checksum(json)) return undefined
  const entry = decode(json)
  return entry._tag === "Some" ? entry.value : undefined
}

interface JournalText {
  readonly entries: ReadonlyArray<JournalEntry>
  /** the last line is not whole: it was being written, and nothing relied on it */
  readonly torn: boolean
  /** a line that is not the last one cannot be read */
  readonly damaged: boolean
}

export const readJournalText = (text: string): JournalText => {
  const lines = text.split("\n")
  // The text behind the last line feed: empty if the last line was written whole.
  const rest = lines.pop() ?? ""
  const read = lines.map(entryOf)
  const lastGood = read.findLastIndex((entry) => entry !== undefined)
  return {
    entries: read.filter((entry) => entry !== undefined),
    torn: rest !== "" || lastGood < read.length - 1,
    damaged: read.slice(0, lastGood + 1).includes(undefined)
  }
}
