import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { parseRecord } from "./ChatChunk.ts"
import { dataOf } from "./SseFrames.ts"

type Delta = Record<string, unknown>

/** A chunk, and the bytes of its event on both sides of its content. */
interface Learned {
  readonly before: Buffer
  readonly after: Buffer
  readonly chunk: JsonRecord
  readonly delta: Delta
}

/** An upstream whose chunks differ in more than their content is not learned from for ever. */
const vainLessons = 8

/**
 * Reads the chunks of one stream. Most differ from the one before in their content alone: where all other bytes of an
 * event are the same, and its content needs no unescaping, the earlier chunk is given again with this content.
 */
export class RepeatedChunk {
  #learned: Learned | undefined
  #vain = 0

  /** The JSON of an event's data, as `parseRecord` reads it; valid until the next call. */
  read(frame: Buffer): JsonRecord | undefined {
    return this.#repeated(frame) ?? this.#parsed(frame)
  }

  #repeated(frame: Buffer): JsonRecord | undefined {
    const learned = this.#learned
    if (learned === undefined) return undefined
    const { after, before, chunk, delta } = learned
    const end = frame.length - after.length
    if (end < before.length || before.compare(frame, 0, before.length) !== 0) return undefined
    if (after.compare(frame, end) !== 0) return undefined
    const content = frame.toString("utf8", before.length, end)
    if (!isPlain(content)) return undefined
    this.#vain = 0
    delta["content"] = content
    return chunk
  }

  #parsed(frame: Buffer): JsonRecord | undefined {
    const chunk = chunkIn(frame)
    if (chunk !== undefined && this.#vain < vainLessons) {
      this.#vain++
      this.#learned = learnedFrom(frame, chunk) ?? this.#learned
    }
    return chunk
  }
}

/** Characters that stand for themselves in a JSON string (RFC 8259, 7). */
const isPlain = (text: string): boolean => !/["\\\p{Cc}]/u.test(text)

const contentName = Buffer.from('"content":"')

/** Bytes of an event that is kept to compare with others. */
const learnedBytesMax = 8_192

/** Its content is taken to be the first text of that name, if with another text there the chunk has that for its content. */
const learnedFrom = (frame: Buffer, chunk: JsonRecord): Learned | undefined => {
  const content = deltaOf(chunk)?.["content"]
  const start = frame.indexOf(contentName) + contentName.length
  const end = frame.indexOf('"', start)
  if (typeof content !== "string" || start < contentName.length || end < 0) return undefined
  if (frame.length > learnedBytesMax) return undefined
  const [before, after] = [Buffer.from(frame.subarray(0, start)), Buffer.from(frame.subarray(end))]
  const other = `${content}.`
  const learned = chunkIn(Buffer.concat([before, Buffer.from(JSON.stringify(other).slice(1, -1)), after]))
  const delta = learned === undefined ? undefined : deltaOf(learned)
  if (learned === undefined || delta?.["content"] !== other) return undefined
  return { before, after, chunk: learned, delta }
}

const chunkIn = (frame: Buffer): JsonRecord | undefined => {
  const data = dataOf(frame)
  return data === undefined ? undefined : parseRecord(data)
}

const deltaOf = ({ choices }: JsonRecord): Delta | undefined => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  if (!isJsonRecord(choice)) return undefined
  const { delta } = choice
  return isJsonRecord(delta) ? delta : undefined
}
