import { type Effect, Result } from "effect"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { headerFault, mismatch, paramFault } from "./HeaderValues.ts"
import type { McpServer } from "./McpServer.ts"
import { type Body, invalidParams, isPlain, type Message, messageOf, ReadArguments } from "./Messages.ts"
import {
  codes,
  type HeaderOf,
  memberOf,
  metaKeys,
  type Reply,
  type RequestId,
  resultReply,
  RpcFault
} from "./Protocol.ts"
import { failedResult, type Tool, type ToolResult } from "./Tool.ts"

/**
 * One HTTP request of the Model Context Protocol: headers and body in; out comes an answer, or the calls of tools that
 * it needs first. A request is modern where it names a version that is not a legacy one, and legacy otherwise.
 */

/** A call whose arguments are right. */
export interface ToolCall<Caller> {
  readonly tool: string
  readonly run: (caller: Caller) => Effect.Effect<ToolResult>
  readonly reply: (result: ToolResult) => Reply
}

/** The answer to one message; "Nothing" for a notification. */
export type Step<Caller> =
  | { readonly _tag: "Reply"; readonly reply: Reply; readonly status: number }
  | { readonly _tag: "Call"; readonly call: ToolCall<Caller> }
  | { readonly _tag: "Nothing" }

/** The way to the answer of one message, or of a batch in its order. */
export interface Steps<Caller> {
  readonly _tag: "Steps"
  readonly steps: ReadonlyArray<Step<Caller>>
  readonly isBatch: boolean
  readonly isModern: boolean
  /** the request is `initialize`, and nothing else */
  readonly isInitialize: boolean
}

/** "Plain": an object without `jsonrpc`, which is no message, or what the endpoint's reader made of it. */
export type Plan<Caller> = Steps<Caller> | { readonly _tag: "Plain"; readonly read: unknown }

/** An answer of the endpoint. */
export interface McpAnswer {
  readonly status: number
  /** undefined: empty */
  readonly body: string | undefined
}

const batchMax = 100

/** Reads a request. */
export const planOf = <Caller>(server: McpServer<Caller>, headerOf: HeaderOf, body: Body): Plan<Caller> => {
  if (body._tag === "Refused") return refusal(body.fault)
  if (body._tag === "Plain") return body
  const { json } = body
  if (Array.isArray(json)) return batchOf(server, headerOf, json)
  if (isPlain(json)) return { _tag: "Plain", read: json }
  const message = messageOf(json)
  const isModern = isModernRequest(server, headerOf, json)
  const step = stepOf(server, headerOf, message, isModern)
  const isInitialize = !isModern && message._tag === "Request" && message.method === "initialize"
  return { _tag: "Steps", steps: [step], isBatch: false, isModern, isInitialize }
}

const batchOf = <Caller>(
  server: McpServer<Caller>,
  headerOf: HeaderOf,
  batch: ReadonlyArray<unknown>
): Plan<Caller> => {
  const size = batch.length
  if (size === 0 || size > batchMax)
    return refusal(invalidRequest(`a batch has 1 to ${batchMax} messages, not ${size}`))
  // Modern versions have no batches.
  if (isModernVersion(server, headerOf("mcp-protocol-version").trim() || undefined))
    return refusal(invalidRequest("expected one message, not a batch"))
  if (batch.some((json) => isModernVersion(server, versionOf(json))))
    return refusal(invalidRequest("expected one message, not a batch"))
  const steps = batch.map((json) => stepOf(server, headerOf, messageOf(json), false))
  return { _tag: "Steps", steps, isBatch: true, isModern: false, isInitialize: false }
}

/** An answer that is the same for every server: the request as a whole is at fault. */
const refusal = (fault: RpcFault): Steps<unknown> => ({
  _tag: "Steps",
  steps: [{ _tag: "Reply", reply: fault.reply(null), status: fault.status }],
  isBatch: false,
  isModern: false,
  isInitialize: false
})

const invalidRequest = (text: string): RpcFault =>
  new RpcFault(codes.invalidRequest, `Invalid request: ${text}`, 400)

/** Of an object that no member marks as a message, where the endpoint takes nothing else. */
export const notAMessage: Steps<unknown> = refusal(invalidRequest('jsonrpc: expected "2.0"'))

/** The answer, once every step has its reply; undefined stands for a notification. */
export const answerOf = (
  { isBatch, steps }: { readonly isBatch: boolean; readonly steps: ReadonlyArray<Step<never>> },
  replies: ReadonlyArray<Reply | undefined>
): McpAnswer => {
  const said = replies.filter((reply) => reply !== undefined)
  if (said.length === 0) return { status: 202, body: undefined }
  if (isBatch) return { status: 200, body: JSON.stringify(said) }
  const [step] = steps
  return { status: step?._tag === "Reply" ? step.status : 200, body: JSON.stringify(said[0]) }
}

