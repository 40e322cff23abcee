import type { Schema } from "effect"
import { clientExamples, eventExamples, serverExamples, toolExamples } from "#schemas/agents/Examples.ts"
import { ClientFrame } from "#schemas/agents/ClientFrame.ts"
import { eventKinds, events, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { tools } from "#schemas/agents/ToolCall.ts"
import { type FieldRow, fieldRowsOf } from "#src/docs/page/FieldRows.ts"

/** One frame, kind of event, or side of a tool. */
export interface ReferenceEntry {
  /** of the page: `client-tool.result`, `event-text_delta` */
  readonly anchor: string
  readonly name: string
  readonly description: string
  readonly rows: ReadonlyArray<FieldRow>
  readonly example: unknown
}

export interface ToolEntry {
  readonly anchor: string
  readonly name: string
  readonly method: string
  readonly replay: "safe" | "never"
  readonly description: string
  readonly params: ReferenceEntry
  readonly result: ReferenceEntry
}

const entryOf = (
  anchor: string,
  name: string,
  schema: Schema.Constraint,
  example: unknown
): ReferenceEntry => ({ anchor, name, example, ...fieldRowsOf(schema) })

export const clientEntries: ReadonlyArray<ReferenceEntry> = ClientFrame.members.map((frame) => {
  const name = frame.fields.type.literal
  return entryOf(`client-${name}`, name, frame, clientExamples[name])
})

export const serverEntries: ReadonlyArray<ReferenceEntry> = ServerFrame.members.flatMap((frame) => {
  const name = frame.fields.type.literal
  return name === "event" ? [] : [entryOf(`server-${name}`, name, frame, serverExamples[name])]
})

/** Fields of every event are documented once, with the frame; these are documented with their kind. */
const eventFields = new Set(["type", "seq", "promptId", "kind"])

export const eventEntries: ReadonlyArray<ReferenceEntry> = eventKinds.map((kind) => {
  const entry = entryOf(`event-${kind}`, kind, events[kind], eventExamples[kind])
  return { ...entry, rows: entry.rows.filter(({ path }) => !eventFields.has(path)) }
})

export const eventFrameRows: ReadonlyArray<FieldRow> = fieldRowsOf(events.turn_end)
  .rows.filter(({ path }) => eventFields.has(path))
  .map((row) => (row.path === "kind" ? { ...row, type: "string", description: "One of those below" } : row))

export const toolEntries: ReadonlyArray<ToolEntry> = tools.map((tool) => {
  const { method, name } = tool
  return {
    anchor: `tool-${method}`,
    name,
    method,
    replay: tool.replay,
    description: tool.description,
    params: entryOf(`params-${method}`, "params", tool.params, toolExamples[method].params),
    result: entryOf(`result-${method}`, "result", tool.result, toolExamples[method].result)
  }
})
