import type { Answer, ToolCall } from "./Answer.ts"
import type { SandboxModel } from "./SandboxModel.ts"
import type { Usage } from "./Tokens.ts"

/** The shapes of OpenRouter's API. Source: OpenRouter's API reference (overview, streaming, errors). */

/** Epoch seconds of every answer: fixed, so that the same request has the same answer. */
const created = 1_767_225_600

/** The names of an answer: its id from a hash of the request. */
export interface Named {
  readonly id: string
  readonly model: string
}

/** JSON text of `usage`; the cost is written in plain digits. */
const usageJson = (usage: Usage, behaviour: SandboxModel["behaviour"]): string => {
  const total = usage.promptTokens + usage.completionTokens
  const cost = behaviour === "no-cost" ? "" : `"cost":${usage.cost},"is_byok":false,`
  return (
    `{"prompt_tokens":${usage.promptTokens},"completion_tokens":${usage.completionTokens},"total_tokens":${total},${cost}` +
    `"prompt_tokens_details":{"cached_tokens":${usage.cachedTokens},"audio_tokens":0},` +
    `"completion_tokens_details":{"reasoning_tokens":${usage.reasoningTokens}}}`
  )
}

const reasoningOf = (text: string) => ({
  reasoning: text,
  reasoning_details: [{ type: "reasoning.text", text, format: null, index: 0 }]
})

const toolCallOf = ({ id, name }: ToolCall, index: number, argumentsText: string) => ({
  index,
  id,
  type: "function",
  function: { name, arguments: argumentsText }
})

/** The whole answer of a plain call. */
export const completionJson = (
  { id, model }: Named,
  answer: Answer,
  usage: Usage,
  behaviour: SandboxModel["behaviour"]
): string => {
  const calls = answer.calls.map((call, index) => toolCallOf(call, index, call.argumentPieces.join("")))
  const message = {
    role: "assistant",
    content: calls.length > 0 && answer.content.length === 0 ? null : answer.content.join(""),
    refusal: null,
    ...(answer.reasoning.length > 0 ? reasoningOf(answer.reasoning.join("")) : {}),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
  const finish = answer.finishReason
  const choice = { index: 0, logprobs: null, finish_reason: finish, native_finish_reason: finish, message }
  const head = { id, provider: "Sandbox", model, object: "chat.completion", created, choices: [choice] }
  const withoutEnd = JSON.stringify(head).slice(0, -1)
  return behaviour === "no-usage" ? `${withoutEnd}}` : `${withoutEnd},"usage":${usageJson(usage, behaviour)}}`
}

/** Every `delta` of a streamed answer, JSON text; each is one token. */
export const deltasOf = ({ calls, content, reasoning }: Answer): ReadonlyArray<string> => {
  const role = '"role":"assistant"'
  const deltas = reasoning.map(
    (text) => `{${role},"content":"",${JSON.stringify(reasoningOf(text)).slice(1)}`
  )
  for (const text of content) deltas.push(`{${role},"content":${JSON.stringify(text)}}`)
  for (const [index, call] of calls.entries()) {
    const [first = "", ...rest] = call.argumentPieces
    deltas.push(`{${role},"content":null,"tool_calls":[${JSON.stringify(toolCallOf(call, index, first))}]}`)
    for (const piece of rest) {
      const text = JSON.stringify(piece)
      deltas.push(`{"tool_calls":[{"index":${index},"type":"function","function":{"arguments":${text}}}]}`)
    }
  }
  return deltas
}

/** The frames of one stream. */
export class Frames {
  private readonly head: string

  constructor({ id, model }: Named) {
    const head = { id, provider: "Sandbox", model, object: "chat.completion.chunk", created }
    this.head = `data: ${JSON.stringify(head).slice(0, -1)},`
  }

  /** `stamp`: adds the time of sending */
  delta(delta: string, stamp: boolean): string {
    const sentAt = stamp ? `"sent_at":${performance.timeOrigin + performance.now()},` : ""
    return (
      `${this.head}${sentAt}"choices":[{"index":0,"delta":${delta},"finish_reason":null,` +
      `"native_finish_reason":null,"logprobs":null}]}\n\n`
    )
  }

  finish(reason: string): string {
    return (
      `${this.head}"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"${reason}",` +
      `"native_finish_reason":"${reason}","logprobs":null}]}\n\n`
    )
  }

  /** Always the last frame before `[DONE]`, with any `stream_options`. */
  usage(usage: Usage, behaviour: SandboxModel["behaviour"]): string {
    return behaviour === "no-usage"
      ? ""
      : `${this.head}"choices":[],"usage":${usageJson(usage, behaviour)}}\n\n`
  }

  /** Ends a stream that has begun. */
  error(code: number, message: string): string {
    const error = JSON.stringify({ code, message, metadata: { error_type: "provider_unavailable" } })
    return (
      `${this.head}"error":${error},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error",` +
      `"native_finish_reason":"error","logprobs":null}]}\n\n`
    )
  }
}

export const done = "data: [DONE]\n\n"

/** An answer with an error status. */
export interface Refusal {
  readonly status: number
  readonly message: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly retryAfterSeconds?: number
}

export const refusalJson = ({ message, metadata, status }: Refusal): string =>
  JSON.stringify({ error: { code: status, message, ...(metadata === undefined ? {} : { metadata }) } })
