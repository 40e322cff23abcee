import type { ClientFrame } from "./ClientFrame.ts"
import type { EventKind, events, ServerFrame } from "./ServerFrame.ts"
import type { Tool, ToolMethod } from "./ToolCall.ts"

/** One example of every frame, kind of event and tool, for the protocol reference; a test decodes each with its schema. */

const sessionId = "ses_4kTq8ZrVb1nWx7YcD2mPfG"
const promptId = "p-1"
const event = (seq: number) => ({ type: "event", seq, promptId }) as const

export const clientExamples: {
  readonly [T in ClientFrame["type"]]: Extract<ClientFrame, { readonly type: T }>
} = {
  hello: {
    type: "hello",
    protocol: 1,
    client: { version: "0.1.0", platform: "linux-x64", name: "signalbox-agent", journalId: "j-7Qm2" },
    workspace: { root: "/home/ada/abacus", name: "abacus" },
    model: "sandbox/coder",
    thinkingLevel: "low",
    resume: sessionId,
    lastSeq: 41,
    budgetUsd: 0.5
  },
  prompt: {
    type: "prompt",
    id: promptId,
    text: "The test of add fails. Mend it.",
    images: ["fil_0aB1cD2eF3gH4iJ5kL6mN7"]
  },
  steer: { type: "steer", id: "s-1", text: "Leave the tests as they are.", mode: "steer" },
  abort: { type: "abort", id: promptId, clearQueue: true },
  compact: { type: "compact", id: "c-1", instructions: "Keep the names of all files." },
  "tool.result": {
    type: "tool.result",
    callId: "call_2",
    ok: true,
    result: {
      diff: "--- a/src/add.mjs\n+++ b/src/add.mjs\n@@ -1,1 +1,1 @@\n-export const add = (a, b) => a - b\n+export const add = (a, b) => a + b\n",
      replacements: 1
    },
    durationMs: 3.4
  },
  "tool.stream": {
    type: "tool.stream",
    callId: "call_3",
    index: 0,
    stream: "stdout",
    data: "ok 1 - adds\n"
  },
  pong: { type: "pong", ts: 1795269600000, ack: 41 },
  bye: { type: "bye", reason: "the person left" }
}

export const serverExamples: {
  readonly [T in Exclude<ServerFrame["type"], "event">]: Extract<ServerFrame, { readonly type: T }>
} = {
  ready: {
    type: "ready",
    sessionId,
    resumed: true,
    seq: 57,
    model: { id: "sandbox/coder", name: "Sandbox: coder", context_length: 128_000 },
    thinkingLevel: "low",
    tools: ["read", "write", "edit", "ls", "find", "grep", "bash"],
    billing: { mode: "subscription", plan: "Pro", covers_direct_api: false },
    activePrompt: promptId,
    limits: {
      frameBytes: 1_048_576,
      promptBytes: 262_144,
      streamChunkBytes: 16_384,
      streamBytes: 1_048_576,
      queue: 16,
      pingMillis: 25_000,
      deadMillis: 60_000
    }
  },
  "tool.request": {
    type: "tool.request",
    seq: 9,
    callId: "call_3",
    promptId,
    method: "proc.exec",
    params: { command: "node --test", timeout: 60 },
    timeoutMs: 60_000,
    replay: "never",
    attempt: 1
  },
  "tool.cancel": { type: "tool.cancel", seq: 10, callId: "call_3", reason: "abort" },
  "prompt.done": {
    type: "prompt.done",
    seq: 58,
    id: promptId,
    status: "completed",
    usage: { promptTokens: 5_210, completionTokens: 318, totalTokens: 5_528 },
    costUsd: 0.0031,
    coveredBySubscription: true,
    turns: 4,
    toolCalls: 3,
    toolCallsDenied: 0
  },
  ping: { type: "ping", ts: 1795269600000 },
  error: {
    type: "error",
    code: "busy",
    message: "16 messages wait already",
    fatal: false,
    id: "s-17"
  },
  bye: { type: "bye", reason: "restart", resumable: true, retryAfterMs: 1_000 }
}

