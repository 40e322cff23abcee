import type { SessionFacts, SessionRecord, SessionState } from "#streams/agents/SessionRecord.ts"

/** The columns of a session that change, with their types in Postgres. */
const stateTypes = {
  client_version: "text",
  client_platform: "text",
  client_name: "text",
  journal_id: "text",
  model: "text",
  thinking_level: "text",
  budget: "numeric",
  status: "text",
  prompts: "integer",
  tool_calls: "integer",
  tool_calls_denied: "integer",
  cost: "numeric",
  prompt_tokens: "bigint",
  completion_tokens: "bigint",
  seq_reserved: "bigint",
  base_step: "integer",
  last_seen_at: "timestamptz",
  detached_at: "timestamptz",
  ended_at: "timestamptz",
  end_reason: "text"
} as const

const factTypes = {
  id: "text",
  user_id: "text",
  key_id: "text",
  root: "text",
  workspace_name: "text",
  started_at: "timestamptz"
} as const

/** As `json_to_recordset` wants its columns. */
const definition = (types: Readonly<Record<string, string>>): string =>
  Object.entries(types)
    .map(([column, type]) => `${column} ${type}`)
    .join(", ")

export const stateColumns: ReadonlyArray<string> = Object.keys(stateTypes)
const factColumns: ReadonlyArray<string> = Object.keys(factTypes)
export const stateDefinition = definition(stateTypes)

type Cell = string | number | null
type StateRow = Readonly<Record<keyof typeof stateTypes, Cell>>
type FactRow = Readonly<Record<keyof typeof factTypes, Cell>>

const instant = (millis: number | null): string | null =>
  millis === null ? null : new Date(millis).toISOString()

/** Rows travel as JSON, which Postgres takes without lone surrogates only: they become U+FFFD, as in any UTF-8. */
export const rowsText = (rows: ReadonlyArray<Readonly<Record<string, Cell>>>): string =>
  JSON.stringify(rows, (_, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value))

export const stateRow = (state: SessionState): StateRow => ({
  client_version: state.clientVersion,
  client_platform: state.clientPlatform,
  client_name: state.clientName,
  journal_id: state.journalId,
  model: state.model,
  thinking_level: state.thinkingLevel,
  budget: state.budget,
  status: state.status,
  prompts: state.prompts,
  tool_calls: state.toolCalls,
  tool_calls_denied: state.toolCallsDenied,
  cost: state.cost,
  prompt_tokens: state.promptTokens,
  completion_tokens: state.completionTokens,
  seq_reserved: state.seqReserved,
  base_step: state.baseStep,
  last_seen_at: instant(state.lastSeenAt),
  detached_at: instant(state.detachedAt),
  ended_at: instant(state.endedAt),
  end_reason: state.endReason
})

export const factRow = (facts: SessionFacts): FactRow => ({
  id: facts.id,
  user_id: facts.userId,
  key_id: facts.keyId,
  root: facts.root,
  workspace_name: facts.workspaceName,
  started_at: instant(facts.startedAt)
})

/** The columns of a session in a SELECT or RETURNING, as `recordOf` reads them, from a table named `s`. */
export const recordColumns = [
  ...[...factColumns, ...stateColumns, "owner", "steps"]
    .filter(
      (column) => !["budget", "cost", "prompt_tokens", "completion_tokens", "seq_reserved"].includes(column)
    )
    .map((column) => `s.${column}`),
  "s.budget::text",
  "s.cost::text",
  ...["epoch", "prompt_tokens", "completion_tokens", "seq_reserved"].map(
    (column) => `s.${column}::float8 AS ${column}`
  )
].join(", ")

/** A row of `recordColumns`. Its values were written from the types beside: only here is that taken on trust. */
export interface RecordRow {
  readonly id: string
  readonly user_id: string
  readonly key_id: string
  readonly root: string
  readonly workspace_name: string
  readonly started_at: Date
  readonly owner: string
  readonly epoch: number
  readonly steps: number
  readonly client_version: string
  readonly client_platform: string
  readonly client_name: string
  readonly journal_id: string
  readonly model: string
  readonly thinking_level: SessionState["thinkingLevel"]
  readonly budget: string | null
  readonly status: SessionState["status"]
  readonly prompts: number
  readonly tool_calls: number
  readonly tool_calls_denied: number
  readonly cost: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly seq_reserved: number
  readonly base_step: number
  readonly last_seen_at: Date
  readonly detached_at: Date | null
  readonly ended_at: Date | null
  readonly end_reason: SessionState["endReason"]
}

export const recordOf = (row: RecordRow): SessionRecord => ({
  facts: {
    id: row.id,
    userId: row.user_id,
    keyId: row.key_id,
    root: row.root,
    workspaceName: row.workspace_name,
    startedAt: row.started_at.getTime()
  },
  state: {
    clientVersion: row.client_version,
    clientPlatform: row.client_platform,
    clientName: row.client_name,
    journalId: row.journal_id,
    model: row.model,
    thinkingLevel: row.thinking_level,
    budget: row.budget,
    status: row.status,
    prompts: row.prompts,
    toolCalls: row.tool_calls,
    toolCallsDenied: row.tool_calls_denied,
    cost: row.cost,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    seqReserved: row.seq_reserved,
    baseStep: row.base_step,
    lastSeenAt: row.last_seen_at.getTime(),
    detachedAt: row.detached_at?.getTime() ?? null,
    endedAt: row.ended_at?.getTime() ?? null,
    endReason: row.end_reason
  },
  epoch: row.epoch,
  steps: row.steps
})
