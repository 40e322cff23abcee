import { Schema } from "effect"
import { tools } from "#schemas/agents/ToolCall.ts"

/** The tools as chat-completions names them. */
export const toolDefinitions: ReadonlyArray<unknown> = tools.map(({ description, name, params }) => ({
  type: "function",
  function: { name, description, parameters: parametersOf(params) }
}))

function parametersOf(params: Schema.Top): unknown {
  const { definitions, schema } = Schema.toJsonSchemaDocument(params)
  return Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions }
}
