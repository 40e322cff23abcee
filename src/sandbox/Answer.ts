import { describeImage } from "./ImageFacts.ts"
import { BadRequest, type ChatMessage, type ChatRequest, type Tool } from "./ChatRequest.ts"
import type { SandboxModel } from "./SandboxModel.ts"
import { exampleOf } from "./SchemaExample.ts"

/** A model's answer: the same for the same request, independent of earlier ones. */
export interface Answer {
  /** every piece is one token */
  readonly reasoning: ReadonlyArray<string>
  readonly content: ReadonlyArray<string>
  readonly calls: ReadonlyArray<ToolCall>
  readonly finishReason: "stop" | "length" | "tool_calls"
  /** before every piece; absent: the pace of the model */
  readonly pieceMillis?: number | undefined
  /** a stream breaks off after so many pieces, a plain answer fails */
  readonly breaksAfter?: number | undefined
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON; every piece is one token */
  readonly argumentPieces: ReadonlyArray<string>
}

/** A word with the blanks before it, at most 16 characters of it: a token here. */
const piece = /\s*\S{1,16}|\s+/gu

export const piecesOf = (text: string): ReadonlyArray<string> => text.match(piece) ?? []

/** A few characters each, and never all in one. */
export const argumentPiecesOf = (json: string): ReadonlyArray<string> => {
  const characters = Math.max(1, Math.min(12, Math.ceil(json.length / 2)))
  return json.match(new RegExp(`.{1,${characters}}`, "gsu")) ?? []
}

/** Words that every tokenizer has as one token each, so that other ways to count agree. */
const filler = "the quick brown fox went over to see the lazy dog and then ran back home again".split(" ")

const wordsMax = 100_000

/** A text of so many words. */
export const written = (count: number): string =>
  Array.from({ length: Math.min(count, wordsMax) }, (_, index) => filler[index % filler.length]).join(" ")

const quotedMax = 2_000

const seen = (message: ChatMessage): string => {
  const descriptions = message.images.map((url) => {
    const description = describeImage(url)
    if (description === undefined) throw new BadRequest("The image is no PNG, JPEG, GIF or WebP")
    return description
  })
  return `I see ${descriptions.join(" and ")}. `
}

/** The answer to a tool's result names it. */
const reportOf = (messages: ReadonlyArray<ChatMessage>, result: ChatMessage): string => {
  const call = messages.flatMap(({ calls }) => calls).find(({ id }) => id === result.answers)
  return `The tool ${call?.name ?? result.answers} answered: ${result.text.slice(0, quotedMax)}`
}

const textOf = ({ json, messages, play }: ChatRequest, model: SandboxModel, last: ChatMessage): string => {
  const asked = last.text.trim().slice(0, quotedMax)
  if (json !== undefined) return JSON.stringify(jsonOf(json.schema, asked))
  const count = play.words ?? Number(/\b(\d{1,6}) words\b/i.exec(asked)?.[1] ?? 0)
  if (count > 0) return written(count)
  if (last.role === "tool") return reportOf(messages, last)
  const images = messages.findLast(({ images }) => images.length > 0)
  const sight = images === undefined ? "" : seen(images)
  return `${sight}You said: "${asked}". This is ${model.id}, a program that stands in for a language model.`
}

const jsonOf = (schema: unknown, asked: string): unknown =>
  schema === undefined ? { answer: asked, sandbox: true } : exampleOf(schema, asked.split(/\s+/)[0] ?? "word")

const thoughtOf = (last: ChatMessage): string => {
  const words = last.text.split(/\s+/).filter((word) => word !== "").length
  return `The last message has ${words} words and ${last.images.length} images. I am a sandbox, so I repeat it.`
}

/** Up to the first of the stop texts. */
export const stoppedAt = (text: string, stop: ReadonlyArray<string>): string =>
  text.slice(0, Math.min(...stop.map((end) => text.indexOf(end)).filter((at) => at >= 0), text.length))

const toolOf = (model: SandboxModel, request: ChatRequest, last: ChatMessage): Tool | undefined => {
  if (!model.callsTools || !request.mayCallTools || last.role === "tool") return undefined
  return request.tools.find(({ name }) => request.toolName === "" || name === request.toolName)
}

export const piecesIn = ({ calls, content, reasoning }: Answer): number =>
  calls.reduce((sum, { argumentPieces }) => sum + argumentPieces.length, reasoning.length + content.length)

/** An answer of more pieces ends in the middle of its text, or of a call's arguments. */
export const cutAfter = (answer: Answer, pieces: number): Answer => {
  if (piecesIn(answer) <= pieces) return answer
  let left = pieces
  const taken = (all: ReadonlyArray<string>): ReadonlyArray<string> => {
    const some = all.slice(0, left)
    left -= some.length
    return some
  }
  const reasoning = taken(answer.reasoning)
  const content = taken(answer.content)
  const calls = answer.calls
    .map((call) => ({ ...call, argumentPieces: taken(call.argumentPieces) }))
    .filter(({ argumentPieces }) => argumentPieces.length > 0)
  return { ...answer, reasoning, content, calls, finishReason: "length" }
}

/** The most pieces of an answer. */
export const mostOf = (model: SandboxModel, request: ChatRequest): number =>
  Math.min(request.maxTokens, model.maxCompletionTokens)

/** Words before a model breaks off. */
const wordsBeforeBreak = 5

/** The answer of a working model; `digest` is a hash of the request. Throws `BadRequest`. */
export const answerOf = (model: SandboxModel, request: ChatRequest, digest: string): Answer => {
  const last = request.messages.at(-1)
  if (last === undefined) throw new BadRequest("messages must not be empty")
  const isThinking = model.behaviour === "think" && request.wantsReasoning
  const reasoning = isThinking ? piecesOf(thoughtOf(last)) : []
  const tool = toolOf(model, request, last)
  const most = mostOf(model, request)
  if (tool !== undefined) {
    const value = exampleOf(tool.parameters ?? {}, last.text.trim().split(/\s+/).at(-1) ?? "")
    const argumentPieces = argumentPiecesOf(JSON.stringify(value))
    const call = { id: `call_${digest.slice(0, 24)}`, name: tool.name, argumentPieces }
    return cutAfter({ reasoning, content: [], calls: [call], finishReason: "tool_calls" }, most)
  }
  if (model.behaviour === "empty") return { reasoning: [], content: [], calls: [], finishReason: "stop" }
  const content = piecesOf(stoppedAt(textOf(request, model, last), request.stop))
  const answer: Answer = { reasoning, content, calls: [], finishReason: "stop" }
  return cutAfter(model.behaviour === "break" ? { ...answer, breaksAfter: wordsBeforeBreak } : answer, most)
}
