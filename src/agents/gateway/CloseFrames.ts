import {
  type AgentErrorCode,
  closeCodes,
  type ErrorFrame,
  type ServerBye
} from "#schemas/agents/ServerFrame.ts"
import { byeFrame } from "#streams/agents/ByeFrame.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"

type More = Partial<Pick<ErrorFrame, "id" | "callId" | "retryAfterMs">>

/** Tells a client that one of its frames had no effect. */
export const complain = (sink: FrameSink, code: AgentErrorCode, message: string, more: More = {}): void => {
  sink.send(JSON.stringify({ type: "error", code, message, fatal: false, ...more }))
}

/** Tells a client the reason, and closes its socket. */
export const refuse = (
  sink: FrameSink,
  code: AgentErrorCode,
  message: string,
  closeCode: number = closeCodes.protocol,
  more: More = {}
): void => {
  sink.send(JSON.stringify({ type: "error", code, message, fatal: true, ...more }))
  sink.close(closeCode, code)
}

/** Closes the socket of a client that has done nothing wrong. */
export const dismiss = (
  sink: FrameSink,
  reason: ServerBye["reason"],
  closeCode: number,
  retryAfterMs?: number
): void => {
  sink.send(byeFrame(reason, retryAfterMs))
  sink.close(closeCode, reason)
}
