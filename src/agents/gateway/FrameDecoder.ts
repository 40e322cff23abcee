import { Result, Schema } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import {
  Abort,
  ClientBye,
  type ClientFrame,
  Compact,
  Hello,
  Pong,
  Prompt,
  Steer,
  ToolResult,
  ToolStream
} from "#schemas/agents/ClientFrame.ts"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { type JsonFault, jsonFaultOf, mayBeUnfit, mendedJson } from "#schemas/core/JsonFitness.ts"
import { fieldFault } from "#schemas/core/FieldFault.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** A fault of a frame, in words that name the field. */
interface FrameFault {
  readonly message: string
  /** id of the prompt or steer that was meant, if the frame has it */
  readonly id?: string
  readonly callId?: string
  /** it was no JSON object with a type: the next frame cannot be trusted either */
  readonly isHopeless: boolean
}

const decoders = {
  hello: Schema.decodeUnknownResult(Hello),
  prompt: Schema.decodeUnknownResult(Prompt),
  steer: Schema.decodeUnknownResult(Steer),
  abort: Schema.decodeUnknownResult(Abort),
  compact: Schema.decodeUnknownResult(Compact),
  "tool.result": Schema.decodeUnknownResult(ToolResult),
  "tool.stream": Schema.decodeUnknownResult(ToolStream),
  pong: Schema.decodeUnknownResult(Pong),
  bye: Schema.decodeUnknownResult(ClientBye)
} as const

/**
 * The part of a frame that cannot be passed on to a model. Output of commands and content of files is mended in place:
 * clients cut it where it is too long, through surrogate pairs as well, and neither user nor model can correct it.
 */
const fitted = (type: string, json: JsonRecord): JsonFault | undefined => {
  if (type === "tool.result" || type === "tool.stream") mendedJson(json)
  return jsonFaultOf(json, { isNulRefused: false })
}

const isKnown = (type: string): type is keyof typeof decoders => Object.hasOwn(decoders, type)

const hopeless = (message: string): FrameFault => ({ message, isHopeless: true })

/** Reads one frame of a client. */
export const decodeFrame = (text: string): ClientFrame | FrameFault => {
  const json = parsed(text)
  if (depthOf(Buffer.from(text)) > jsonDepthMax)
    return hopeless(`A frame is nested at most ${jsonDepthMax} deep`)
  if (!isJsonRecord(json)) return hopeless("A frame is a JSON object")
  const { type } = json
  if (typeof type !== "string") return hopeless("type: a frame says what it is")
  const meant = meantBy(json)
  if (!isKnown(type))
    return { ...meant, message: `type: there is no frame ${type.slice(0, 50)}`, isHopeless: false }
  const unfit = mayBeUnfit(text) ? fitted(type, json) : undefined
  if (unfit !== undefined) return { ...meant, message: `${unfit.field}: ${unfit.text}`, isHopeless: false }
  const frame: Result.Result<ClientFrame, Schema.SchemaError> = decoders[type](json)
  if (Result.isFailure(frame)) {
    const { field, text: problem } = fieldFault({ cause: frame.failure })
    return { ...meant, message: `${field}: ${problem}`, isHopeless: false }
  }
  const problem = tooLong(frame.success)
  return problem === undefined ? frame.success : { ...meant, message: problem, isHopeless: false }
}

export const isFault = (frame: ClientFrame | FrameFault): frame is FrameFault => "isHopeless" in frame

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // The caller that wanted an object reports it.
    return undefined
  }
}

const meantBy = ({ callId, id }: Readonly<Record<string, unknown>>): Pick<FrameFault, "id" | "callId"> => ({
  ...(typeof id === "string" && id.length <= 128 ? { id } : {}),
  ...(typeof callId === "string" && callId.length <= 128 ? { callId } : {})
})

/** The limits in bytes. A short text is not encoded: each of its UTF-16 units has at most 3 bytes. */
const tooLong = (frame: ClientFrame): string | undefined => {
  const { promptBytes, streamChunkBytes } = agentLimits
  if ((frame.type === "prompt" || frame.type === "steer") && isAbove(frame.text, promptBytes))
    return `text: at most ${promptBytes} bytes`
  if (frame.type === "compact" && isAbove(frame.instructions ?? "", promptBytes))
    return `instructions: at most ${promptBytes} bytes`
  if (frame.type === "tool.stream" && isAbove(frame.data, streamChunkBytes))
    return `data: at most ${streamChunkBytes} bytes`
  return undefined
}

const isAbove = (text: string, bytes: number): boolean =>
  text.length * 3 > bytes && Buffer.byteLength(text) > bytes
