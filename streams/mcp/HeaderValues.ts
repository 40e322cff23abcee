import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { codes, type HeaderOf, memberOf, RpcFault } from "./Protocol.ts"

/**
 * Headers that repeat parts of a modern request's body, for proxies that read no bodies. A server refuses a request
 * whose headers and body disagree: a proxy would have allowed another one. Source: the Streamable HTTP transport of
 * 2026-07-28, "Standard request headers" and "Custom headers from tool parameters".
 */

/** A parameter of a tool that a header repeats: `Mcp-Param-<name>`. */
export interface ParamHeader {
  /** lower case, with the prefix */
  readonly header: string
  /** names of members, from the arguments down */
  readonly path: ReadonlyArray<string>
}

export const mismatch = (text: string): RpcFault =>
  new RpcFault(codes.headerMismatch, `Header mismatch: ${text}`, 400)

/** The parameters that a published schema annotates with `x-mcp-header`, however deep in `properties`. */
export const paramHeadersOf = (
  schema: unknown,
  path: ReadonlyArray<string> = []
): ReadonlyArray<ParamHeader> => {
  const name = memberOf(schema, "x-mcp-header")
  const own = typeof name === "string" ? [{ header: `mcp-param-${name.toLowerCase()}`, path }] : []
  const properties = memberOf(schema, "properties")
  if (!isJsonRecord(properties)) return own
  return [
    ...own,
    ...Object.entries(properties).flatMap(([key, child]) => paramHeadersOf(child, [...path, key]))
  ]
}

/** A header that must be there and say what the body says. */
export const headerFault = (headerOf: HeaderOf, header: string, expected: string): RpcFault | undefined => {
  const value = headerOf(header).trim()
  if (value === "") return mismatch(`the header ${header} is missing`)
  return decoded(value) === expected ? undefined : mismatch(`the header ${header} is not what the body says`)
}

/** The first annotated parameter whose header does not say what the arguments say. */
export const paramFault = (
  headerOf: HeaderOf,
  headers: ReadonlyArray<ParamHeader>,
  args: JsonRecord
): RpcFault | undefined => {
  for (const { header, path } of headers) {
    const value = path.reduce(memberOf, args as unknown)
    const sent = headerOf(header).trim()
    const isAbsent = value === undefined || value === null
    // Anything else than these is for the tool's schema to refuse.
    const isSimple = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    if (isAbsent ? sent !== "" : isSimple && decoded(sent) !== String(value))
      return mismatch(`the header ${header} is not what the argument ${path.join(".")} says`)
  }
  return undefined
}

const encodedForm = /^=\?base64\?(.*)\?=$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const decoder = new TextDecoder("utf-8", { fatal: true })

/** The text of a header's value, which is in base64 where it could not stand in a header; undefined: it is malformed. */
const decoded = (value: string): string | undefined => {
  const [, encoded] = encodedForm.exec(value) ?? []
  if (encoded === undefined) return value
  if (!base64.test(encoded)) return undefined
  try {
    return decoder.decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)))
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}