const metaOf = (json: unknown): unknown => memberOf(memberOf(json, "params"), "_meta")

const versionOf = (json: unknown): unknown => memberOf(metaOf(json), metaKeys.protocolVersion)

const isModernVersion = <Caller>({ legacy }: McpServer<Caller>, version: unknown): boolean =>
  version !== undefined && !legacy.some((known) => known === version)

const isModernRequest = <Caller>(server: McpServer<Caller>, headerOf: HeaderOf, json: unknown): boolean =>
  isModernVersion(server, versionOf(json)) ||
  isModernVersion(server, headerOf("mcp-protocol-version").trim() || undefined)

type Request = Extract<Message, { _tag: "Request" }>

/** A request as the methods see it. */
interface Asked<Caller> {
  readonly server: McpServer<Caller>
  readonly headerOf: HeaderOf
  readonly id: RequestId
  readonly params: JsonRecord
  readonly isModern: boolean
}

const stepOf = <Caller>(
  server: McpServer<Caller>,
  headerOf: HeaderOf,
  message: Message,
  isModern: boolean
): Step<Caller> => {
  switch (message._tag) {
    case "Unanswered":
      return { _tag: "Nothing" }
    case "Invalid":
      return { _tag: "Reply", reply: message.fault.reply(message.id), status: message.fault.status }
    case "Request": {
      const made = isModern ? modern(server, headerOf, message) : legacy(server, headerOf, message)
      return made instanceof RpcFault
        ? { _tag: "Reply", reply: made.reply(message.id), status: made.status }
        : made
    }
  }
}

type Made<Caller> = Step<Caller> | RpcFault

const legacy = <Caller>(server: McpServer<Caller>, headerOf: HeaderOf, request: Request): Made<Caller> => {
  const { id, method, params = {} } = request
  if (params instanceof RpcFault) return isLegacyMethod(method) ? params : unknownMethod(method, 200)
  const asked: Asked<Caller> = { server, headerOf, id, params, isModern: false }
  switch (method) {
    case "initialize":
      return initialize(asked)
    case "ping":
      return replied(asked, {})
    case "tools/list":
      return listTools(asked)
    case "tools/call":
      return callTool(asked)
    default:
      return unknownMethod(method, 200)
  }
}

const isLegacyMethod = (method: string): boolean =>
  ["initialize", "ping", "tools/list", "tools/call"].includes(method)

const unknownMethod = (method: string, status: number): RpcFault =>
  new RpcFault(codes.methodNotFound, `Method not found: ${method.slice(0, nameCharacters)}`, status)

/** Of a name that the client made up; no name of ours is longer. */
const nameCharacters = 100

const modern = <Caller>(server: McpServer<Caller>, headerOf: HeaderOf, request: Request): Made<Caller> => {
  const { id, method, params = {} } = request
  const fault = envelopeFault(server, headerOf, params) ?? headerFault(headerOf, "mcp-method", method)
  if (fault !== undefined) return fault
  if (params instanceof RpcFault) return params
  const asked: Asked<Caller> = { server, headerOf, id, params, isModern: true }
  switch (method) {
    case "server/discover":
      return discover(asked)
    case "tools/list":
      return listTools(asked)
    case "tools/call":
      return callTool(asked)
    default:
      return unknownMethod(method, 404)
  }
}

const incomplete = (text: string): RpcFault =>
  new RpcFault(codes.invalidParams, `Invalid params: params._meta: ${text}`, 400)

/** The version and the client's capabilities, which every modern request has in `_meta`. */
const envelopeFault = <Caller>(
  server: McpServer<Caller>,
  headerOf: HeaderOf,
  params: JsonRecord | RpcFault
): RpcFault | undefined => {
  const meta = memberOf(params, "_meta")
  const version = memberOf(meta, metaKeys.protocolVersion)
  const header = headerOf("mcp-protocol-version").trim()
  // A client of another version may have its envelope elsewhere.
  if (version === undefined && !server.modern.includes(header)) return unsupported(server, header)
  if (typeof version !== "string") return incomplete(`${metaKeys.protocolVersion}: expected text`)
  if (header !== version)
    return mismatch(
      header === ""
        ? "the header mcp-protocol-version is missing"
        : "the header mcp-protocol-version is not what the body says"
    )
  if (!server.modern.includes(version)) return unsupported(server, version)
  return isJsonRecord(memberOf(meta, metaKeys.clientCapabilities))
    ? undefined
    : incomplete(`${metaKeys.clientCapabilities}: expected an object`)
}

