import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { post, readBody } from "#streams/mcp/Messages.ts"

/** A body to be read in a thread. */
export interface McpBodyAsk {
  readonly bytes: Uint8Array<ArrayBuffer>
}

const isAsk = (ask: unknown): ask is McpBodyAsk => isJsonRecord(ask) && ask["bytes"] instanceof Uint8Array

export const job: JobModule = (ask) => {
  if (!isAsk(ask)) throw new Error("this thread reads bodies")
  const body = readBody(ask.bytes)
  if (body === undefined) throw new Error("within its own bounds a body is read or refused")
  // A thread that waits for work collects no garbage: the bytes would stay for minutes.
  ask.bytes.buffer.transfer(0)
  return { answer: post(body) }
}
