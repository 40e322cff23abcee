import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { post, readBody } from "#streams/mcp/Messages.ts"

/** A body to be read in a thread. */
export interface McpBodyAsk {
  readonly bytes: Uint8Array<ArrayBuffer>
}

const isAsk = (ask: unknown): ask is McpBodyAsk => isJsonRecord(ask) && ask["bytes"] instanceof Uint8Array

export const job: JobModule = (ask) => {
  const body = isAsk(ask) ? readBody(ask.bytes) : undefined
  if (body === undefined) throw new Error("this thread reads bodies")
  return { answer: post(body) }
}