const versionsOf = <Caller>({ legacy, modern }: McpServer<Caller>): ReadonlyArray<string> =>
  [...legacy, ...modern].toReversed()

const unsupported = <Caller>(server: McpServer<Caller>, requested: string): RpcFault =>
  new RpcFault(codes.unsupportedVersion, "Unsupported protocol version", 400, {
    supported: versionsOf(server),
    requested
  })

const replied = <Caller>({ id, isModern, server }: Asked<Caller>, result: JsonRecord): Step<Caller> => ({
  _tag: "Reply",
  reply: resultReply(id, isModern ? completed(server, result) : result),
  status: 200
})

const completed = <Caller>({ info }: McpServer<Caller>, result: JsonRecord): JsonRecord => ({
  ...result,
  resultType: "complete",
  _meta: { [metaKeys.serverInfo]: info }
})

const capabilities = { tools: {} }

/** Modern clients may keep these for an hour, and share them: they are the same for every caller. */
const cached = { ttlMs: 3_600_000, cacheScope: "public" }

const initialize = <Caller>(asked: Asked<Caller>): Made<Caller> => {
  const { params, server } = asked
  const version = memberOf(params, "protocolVersion")
  if (version !== undefined && typeof version !== "string")
    return invalidParams("protocolVersion: expected text")
  return replied(asked, {
    protocolVersion: server.legacy.find((known) => known === version) ?? server.legacy.at(-1),
    capabilities,
    serverInfo: server.info,
    instructions: server.instructions
  })
}

const discover = <Caller>(asked: Asked<Caller>): Step<Caller> =>
  replied(asked, {
    supportedVersions: versionsOf(asked.server),
    capabilities,
    instructions: asked.server.instructions,
    ...cached
  })

const listTools = <Caller>(asked: Asked<Caller>): Made<Caller> => {
  const { isModern, params, server } = asked
  const cursor = memberOf(params, "cursor")
  if (cursor !== undefined && cursor !== null) return invalidParams("cursor: all tools are on one page")
  const tools = [...server.tools.values()].map(({ listed }) => listed)
  return replied(asked, { tools, ...(isModern ? cached : {}) })
}

const callTool = <Caller>(asked: Asked<Caller>): Made<Caller> => {
  const { headerOf, isModern, params, server } = asked
  const name = memberOf(params, "name")
  if (typeof name !== "string") return invalidParams("name: expected text")
  const misnamed = isModern ? headerFault(headerOf, "mcp-name", name) : undefined
  if (misnamed !== undefined) return misnamed
  const tool = server.tools.get(name)
  if (tool === undefined)
    return new RpcFault(codes.invalidParams, `Unknown tool: ${name.slice(0, nameCharacters)}`, 200)
  const args = memberOf(params, "arguments") ?? {}
  if (!isJsonRecord(args) && !(args instanceof ReadArguments))
    return invalidParams("arguments: expected an object")
  const fault = isModern ? modernCallFault(asked, tool, args) : undefined
  return fault ?? preparedCall(asked, tool, args)
}

const modernCallFault = <Caller>(
  { headerOf, params, server }: Asked<Caller>,
  tool: Tool<Caller>,
  args: JsonRecord | ReadArguments
): RpcFault | undefined => {
  const has = memberOf(memberOf(params, "_meta"), metaKeys.clientCapabilities)
  const lacking = tool.requires.filter((capability) => memberOf(has, capability) === undefined)
  if (lacking.length === 0)
    return args instanceof ReadArguments
      ? undefined
      : paramFault(headerOf, server.paramHeaders.get(tool.name) ?? [], args)
  return new RpcFault(
    codes.missingCapability,
    `Missing required client capability: ${lacking.join(", ")}`,
    400,
    { requiredCapabilities: Object.fromEntries(lacking.map((capability) => [capability, {}])) }
  )
}

const preparedCall = <Caller>(
  asked: Asked<Caller>,
  tool: Tool<Caller>,
  args: JsonRecord | ReadArguments
): Step<Caller> => {
  const { id, isModern, server } = asked
  const work = tool.prepare(args)
  if (Result.isFailure(work))
    return replied(asked, { ...failedResult(server.invalidArguments(tool.name, work.failure)) })
  const reply = (result: ToolResult): Reply =>
    resultReply(id, isModern ? completed(server, { ...result }) : { ...result })
  return { _tag: "Call", call: { tool: tool.name, run: work.success, reply } }
}
