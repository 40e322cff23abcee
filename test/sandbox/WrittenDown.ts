import { textBefore } from "#streams/agents/ChatContext.ts"
import type { Step, StepBody } from "#streams/agents/Step.ts"
import type { Message } from "./CoderTalk.ts"

const usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 }

const bodyOf = ({ content, role, tool_call_id: callId = "", tool_calls: calls = [] }: Message): StepBody => {
  const text = content ?? ""
  if (role === "user") return { kind: "prompt", id: "", text, images: [] }
  if (role === "tool") return { kind: "result", callId, ok: true, result: text, denied: false, durationMs: 1 }
  return {
    kind: "message",
    messageId: "",
    model: "sandbox/coder",
    content: [
      { type: "text", text },
      ...calls.map(({ function: called, id }) => {
        return { type: "tool_call", callId: id, tool: called.name, args: called.arguments } as const
      })
    ],
    stopReason: "stop",
    usage,
    cost: "0",
    covered: false
  }
}

/** A conversation as the server's agents write it down for its summary. */
export const writtenDown = (messages: ReadonlyArray<Message>): string => {
  const steps = messages.map((message, index): Step => ({
    index,
    seq: 0,
    promptId: "",
    at: 0,
    body: bodyOf(message)
  }))
  return textBefore(steps, Infinity)
}
