import type { ContentPart } from "#schemas/agents/ServerFrame.ts"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

type OnDelta = (kind: "text_delta" | "thinking_delta", contentIndex: number, delta: string) => void

interface HalfCall {
  name: string
  args: string
}

/** A model's answer, put together from its chunks into the parts of a message. */
export class SpokenAnswer {
  finishReason: string | undefined
  readonly #onDelta: OnDelta
  /** pieces are joined at the end: a text that grows by each makes an object for each */
  readonly #parts: Array<{ readonly type: "text" | "thinking"; readonly pieces: Array<string> }> = []
  /** by the index that the model gives them, in the order in which they came */
  readonly #calls = new Map<number, HalfCall>()

  constructor(onDelta: OnDelta) {
    this.#onDelta = onDelta
  }

  /** @param withCalls false if the answer was broken off: its calls may be incomplete */
  content(callId: (index: number) => string, withCalls: boolean): ReadonlyArray<ContentPart> {
    const calls = withCalls ? [...this.#calls.values()] : []
    return [
      ...this.#parts.map(({ pieces, type }) => ({ type, text: pieces.join("") })),
      ...calls.map(({ args, name }, index): ContentPart => {
        return { type: "tool_call", callId: callId(index), tool: name, args: argsOf(args) }
      })
    ]
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  take(chunk: JsonRecord): void {
    const { choices } = chunk
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isJsonRecord(choice)) return
    const { delta, finish_reason: finishReason } = choice
    if (typeof finishReason === "string") this.finishReason = finishReason
    if (isJsonRecord(delta)) this.#takeDelta(delta)
  }

  #takeDelta(delta: JsonRecord): void {
    const thought = delta["reasoning"] ?? delta["reasoning_content"]
    if (typeof thought === "string" && thought !== "") this.#say("thinking", thought)
    const { content, tool_calls: calls } = delta
    if (typeof content === "string" && content !== "") this.#say("text", content)
    if (Array.isArray(calls)) for (const call of calls.filter(isJsonRecord)) this.#call(call)
  }

  #say(type: "text" | "thinking", text: string): void {
    const last = this.#parts.at(-1)
    if (last?.type === type) last.pieces.push(text)
    else this.#parts.push({ type, pieces: [text] })
    this.#onDelta(type === "text" ? "text_delta" : "thinking_delta", this.#parts.length - 1, text)
  }

  #call(call: JsonRecord): void {
    const { function: told, index } = call
    const at = typeof index === "number" ? index : this.#calls.size
    const half = this.#calls.get(at) ?? { name: "", args: "" }
    this.#calls.set(at, half)
    if (!isJsonRecord(told)) return
    if (typeof told["name"] === "string") half.name += told["name"]
    if (typeof told["arguments"] === "string") half.args += told["arguments"]
  }
}

/** Empty text stands for no arguments; text that is no JSON stays text, and is refused as such. */
const argsOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  try {
    const args: unknown = JSON.parse(text)
    return isJsonRecord(args) && depthOf(Buffer.from(text)) <= jsonDepthMax ? args : text
  } catch {
    // The model reads the fault when the call is checked.
    return text
  }
}
