import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { type JsonBounds, jsonExcess } from "#schemas/core/JsonBounds.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { codes, memberOf, type RequestId, RpcFault } from "./Protocol.ts"

/** A body as JSON, or why it is none that is served. */
export type Body =
  | { readonly _tag: "Json"; readonly json: unknown }
  /** an object without `jsonrpc`, as `BodyReaders.plain` read it */
  | { readonly _tag: "Plain"; readonly read: unknown }
  | { readonly _tag: "Refused"; readonly fault: RpcFault }

/** A body of one process's thread to another, where classes are lost. */
export type PostedBody =
  | { readonly _tag: "Json"; readonly json: unknown; readonly calls: ReadonlyArray<PostedCall> }
  | { readonly _tag: "Plain"; readonly read: unknown }
  | { readonly _tag: "Refused"; readonly code: number; readonly message: string }

interface PostedCall {
  /** its place in a batch */
  readonly index: number
  readonly read: { readonly input: unknown } | { readonly fault: FieldFault }
}

/**
 * Readers of what an endpoint's bodies mean. They run where a body is parsed, a large one in a thread, so that no more leaves
 * it than a call needs. The results are data, without classes.
 */
export interface BodyReaders {
  /** absent: `bodyBounds` */
  readonly bounds?: JsonBounds
  /** of arguments, by the name of their tool, whose declaration has the same `read` */
  readonly tools?: Readonly<Record<string, (args: JsonRecord) => Result.Result<unknown, FieldFault>>>
  /** of a body without `jsonrpc` */
  readonly plain?: (json: JsonRecord) => unknown
}

/** In the place of a call's arguments: what its reader made of them. */
export class ReadArguments {
  readonly result: Result.Result<unknown, FieldFault>
  constructor(result: Result.Result<unknown, FieldFault>) {
    this.result = result
  }
}

/**
 * A list of a hundred thousand values, or an object of as many members, is no call of a tool. Arguments that are nested too
 * deeply are refused by their reader, which names them; this many levels cost nothing.
 */
export const bodyBounds: JsonBounds = { members: 100_000, values: 300_000, depth: 1_000 }

const badRequest = 400

const notUtf8 = new RpcFault(codes.parseError, "Parse error: the body is not UTF-8", badRequest)
const notJson = new RpcFault(codes.parseError, "Parse error: the body is not JSON", badRequest)

const decoder = new TextDecoder("utf-8", { fatal: true })

/**
 * Reads a body; undefined where it has more values than `within`, so that another thread, or none, has to read it. One
 * that has more than the readers' bounds, or nests too deeply, is refused.
 */
export const readBody = (
  bytes: Uint8Array,
  readers: BodyReaders = {},
  within?: Pick<JsonBounds, "members" | "values">
): Body | undefined => {
  const { bounds = bodyBounds } = readers
  const excess = jsonExcess(bytes, { ...bounds, ...within })
  if (excess !== undefined)
    return within === undefined || excess.startsWith("nested") ? refused(excessive(excess)) : undefined
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return refused(notUtf8)
  }
  try {
    return meaningOf(JSON.parse(text), readers)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return refused(notJson)
  }
}

const meaningOf = (json: unknown, { plain, tools = {} }: BodyReaders): Body => {
  if (isPlain(json))
    return plain === undefined ? { _tag: "Json", json } : { _tag: "Plain", read: plain(json) }
  for (const message of Array.isArray(json) ? json : [json]) {
    if (memberOf(message, "method") !== "tools/call") continue
    const params = memberOf(message, "params")
    const name = memberOf(params, "name")
    const args = memberOf(params, "arguments")
    const read = typeof name === "string" && Object.hasOwn(tools, name) ? tools[name] : undefined
    if (read !== undefined && isJsonRecord(args)) setArguments(params, new ReadArguments(read(args)))
  }
  return { _tag: "Json", json }
}

/** An object that is no message, and was not meant to be one. */
export const isPlain = (json: unknown): json is JsonRecord =>
  isJsonRecord(json) && !Object.hasOwn(json, "jsonrpc")

const setArguments = (params: unknown, value: unknown): void =>
  void Object.assign(Object(params), { arguments: value })

const refused = (fault: RpcFault): Body => ({ _tag: "Refused", fault })
const excessive = (text: string): RpcFault =>
  new RpcFault(codes.invalidRequest, `Invalid request: ${text}`, badRequest)

/** For another thread: arguments that were read go beside their messages. */
export const post = (body: Body): PostedBody => {
  if (body._tag === "Plain") return body
  if (body._tag === "Refused") return { _tag: "Refused", code: body.fault.code, message: body.fault.message }
  const { json } = body
  const calls = (Array.isArray(json) ? json : [json]).flatMap((message, index): ReadonlyArray<PostedCall> => {
    const params = memberOf(message, "params")
    const args = memberOf(params, "arguments")
    if (!(args instanceof ReadArguments)) return []
    setArguments(params, null)
    const { result } = args
    return [{ index, read: Result.isSuccess(result) ? { input: result.success } : { fault: result.failure } }]
  })
  return { _tag: "Json", json, calls }
}

export const received = (body: PostedBody): Body => {
  if (body._tag === "Plain") return body
  if (body._tag === "Refused") return refused(new RpcFault(body.code, body.message, badRequest))
  const { calls, json } = body
  for (const { index, read } of calls) {
    const result = "fault" in read ? Result.fail(read.fault) : Result.succeed(read.input)
    setArguments(memberOf(Array.isArray(json) ? json[index] : json, "params"), new ReadArguments(result))
  }
  return { _tag: "Json", json }
}

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
