import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { type BodyReaders, post, readBody } from "#streams/mcp/Messages.ts"

/** A body to be read. */
interface McpBodyAsk {
  readonly bytes: Uint8Array<ArrayBuffer>
}

const isAsk = (ask: unknown): ask is McpBodyAsk => isJsonRecord(ask) && ask["bytes"] instanceof Uint8Array

/** The buffers in what readers made, which are moved. */
const buffersIn = (value: unknown): ReadonlyArray<ArrayBuffer> => {
  if (value instanceof Uint8Array) return value.buffer instanceof ArrayBuffer ? [value.buffer] : []
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(buffersIn) : []
}

/** The job of a thread that reads bodies with an endpoint's readers. */
export const bodyJob =
  (readers: BodyReaders): JobModule =>
  (ask) => {
    if (!isAsk(ask)) throw new Error("this thread reads bodies")
    const body = readBody(ask.bytes, readers)
    if (body === undefined) throw new Error("within its own bounds a body is read or refused")
    // A thread that waits for work collects no garbage: the bytes would stay for minutes.
    ask.bytes.buffer.transfer(0)
    const answer = post(body)
    const read = answer._tag === "Json" ? answer.calls : answer._tag === "Plain" ? answer.read : undefined
    return { answer, transfer: buffersIn(read) }
  }

export const job = bodyJob({})
