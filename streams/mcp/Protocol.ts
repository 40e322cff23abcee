import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/**
 * The words and numbers of the Model Context Protocol, in all of its eras. Sources: JSON-RPC 2.0; the protocol's schemas
 * at modelcontextprotocol.io/specification, of each version below.
 */

/** Versions whose clients say `initialize` first, oldest first. */
export const legacyVersions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const

/** Versions without any state between requests: each names its version and the capabilities of its client. */
export const modernVersions = ["2026-07-28"] as const

/** Members of `_meta` that the protocol itself defines. */
export const metaKeys = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo"
} as const

export const codes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  /** used by the official servers for a session that is not there */
  sessionNotFound: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022
} as const

export type RequestId = string | number

/** A JSON-RPC response. */
export type Reply = JsonRecord

export const resultReply = (id: RequestId, result: JsonRecord): Reply => ({ jsonrpc: "2.0", id, result })

/** An error that is a response of its own: `id` is null where the request's could not be read, absent where there is none. */
export class RpcFault {
  readonly code: number
  readonly message: string
  /** the HTTP status, where the request is alone */
  readonly status: number
  readonly data: JsonRecord | undefined

  constructor(code: number, message: string, status: number, data?: JsonRecord) {
    this.code = code
    this.message = message
    this.status = status
    this.data = data
  }

  reply(id: RequestId | null | undefined): Reply {
    const { code, data, message } = this
    return {
      jsonrpc: "2.0",
      ...(id === undefined ? {} : { id }),
      error: { code, message, ...(data === undefined ? {} : { data }) }
    }
  }
}

/** Part of a request's body, as text; "" where it is absent. */
export type HeaderOf = (name: string) => string

/** An own member: `JSON.parse` gives objects with the prototype of all others. */
export const memberOf = (value: unknown, name: string): unknown =>
  isJsonRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
