import { hash } from "node:crypto"
import type { ServerResponse } from "node:http"
import type { Account } from "./Account.ts"
import { BadRequest } from "./ChatRequest.ts"
import type { PlannedFaults } from "./coder/PlannedFaults.ts"
import { isJsonObject, type JsonObject, type SandboxModel } from "./SandboxModel.ts"
import { type Refusal, refusalJson } from "./Wire.ts"

/** State that the calls of one sandbox share. */
export interface Shared {
  readonly models: ReadonlyMap<string, SandboxModel>
  readonly account: Account
  readonly faults: PlannedFaults
  /** between two words of a stream, unless model or request set another pace */
  readonly wordMillis: number
}

/** The body of a call, and where its answer goes. */
export interface Call {
  readonly body: JsonObject
  /** hex, of the body's bytes: the same request has the same one */
  readonly digest: string
  readonly response: ServerResponse
}

export const callOf = (bytes: Buffer, response: ServerResponse): Call => {
  let body: unknown
  try {
    body = JSON.parse(bytes.toString("utf8"))
  } catch {
    throw new BadRequest("The body is no JSON")
  }
  if (!isJsonObject(body)) throw new BadRequest("The body must be a JSON object")
  return { body, digest: hash("sha256", bytes, "hex"), response }
}

export const sendJson = (
  response: ServerResponse,
  status: number,
  json: string,
  headers: object = {}
): void => {
  const length = Buffer.byteLength(json)
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": length, ...headers })
  response.end(json)
}

export const refuse = (response: ServerResponse, refusal: Refusal): void => {
  const { retryAfterSeconds: seconds, status } = refusal
  sendJson(response, status, refusalJson(refusal), seconds === undefined ? {} : { "Retry-After": seconds })
}

/** Runs `then` once, when the answer is with the client's system (`false`) or the client has gone before (`true`). */
export const onEnd = (response: ServerResponse, then: (isAborted: boolean) => void): void => {
  response.once("close", () => then(!response.writableFinished))
}
