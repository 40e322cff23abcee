import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { type ParamHeader, paramHeadersOf } from "./HeaderValues.ts"
import { legacyVersions, modernVersions } from "./Protocol.ts"
import type { Tool } from "./Tool.ts"

/** A server as its room declares it. */
interface ServerDeclaration<Caller> {
  readonly name: string
  readonly title: string
  readonly version: string
  /** for the client's model: the purpose of the tools together */
  readonly instructions: string
  /** in the order of `tools/list` */
  readonly tools: ReadonlyArray<Tool<Caller>>
  /** the versions that it speaks, oldest first; absent: all */
  readonly legacy?: ReadonlyArray<string>
  readonly modern?: ReadonlyArray<string>
  /** the text of a call whose arguments are wrong; absent: `field: text` */
  readonly invalidArguments?: (tool: string, fault: FieldFault) => string
}

/** The tools and words of one endpoint, ready to answer. */
export interface McpServer<in Caller> {
  readonly info: { readonly name: string; readonly title: string; readonly version: string }
  readonly instructions: string
  readonly legacy: ReadonlyArray<string>
  readonly modern: ReadonlyArray<string>
  readonly tools: ReadonlyMap<string, Tool<Caller>>
  /** parameters that headers repeat, by the tool's name */
  readonly paramHeaders: ReadonlyMap<string, ReadonlyArray<ParamHeader>>
  /** the names of all headers that its answers depend on, in lower case */
  readonly headers: ReadonlyArray<string>
  readonly invalidArguments: (tool: string, fault: FieldFault) => string
}

/** Prepares a server; two tools of one name are a defect. */
export const makeServer = <Caller>(declaration: ServerDeclaration<Caller>): McpServer<Caller> => {
  const { name, title, tools, version } = declaration
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  if (byName.size < tools.length) throw new Error(`the tools of ${name} have names in common`)
  const paramHeaders = new Map(tools.map((tool) => [tool.name, paramHeadersOf(tool.listed["inputSchema"])]))
  return {
    info: { name, title, version },
    instructions: declaration.instructions,
    legacy: declaration.legacy ?? legacyVersions,
    modern: declaration.modern ?? modernVersions,
    tools: byName,
    paramHeaders,
    headers: [
      ...new Set([
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        ...[...paramHeaders.values()].flat().map(({ header }) => header)
      ])
    ],
    invalidArguments: declaration.invalidArguments ?? ((_, { field, text }) => `${field}: ${text}`)
  }
}
