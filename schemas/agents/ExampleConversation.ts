import type { ClientFrame } from "./ClientFrame.ts"
import { clientExamples, serverExamples } from "./FrameExamples.ts"
import type { ServerFrame } from "./ServerFrame.ts"

/** A session's frames in order; `note` explains the events between them. */
export type Exchange =
  | { readonly from: "client"; readonly frame: ClientFrame }
  | { readonly from: "server"; readonly frame: ServerFrame }
  | { readonly from: "nobody"; readonly note: string }

const sessionId = "ses_4kTq8ZrVb1nWx7YcD2mPfG"
const promptId = "p-1"
const client = (frame: ClientFrame): Exchange => ({ from: "client", frame })
const server = (frame: ServerFrame): Exchange => ({ from: "server", frame })
const note = (text: string): Exchange => ({ from: "nobody", note: text })
const event = (seq: number) => ({ type: "event", seq, promptId }) as const

const hello = {
  type: "hello",
  protocol: 1,
  client: clientExamples.hello.client,
  workspace: clientExamples.hello.workspace
} as const

const { limits, model, tools } = serverExamples.ready
const ready = {
  type: "ready",
  sessionId,
  model,
  thinkingLevel: "off",
  tools,
  billing: { mode: "credits", plan: null, covers_direct_api: false },
  limits
} as const

const edit = { path: "src/add.mjs", edits: [{ oldText: "a - b", newText: "a + b" }] }
const editRequest = {
  type: "tool.request",
  callId: "call_1",
  promptId,
  method: "fs.edit",
  params: edit,
  timeoutMs: 120_000,
  replay: "never"
} as const

/** A prompt whose only call is made while the connection is lost: it is made once, and all sides learn its outcome. */
export const exampleConversation: ReadonlyArray<Exchange> = [
  note("A new session, and a prompt."),
  client(hello),
  server({ ...ready, resumed: false, seq: 0 }),
  client({ type: "prompt", id: promptId, text: "add subtracts. Mend it." }),
  server({ ...event(1), kind: "turn_start", turn: 1, text: "add subtracts. Mend it." }),
  server({ ...event(2), kind: "text_delta", messageId: "msg_1", contentIndex: 0, delta: "I mend " }),
  server({ ...event(3), kind: "text_delta", messageId: "msg_1", contentIndex: 0, delta: "it." }),
  server({
    ...event(4),
    kind: "message_end",
    messageId: "msg_1",
    model: "sandbox/coder",
    content: [
      { type: "text", text: "I mend it." },
      { type: "tool_call", callId: "call_1", tool: "edit", args: edit }
    ],
    stopReason: "tool_calls",
    usage: { promptTokens: 912, completionTokens: 44, totalTokens: 956 },
    costUsd: 0.00041
  }),
  server({ ...event(5), kind: "tool_start", callId: "call_1", tool: "edit", args: edit }),
  server({ ...editRequest, seq: 6, attempt: 1 }),
  note(
    "The client notes the call in its journal, changes the file, and notes the outcome. Then the connection is lost before the result is out. The client comes again, with the last number that it has worked off."
  ),
  client({ ...hello, resume: sessionId, lastSeq: 6 }),
  server({ ...ready, resumed: true, seq: 6, activePrompt: promptId }),
  note("The call has no outcome as far as the server knows. It asks again, with the next attempt."),
  server({ ...editRequest, seq: 7, attempt: 2 }),
  note(
    "The journal says that the call was made. The client does not make it again: it sends what came of it."
  ),
  client({
    type: "tool.result",
    callId: "call_1",
    ok: true,
    result: {
      diff: "--- a/src/add.mjs\n+++ b/src/add.mjs\n@@ -1,1 +1,1 @@\n-export const add = (a, b) => a - b\n+export const add = (a, b) => a + b\n",
      replacements: 1
    },
    durationMs: 2.8
  }),
  server({ ...event(8), kind: "tool_end", callId: "call_1", ok: true, denied: false, durationMs: 2.8 }),
  server({ ...event(9), kind: "turn_end", turn: 1 }),
  server({ ...event(10), kind: "turn_start", turn: 2 }),
  server({ ...event(11), kind: "text_delta", messageId: "msg_2", contentIndex: 0, delta: "Done." }),
  server({
    ...event(12),
    kind: "message_end",
    messageId: "msg_2",
    model: "sandbox/coder",
    content: [{ type: "text", text: "Done." }],
    stopReason: "stop",
    usage: { promptTokens: 1_010, completionTokens: 6, totalTokens: 1_016 },
    costUsd: 0.00039
  }),
  server({ ...event(13), kind: "turn_end", turn: 2 }),
  server({
    type: "prompt.done",
    seq: 14,
    id: promptId,
    status: "completed",
    usage: { promptTokens: 1_922, completionTokens: 50, totalTokens: 1_972 },
    costUsd: 0.0008,
    coveredBySubscription: false,
    turns: 2,
    toolCalls: 1,
    toolCallsDenied: 0
  }),
  note("A sign of life every 25 seconds, and the end."),
  server({ type: "ping", ts: 1795269600000 }),
  client({ type: "pong", ts: 1795269600000, ack: 14 }),
  client({ type: "bye" }),
  server({ type: "bye", reason: "client_bye", resumable: true })
]
