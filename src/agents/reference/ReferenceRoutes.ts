import { Layer, Schema } from "effect"
import { documentRoute, referenceRoute } from "#src/docs/page/ReferencePage.ts"
import { protocolPage } from "./ProtocolPage.ts"
import { ClientFrame } from "#schemas/agents/ClientFrame.ts"
import { ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { tools } from "#schemas/agents/ToolCall.ts"

const named: ReadonlyArray<readonly [string, Schema.Constraint]> = [
  ["ClientFrame", ClientFrame],
  ["ServerFrame", ServerFrame],
  ...tools.flatMap(({ method, params, result }): ReadonlyArray<readonly [string, Schema.Constraint]> => [
    [`${method}.params`, params],
    [`${method}.result`, result]
  ])
]

/**
 * Protocol 1 as one JSON Schema: every frame is a `ClientFrame` or a `ServerFrame`; `fs.read.params` and the like
 * describe `params` of a `tool.request` and `result` of a `tool.result`. Source: JSON Schema 2020-12.
 */
const protocolSchema = (): object => {
  const documents = named.map(([name, schema]) => [name, Schema.toJsonSchemaDocument(schema)] as const)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Signalbox agent protocol 1",
    anyOf: [{ $ref: "#/$defs/ClientFrame" }, { $ref: "#/$defs/ServerFrame" }],
    $defs: Object.fromEntries(
      documents.flatMap(([name, { definitions, schema }]) => [[name, schema], ...Object.entries(definitions)])
    )
  }
}

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", "/docs/agent"],
  ["GET", "/docs/agent.json"]
] as const

/** The reference of the agent protocol, for people and for programs, made from the schemas. */
export const layer = Layer.mergeAll(
  referenceRoute(protocolPage.path, () => protocolPage),
  documentRoute("/docs/agent.json", protocolSchema)
)