export const eventExamples: { readonly [K in EventKind]: (typeof events)[K]["Type"] } = {
  turn_start: { ...event(1), kind: "turn_start", turn: 1, text: "The test of add fails. Mend it." },
  text_delta: {
    ...event(3),
    kind: "text_delta",
    messageId: "msg_1",
    contentIndex: 1,
    delta: "I look at the file "
  },
  thinking_delta: {
    ...event(2),
    kind: "thinking_delta",
    messageId: "msg_1",
    contentIndex: 0,
    delta: "The sum is wrong, so"
  },
  tool_start: {
    ...event(6),
    kind: "tool_start",
    callId: "call_1",
    tool: "read",
    args: { path: "src/add.mjs" }
  },
  tool_update: {
    ...event(11),
    kind: "tool_update",
    callId: "call_3",
    stream: "stdout",
    data: "ok 1 - adds\n"
  },
  tool_end: {
    ...event(12),
    kind: "tool_end",
    callId: "call_3",
    ok: false,
    denied: true,
    durationMs: 0,
    error: { code: "denied", message: "The person said no" }
  },
  message_end: {
    ...event(4),
    kind: "message_end",
    messageId: "msg_1",
    model: "sandbox/coder",
    content: [
      { type: "thinking", text: "The sum is wrong, so the function is to be read first." },
      { type: "text", text: "I look at the file first." },
      { type: "tool_call", callId: "call_1", tool: "read", args: { path: "src/add.mjs" } }
    ],
    stopReason: "tool_calls",
    usage: { promptTokens: 1_204, completionTokens: 61, totalTokens: 1_265 },
    costUsd: 0.0007
  },
  turn_end: { ...event(8), kind: "turn_end", turn: 1 },
  queue_update: {
    ...event(13),
    kind: "queue_update",
    queue: [{ id: "s-1", text: "Leave the tests as they are.", mode: "steer" }]
  },
  steer_applied: { ...event(14), kind: "steer_applied", id: "s-1", text: "Leave the tests as they are." },
  model_fallback: { ...event(15), kind: "model_fallback", from: "sandbox/coder", to: "sandbox/echo" },
  retry: {
    ...event(16),
    kind: "retry",
    attempt: 2,
    delayMs: 1_000,
    message: "The upstream answered 503"
  },
  compaction_start: { ...event(17), kind: "compaction_start", tokens: 113_900 },
  compaction_end: {
    ...event(18),
    kind: "compaction_end",
    ok: true,
    tokens: 20_412,
    summary: "add in src/add.mjs subtracted; it was mended, and the tests pass."
  },
  budget_warning: { ...event(19), kind: "budget_warning", spentUsd: 0.41, budgetUsd: 0.5 },
  replay_gap: { ...event(42), kind: "replay_gap", from: 21, to: 41 }
}

export const toolExamples: {
  readonly [M in ToolMethod]: {
    readonly params: Extract<Tool, { readonly method: M }>["params"]["Type"]
    readonly result: Extract<Tool, { readonly method: M }>["result"]["Type"]
  }
} = {
  "fs.read": {
    params: { path: "src/add.mjs", offset: 1, limit: 100 },
    result: {
      content: "export const add = (a, b) => a - b\n",
      totalLines: 1,
      truncated: false
    }
  },
  "fs.write": {
    params: { path: "NOTES.md", content: "# Notes\n" },
    result: { bytes: 8, created: true }
  },
  "fs.edit": {
    params: { path: "src/add.mjs", edits: [{ oldText: "a - b", newText: "a + b" }] },
    result: {
      diff: "--- a/src/add.mjs\n+++ b/src/add.mjs\n@@ -1,1 +1,1 @@\n-export const add = (a, b) => a - b\n+export const add = (a, b) => a + b\n",
      replacements: 1
    }
  },
  "fs.list": {
    params: { path: ".", limit: 500 },
    result: { entries: ["src/", "test/", "package.json"], truncated: false }
  },
  "fs.glob": {
    params: { pattern: "**/*.mjs", path: ".", limit: 1_000 },
    result: { entries: ["src/add.mjs", "test/add.test.mjs"], truncated: false }
  },
  "fs.grep": {
    params: {
      pattern: "add(",
      path: ".",
      glob: "*.mjs",
      ignoreCase: false,
      literal: true,
      context: 1,
      limit: 100
    },
    result: {
      matches: [
        'test/add.test.mjs-3- test("adds", () => {',
        "test/add.test.mjs:4:   assert.equal(add(1, 2), 3)",
        "test/add.test.mjs-5- })"
      ],
      truncated: false
    }
  },
  "proc.exec": {
    params: { command: "node --test", timeout: 60 },
    result: { exitCode: 0, output: "ok 1 - adds\n1..1\n", truncated: false }
  }
}
