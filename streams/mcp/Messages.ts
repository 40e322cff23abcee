import { type JsonBounds, jsonExcess } from "#schemas/core/JsonBounds.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { codes, memberOf, type RequestId, RpcFault } from "./Protocol.ts"

/** A body as JSON, or why it is none that is served. */
export type Body =
  | { readonly _tag: "Json"; readonly json: unknown }
  | { readonly _tag: "Refused"; readonly fault: RpcFault }

/** A body of one process's thread to another, where classes are lost. */
export type PostedBody =
  | { readonly _tag: "Json"; readonly json: unknown }
  | { readonly _tag: "Refused"; readonly code: number; readonly message: string }

/** A list of a hundred thousand values, or an object of as many members, is no call of a tool. */
export const bodyBounds: JsonBounds = { members: 100_000, values: 300_000 }

const badRequest = 400

const notUtf8 = new RpcFault(codes.parseError, "Parse error: the body is not UTF-8", badRequest)
const notJson = new RpcFault(codes.parseError, "Parse error: the body is not JSON", badRequest)

const decoder = new TextDecoder("utf-8", { fatal: true })

/**
 * Reads a body; undefined where it has more values than `bounds`, so that another thread, or none, has to read it. One
 * that has more than `bodyBounds`, or nests too deeply, is refused.
 */
export const readBody = (bytes: Uint8Array, bounds: JsonBounds = bodyBounds): Body | undefined => {
  const excess = jsonExcess(bytes, bounds)
  if (excess !== undefined)
    return bounds === bodyBounds || excess.startsWith("nested") ? refused(excessive(excess)) : undefined
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return refused(notUtf8)
  }
  try {
    return { _tag: "Json", json: JSON.parse(text) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return refused(notJson)
  }
}

const refused = (fault: RpcFault): Body => ({ _tag: "Refused", fault })
const excessive = (text: string): RpcFault =>
  new RpcFault(codes.invalidRequest, `Invalid request: ${text}`, badRequest)

export const post = (body: Body): PostedBody =>
  body._tag === "Json" ? body : { _tag: "Refused", code: body.fault.code, message: body.fault.message }

export const received = (body: PostedBody): Body =>
  body._tag === "Json" ? body : refused(new RpcFault(body.code, body.message, badRequest))

/** A message of a client. */
export type Message =
  | {
      readonly _tag: "Request"
      readonly id: RequestId
      readonly method: string
      /** undefined: absent */
      readonly params: JsonRecord | RpcFault | undefined
    }
  /** a notification, or a response to a request that no server of this kind makes */
  | { readonly _tag: "Unanswered" }
  | { readonly _tag: "Invalid"; readonly fault: RpcFault; readonly id: RequestId | null }

/** An id is repeated in the answer; a longer one is no id. */
const idCharacters = 1_000

const isId = (id: unknown): id is RequestId =>
  typeof id === "string"
    ? id.length <= idCharacters
    : typeof id === "number" && Math.abs(id) <= Number.MAX_SAFE_INTEGER

const invalid = (text: string, id: unknown = null): Message => ({
  _tag: "Invalid",
  id: isId(id) ? id : null,
  fault: new RpcFault(codes.invalidRequest, `Invalid request: ${text}`, badRequest)
})

const unanswered: Message = { _tag: "Unanswered" }

/** Reads one message. `params: null` counts as absent. */
export const messageOf = (json: unknown): Message => {
  if (!isJsonRecord(json)) return invalid("expected an object")
  const method = memberOf(json, "method")
  const id = memberOf(json, "id")
  if (memberOf(json, "jsonrpc") !== "2.0") return invalid('jsonrpc: expected "2.0"', id)
  if (typeof method !== "string") {
    const isResponse = method === undefined && (Object.hasOwn(json, "result") || Object.hasOwn(json, "error"))
    return isResponse ? unanswered : invalid("method: expected text", id)
  }
  if (!Object.hasOwn(json, "id")) return unanswered
  if (!isId(id))
    return invalid(`id: expected text of at most ${idCharacters} characters or a number of at most 2^53 - 1`)
  return { _tag: "Request", id, method, params: paramsOf(memberOf(json, "params")) }
}

const paramsOf = (params: unknown): JsonRecord | RpcFault | undefined => {
  if (params === undefined || params === null) return undefined
  return isJsonRecord(params) ? params : invalidParams("params: expected an object")
}

/** Of a method's parameters, which are wrong as such. */
export const invalidParams = (text: string): RpcFault =>
  new RpcFault(codes.invalidParams, `Invalid params: ${text}`, 200)
