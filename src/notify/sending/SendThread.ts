import { Result } from "effect"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import { bodyJob } from "#src/infra/mcp/McpBodyThread.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { readPlainSend, readSendCall, type ReadSend } from "#streams/notify/SendCall.ts"
import { readSendJson, type SendJson } from "#streams/notify/SendFields.ts"
import { bodyBounds, type BodyReaders } from "#streams/mcp/Messages.ts"

/** A body of 1 MiB may have half a million values. */
const bounds = { ...bodyBounds, members: 300_000, values: 700_000 }

/** Readers of calls, for both threads and the event loop. */
export const callReaders: BodyReaders = {
  bounds,
  tools: { send_notification: (args) => Result.succeed(readSendCall(args)) },
  plain: readPlainSend
}

const readCalls = bodyJob(callReaders)

const isSendJson = (ask: unknown): ask is SendJson =>
  isJsonRecord(ask) && ask["bytes"] instanceof Uint8Array && "around" in ask

/** Reads long sends, by REST and by calls of tools. */
export const job: JobModule = (ask) => {
  if (!isSendJson(ask)) return readCalls(ask)
  const answer = Result.match(readSendJson(ask), {
    onSuccess: (fields): ReadSend => ({ fields, files: [] }),
    onFailure: (fault): ReadSend => ({ fault })
  })
  return { answer }
}
