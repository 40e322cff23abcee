import { randomUUID } from "node:crypto"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { type ChatRequest, type ParsedChatRequest, readChatRequest } from "./ChatRequest.ts"
import { type EmbeddingsRequest, readEmbeddingsRequest } from "./EmbeddingsRequest.ts"
import { readJson } from "./JsonRequest.ts"
import type { PreparedParts } from "./PreparedBody.ts"
import { promptText } from "./PromptText.ts"
import { RequestFault } from "./JsonRequest.ts"
import { streamOptions, withDescription } from "./UpstreamBody.ts"

/** A body to be read in a thread. */
export interface ReadAsk {
  readonly kind: "chat" | "embeddings"
  readonly bytes: Uint8Array<ArrayBuffer>
  /** characters of text that are worth counting */
  readonly countedCharacters: number
}

/** A request as it comes back from a thread: its figures, and its body in pieces. */
export type ReadAnswer =
  | { readonly _tag: "Fault"; readonly fault: Pick<RequestFault, "code" | "param" | "problem"> }
  | { readonly _tag: "Chat"; readonly figures: Omit<ChatRequest, "source">; readonly parts: PreparedParts }
  | {
      readonly _tag: "Embeddings"
      readonly figures: Omit<EmbeddingsRequest, "outgoing" | "text">
      readonly body: Uint8Array<ArrayBuffer>
      readonly text: string | undefined
    }

type Made = { readonly answer: ReadAnswer; readonly transfer?: ReadonlyArray<ArrayBuffer> }

const encoder = new TextEncoder()

const refused = ({ code, param, problem }: RequestFault): Made => ({
  answer: { _tag: "Fault", fault: { code, param, problem } }
})

const read = ({ bytes, countedCharacters, kind }: ReadAsk): Made => {
  const json = readJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (json instanceof RequestFault) return refused(json)
  return kind === "chat" ? chat(json, countedCharacters) : embeddings(json, countedCharacters)
}

const chat = (json: unknown, countedCharacters: number): Made => {
  const request = readChatRequest(json)
  if (request instanceof RequestFault) return refused(request)
  const { body, source: _, ...figures } = request
  const text = request.textLength > countedCharacters ? undefined : encoder.encode(promptText(body))
  const parts: PreparedParts = { ...partsOf(request), text }
  const buffers = [
    parts.rest,
    parts.messages,
    ...(parts.described ?? []),
    ...(text === undefined ? [] : [text])
  ]
  return { answer: { _tag: "Chat", figures, parts }, transfer: buffers.map(({ buffer }) => buffer) }
}

const partsOf = (request: ParsedChatRequest): Omit<PreparedParts, "text"> => {
  const {
    max_completion_tokens: maxCompletionTokens,
    max_tokens: maxTokens,
    messages,
    model: _model,
    models: _models,
    preset: _preset,
    stream_options: options,
    ...rest
  } = request.body
  return {
    rest: encoder.encode(JSON.stringify(rest).slice(1, -1)),
    tokenLimits: JSON.parse(
      JSON.stringify({ max_completion_tokens: maxCompletionTokens, max_tokens: maxTokens })
    ) as JsonRecord,
    streamOptions: request.stream ? JSON.stringify(streamOptions(options)) : undefined,
    messages: encoder.encode(JSON.stringify(messages)),
    described: request.imageCount === 0 ? undefined : describedParts(request)
  }
}

const describedParts = (request: ParsedChatRequest): PreparedParts["described"] => {
  const mark = randomUUID()
  const [before = "", after = ""] = JSON.stringify(withDescription(request, mark)).split(JSON.stringify(mark))
  return [encoder.encode(before), encoder.encode(after)]
}

const embeddings = (json: unknown, countedCharacters: number): Made => {
  const request = readEmbeddingsRequest(json)
  if (request instanceof RequestFault) return refused(request)
  const { body, outgoing: _, text, ...figures } = request
  const bytes = encoder.encode(JSON.stringify(body))
  return {
    answer: {
      _tag: "Embeddings",
      figures,
      body: bytes,
      text: request.textLength > countedCharacters ? undefined : text
    },
    transfer: [bytes.buffer]
  }
}

const isReadAsk = (ask: unknown): ask is ReadAsk => isJsonRecord(ask) && ask["bytes"] instanceof Uint8Array

export const job: JobModule = (ask) => {
  if (!isReadAsk(ask)) throw new Error("this thread reads bodies")
  return read(ask)
}
