import type { Step, StepBody } from "#streams/agents/Step.ts"

/** A row of `agent_steps`. */
export interface StepRow {
  readonly session_id: string
  readonly index: number
  readonly seq: number
  readonly at: Date
  readonly content: string
}

/** The columns of a step as `stepOf` reads them, from a table that is called `t`. */
export const stepColumns = "t.session_id, t.index, t.seq::float8 AS seq, t.at, t.content"

/** JSON escapes what UTF-8 or Postgres can not carry (NUL, lone surrogates): what is read is what was written. */
export const contentOf = ({ body, promptId }: Step): string => JSON.stringify({ promptId, body })

export const stepOf = ({ at, content, index, seq }: StepRow): Step => {
  // Only `contentOf` writes that column.
  const { body, promptId } = JSON.parse(content) as { readonly promptId: string; readonly body: StepBody }
  return { index, seq, promptId, at: at.getTime(), body }
}
