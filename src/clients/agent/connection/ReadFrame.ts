import { Schema } from "effect"
import { ServerFrame } from "#schemas/agents/ServerFrame.ts"

const decodeFrame = Schema.decodeUnknownOption(ServerFrame)
const Sequenced = Schema.Struct({ seq: Schema.Int })
const Request = Schema.Struct({ type: Schema.Literal("tool.request"), callId: Schema.String })
const Bye = Schema.Struct({
  type: Schema.Literal("bye"),
  resumable: Schema.Boolean,
  retryAfterMs: Schema.optionalKey(Schema.Int)
})
const decodeSequenced = Schema.decodeUnknownOption(Sequenced)
const decodeRequest = Schema.decodeUnknownOption(Request)
const decodeBye = Schema.decodeUnknownOption(Bye)

export type Read =
  | { readonly kind: "known"; readonly frame: ServerFrame; readonly seq: number | undefined }
  /** a request of which only the call's id is understood: it has to be answered, for the server waits */
  | { readonly kind: "strange_call"; readonly callId: string; readonly seq: number | undefined }
  /** of a newer server: its number counts, its content does not */
  | { readonly kind: "strange"; readonly seq: number | undefined }
  | { readonly kind: "broken" }

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads one frame of the server. A `bye` whose reason is not known counts as one that says `restart` or `ended`. */
export const readFrame = (text: string): Read => {
  const value = parse(text)
  if (typeof value !== "object" || value === null) return { kind: "broken" }
  const sequenced = decodeSequenced(value)
  const seq = sequenced._tag === "Some" ? sequenced.value.seq : undefined
  const known = decodeFrame(value)
  if (known._tag === "Some") return { kind: "known", frame: known.value, seq }
  const request = decodeRequest(value)
  if (request._tag === "Some") return { kind: "strange_call", callId: request.value.callId, seq }
  const bye = decodeBye(value)
  if (bye._tag === "Some") {
    const reason = bye.value.resumable ? "restart" : "ended"
    return { kind: "known", frame: { ...bye.value, reason }, seq: undefined }
  }
  return { kind: "strange", seq }
}
