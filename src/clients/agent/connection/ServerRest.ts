import { Schema } from "effect"
import { AgentBilling, AgentModel } from "#schemas/agents/ServerFrame.ts"
import { ConnectionClosed } from "./ConnectionClosed.ts"

/** The few ordinary requests that the client makes beside its socket. */

export const AgentSession = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  live: Schema.Boolean,
  model: Schema.String,
  thinking_level: Schema.String,
  workspace: Schema.Struct({ root: Schema.String, name: Schema.String }),
  prompts: Schema.Int,
  tool_calls: Schema.Int,
  tool_calls_denied: Schema.Int,
  started_at: Schema.String,
  last_seen_at: Schema.String
})
export type AgentSession = typeof AgentSession.Type

/** The fields of `GET /agent` that the client needs. */
const GatewayInfo = Schema.Struct({
  protocol: Schema.Int,
  default_model: Schema.NullOr(Schema.String),
  models: Schema.Array(AgentModel),
  billing: AgentBilling
})
type GatewayInfo = typeof GatewayInfo.Type

const Sessions = Schema.Struct({ data: Schema.Array(AgentSession) })
const Uploaded = Schema.Struct({ id: Schema.String })
const Refusal = Schema.fromJsonString(
  Schema.Struct({ error: Schema.Union([Schema.String, Schema.Struct({ message: Schema.String })]) })
)

export interface ServerAddress {
  /** origin, without a trailing slash */
  readonly url: string
  readonly key: string
}

/** The server refused a request, in its own words. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused"
  readonly status: number

  constructor(status: number, problem: string) {
    super(problem)
    this.status = status
  }
}

const answerTimeoutMillis = 15_000

/** The server's own words in the body of a refusal, in either form. */
export const wordsOf = (body: string): string | undefined => {
  const refusal = Schema.decodeUnknownOption(Refusal)(body)
  if (refusal._tag === "None") return undefined
  const { error } = refusal.value
  return typeof error === "string" ? error : error.message
}

/** The root cause of an error: `fetch failed` alone explains nothing. */
export const rootOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.cause !== undefined) return rootOf(error.cause)
  // An AggregateError (a name with several addresses) has a code but no message.
  return error.message === "" && "code" in error ? String(error.code) : error.message
}

const ask = async <S extends Schema.ConstraintDecoder<unknown>>(
  server: ServerAddress,
  path: string,
  answer: S,
  body?: FormData
): Promise<S["Type"]> => {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${server.key}` },
    // A redirect would carry the key to another server.
    redirect: "error",
    signal: AbortSignal.timeout(answerTimeoutMillis),
    ...(body === undefined ? {} : { body })
  }).catch((error: unknown) => {
    throw new ConnectionClosed("unreachable", `No answer from ${server.url}: ${rootOf(error)}`)
  })
  const text = await response.text()
  if (!response.ok) {
    throw new RequestRefused(response.status, wordsOf(text) ?? `The server answered ${response.status}`)
  }
  const decoded = Schema.decodeUnknownOption(Schema.fromJsonString(answer))(text)
  if (decoded._tag === "None") {
    throw new RequestRefused(response.status, `${server.url} is not a Signalbox server of this version`)
  }
  return decoded.value
}

export const fetchGatewayInfo = (server: ServerAddress): Promise<GatewayInfo> =>
  ask(server, "/agent", GatewayInfo)

export const fetchSessions = async (
  server: ServerAddress,
  limit: number
): Promise<ReadonlyArray<AgentSession>> =>
  (await ask(server, `/agent/sessions?limit=${limit}`, Sessions)).data

export const uploadFile = async (
  server: ServerAddress,
  file: { readonly name: string; readonly type: string; readonly bytes: Uint8Array }
): Promise<string> => {
  const form = new FormData()
  form.set("file", new Blob([Uint8Array.from(file.bytes)], { type: file.type }), file.name)
  return (await ask(server, "/files", Uploaded, form)).id
}
