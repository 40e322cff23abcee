import { Result, Schema } from "effect"
import { ServerFrame } from "#schemas/agents/ServerFrame.ts"

const decodeFrame = Schema.decodeUnknownResult(ServerFrame)
const Sequenced = Schema.Struct({ seq: Schema.Int })
const Request = Schema.Struct({ type: Schema.Literal("tool.request"), callId: Schema.String })
const Bye = Schema.Struct({
  type: Schema.Literal("bye"),
  resumable: Schema.Boolean,
  retryAfterMs: Schema.optionalKey(Schema.Int)
})
const Failure = Schema.Struct({
  type: Schema.Literal("error"),
  message: Schema.String,
  fatal: Schema.Boolean,
  id: Schema.optionalKey(Schema.String),
  callId: Schema.optionalKey(Schema.String),
  retryAfterMs: Schema.optionalKey(Schema.Int)
})
const decodeFailure = Schema.decodeUnknownOption(Failure)
const decodeSequenced = Schema.decodeUnknownOption(Sequenced)
const decodeRequest = Schema.decodeUnknownOption(Request)
const decodeBye = Schema.decodeUnknownOption(Bye)

export type Read =
  | { readonly kind: "known"; readonly frame: ServerFrame; readonly seq: number | undefined }
  /** a request of which only the call's id is understood: it has to be answered, for the server waits */
  | { readonly kind: "strange_call"; readonly callId: string; readonly seq: number | undefined }
  /** of a newer server: its number counts, its content does not */
  | Strange
  | { readonly kind: "broken" }

interface Strange {
  readonly kind: "strange"
  readonly seq: number | undefined
  /** its type, and the kind of an event; "" where it has none. Untrusted: print it safely */
  readonly type: string
  /** the missing or wrong part of it; "" for an unknown type */
  readonly why: string
}

const nameCharacters = 40
const whyCharacters = 200
const knownTypes: ReadonlySet<unknown> = new Set(
  "ready event tool.request tool.cancel prompt.done ping error bye".split(" ")
)

const named = (value: object, field: "type" | "kind"): string => {
  const name: unknown = Reflect.get(value, field)
  return typeof name === "string" ? name.slice(0, nameCharacters) : ""
}

/** Names the field where the schema has one; which types there are is no news where the type is another. */
const whyOf = (value: object, message: string): string =>
  knownTypes.has(named(value, "type")) && message.length < 2 * whyCharacters
    ? message.replaceAll(/\s+/g, " ").slice(0, whyCharacters)
    : ""

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Reads one frame of the server. A `bye` whose reason is not known counts as one that says `restart` or `ended`, an error
 * whose code is not known as `internal`: their other fields say enough.
 */
export const readFrame = (text: string): Read => {
  const value = parse(text)
  if (typeof value !== "object" || value === null) return { kind: "broken" }
  const sequenced = decodeSequenced(value)
  const seq = sequenced._tag === "Some" ? sequenced.value.seq : undefined
  const known = decodeFrame(value)
  if (Result.isSuccess(known)) return { kind: "known", frame: known.success, seq }
  const request = decodeRequest(value)
  if (request._tag === "Some") return { kind: "strange_call", callId: request.value.callId, seq }
  const bye = decodeBye(value)
  if (bye._tag === "Some") {
    const reason = bye.value.resumable ? "restart" : "ended"
    return { kind: "known", frame: { ...bye.value, reason }, seq: undefined }
  }
  const failure = decodeFailure(value)
  if (failure._tag === "Some") {
    return { kind: "known", frame: { ...failure.value, code: "internal" }, seq: undefined }
  }
  const type = [named(value, "type"), named(value, "kind")].filter((name) => name !== "").join(" ")
  return { kind: "strange", seq, type, why: whyOf(value, known.failure.message) }
}
