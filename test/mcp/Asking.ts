import { Effect } from "effect"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { McpCaller } from "#src/infra/mcp/McpEndpoint.ts"
import { answerOf, planOf } from "#streams/mcp/Conversation.ts"
import type { McpServer } from "#streams/mcp/McpServer.ts"
import { readBody } from "#streams/mcp/Messages.ts"
import { memberOf } from "#streams/mcp/Protocol.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"

/** Headers by name, in lower case. */
export type Sent = Readonly<Record<string, string>>

/** An answer of the core; "plain" where the body is none of its messages. */
export interface Said {
  readonly status: number | "plain"
  readonly json: unknown
}

/** The caller that the tools of the tests may look at. */
const caller: McpCaller = {
  key: {
    kind: "account",
    id: "key_1",
    keyId: "key_1",
    keyName: "test",
    ownerId: "usr_1",
    role: "user",
    scopes: ["full"],
    models: null,
    collections: null,
    rateLimitPerMinute: null,
    expiresAt: null
  },
  requestId: "req_1",
  idempotencyKey: undefined,
  session: "",
  setHeader: () => undefined,
  request: {
    method: "POST",
    path: "/mcp",
    query: "",
    params: {},
    headers: [],
    header: () => "",
    remoteAddress: "127.0.0.1",
    isProxied: false
  }
}

/** Asks the core alone: headers and the text of a body in, an answer out. */
export const say = async (
  headers: Sent,
  body: string | Uint8Array,
  server: McpServer<McpCaller> = diagnosticServer
): Promise<Said> => {
  const read = readBody(typeof body === "string" ? new TextEncoder().encode(body) : body)
  if (read === undefined) throw new Error("within its own bounds a body is read or refused")
  const plan = planOf(server, (name) => headers[name] ?? "", read)
  if (plan._tag === "Plain") return { status: "plain", json: plan.read }
  const replies = await Effect.runPromise(
    Effect.forEach(plan.steps, (step) =>
      step._tag === "Call"
        ? Effect.map(step.call.run(caller), step.call.reply)
        : Effect.succeed(step._tag === "Reply" ? step.reply : undefined)
    )
  )
  const answer = answerOf(plan, replies)
  return { status: answer.status, json: answer.body === undefined ? undefined : JSON.parse(answer.body) }
}

export const version = "io.modelcontextprotocol/protocolVersion"
export const capabilities = "io.modelcontextprotocol/clientCapabilities"

/** The envelope of a modern request. */
export const envelope = { [version]: "2026-07-28", [capabilities]: {} }

export const request = (method: string, params?: object, id: unknown = 1): object => ({
  jsonrpc: "2.0",
  id,
  method,
  ...(params === undefined ? {} : { params })
})

/** A modern request with the headers that go with it. */
export const modernRequest = (
  method: string,
  params: object = {},
  id: unknown = 1
): { readonly headers: Sent; readonly body: object } => {
  const name = memberOf(params, "name")
  return {
    headers: {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(method === "tools/call" && typeof name === "string" ? { "mcp-name": name } : {})
    },
    body: request(method, { ...params, _meta: envelope }, id)
  }
}

/** A member of an answer, however deep. */
export const at = (json: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      Array.isArray(value)
        ? value[Number(key)]
        : isJsonRecord(value)
          ? memberOf(value, String(key))
          : undefined,
    json
  )
