import type { ContentPart } from "#schemas/agents/ServerFrame.ts"
import type { AnswerStream } from "#src/llm/calls/CallParts.ts"
import { chunkOf, parseRecord } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord, type JsonRecord } from "#streams/llm/JsonRecord.ts"
import { dataOf, SseFrames } from "#streams/llm/SseFrames.ts"

type OnDelta = (kind: "text_delta" | "thinking_delta", contentIndex: number, delta: string) => void

interface HalfCall {
  name: string
  args: string
}

/** One event is at most an upstream's answer long. */
const eventBytesMax = 32 * 1024 * 1024

/** The streamed answer of the router, read where it is made: what the model says, in the parts of a message. */
export class SpokenAnswer implements AnswerStream {
  isOpen = false
  /** what the router says when the stream breaks off */
  problem: string | undefined
  finishReason: string | undefined
  isCutByCredits = false
  readonly #onDelta: OnDelta
  readonly #frames: SseFrames
  readonly #parts: Array<{ type: "text" | "thinking"; text: string }> = []
  /** by the index that the model gives them, in the order in which they came */
  readonly #calls = new Map<number, HalfCall>()

  constructor(onDelta: OnDelta) {
    this.#onDelta = onDelta
    this.#frames = new SseFrames(eventBytesMax, (frame) => this.#read(frame))
  }

  /** The session holds what its client has not taken: the model need not wait. */
  write(piece: string | Uint8Array): boolean {
    this.isOpen = true
    this.#frames.push(typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece))
    return true
  }

  end(piece: string): void {
    this.write(piece)
  }

  dispose(): void {
    this.isOpen = false
  }

  /** @param withCalls false where the answer was broken off: what a call was to be is not known then */
  content(callId: (index: number) => string, withCalls: boolean): ReadonlyArray<ContentPart> {
    const calls = withCalls ? [...this.#calls.values()] : []
    return [
      ...this.#parts.filter(({ text }) => text !== ""),
      ...calls.map(({ args, name }, index): ContentPart => {
        return { type: "tool_call", callId: callId(index), tool: name, args: argsOf(args) }
      })
    ]
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  #read(frame: Buffer): void {
    const data = dataOf(frame)
    const json = data === undefined ? undefined : parseRecord(data)
    if (json === undefined) return
    const router = json["router"]
    if (isJsonRecord(router)) this.isCutByCredits = router["truncated"] === "credits"
    const { error, finishReason } = chunkOf(json)
    if (error !== undefined) this.problem = error.message
    this.finishReason = finishReason ?? this.finishReason
    const choices = json["choices"]
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    const delta = isJsonRecord(choice) ? choice["delta"] : undefined
    if (isJsonRecord(delta)) this.#take(delta)
  }

  #take(delta: JsonRecord): void {
    const thought = delta["reasoning"] ?? delta["reasoning_content"]
    if (typeof thought === "string" && thought !== "") this.#say("thinking", thought)
    const { content } = delta
    if (typeof content === "string" && content !== "") this.#say("text", content)
    const calls = delta["tool_calls"]
    if (Array.isArray(calls)) for (const call of calls.filter(isJsonRecord)) this.#call(call)
  }

  #say(type: "text" | "thinking", text: string): void {
    const last = this.#parts.at(-1)
    if (last?.type === type) last.text += text
    else this.#parts.push({ type, text })
    this.#onDelta(type === "text" ? "text_delta" : "thinking_delta", this.#parts.length - 1, text)
  }

  #call(call: JsonRecord): void {
    const { index } = call
    const at = typeof index === "number" ? index : this.#calls.size
    const half = this.#calls.get(at) ?? { name: "", args: "" }
    this.#calls.set(at, half)
    const told = call["function"]
    if (!isJsonRecord(told)) return
    if (typeof told["name"] === "string") half.name += told["name"]
    if (typeof told["arguments"] === "string") half.args += told["arguments"]
  }
}

/** What a model writes for no arguments is nothing; what is no JSON stays text, and is refused as such. */
const argsOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  return parseRecord(text) ?? text
}
