import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Step, StepBody } from "#streams/agents/Step.ts"

/** A row of `agent_steps`. */
export interface StepRow {
  readonly session_id: string
  readonly index: number
  readonly seq: number
  readonly at: Date
  readonly content: string
}

/** The columns of a step as `stepOf` reads them, from a table named `t`. */
export const stepColumns = "t.session_id, t.index, t.seq::float8 AS seq, t.at, t.content"

/** JSON escapes characters that UTF-8 or Postgres cannot carry (NUL, lone surrogates): bodies read back as written. */
export const contentOf = ({ body, promptId }: Step): string => JSON.stringify({ promptId, body })

export const stepOf = ({ at, content, index, seq }: StepRow): Step => {
  // Only `contentOf` writes that column.
  const { body, promptId } = JSON.parse(content) as { readonly promptId: string; readonly body: StepBody }
  return { index, seq, promptId, at: at.getTime(), body }
}

interface RecentOf {
  readonly id: string
  /** index of the first step that is wanted */
  readonly from: number
}

/** The steps of many sessions, each from one on. They may be long: no more than `maxBytes` are read at a time. */
export const readRecent = Effect.fnUntraced(function* (
  sql: SqlClient,
  sessions: ReadonlyArray<RecentOf>,
  maxBytes: number
): Effect.fn.Return<ReadonlyMap<string, ReadonlyArray<Step>>, SqlError> {
  const steps = new Map<string, Array<Step>>()
  // One look into the index a session: the planner, left free, reads the whole table.
  const wanted = (some: ReadonlyArray<RecentOf>) => sql`
    FROM unnest(${some.map(({ id }) => id)}::text[], ${some.map(({ from }) => from)}::integer[]) AS w(id, start),
    LATERAL (SELECT * FROM agent_steps WHERE session_id = w.id AND index >= w.start ORDER BY index OFFSET 0) AS t`
  // The length of a long text is known without reading it.
  const sizes = yield* sql<{ id: string; bytes: number }>`
    SELECT w.id, sum(octet_length(t.content))::float8 AS bytes ${wanted(sessions)} GROUP BY w.id`
  const bytesOf = new Map(sizes.map(({ bytes, id }) => [id, bytes]))
  const groups: Array<Array<RecentOf>> = []
  let room = 0
  for (const session of sessions) {
    const bytes = bytesOf.get(session.id)
    if (bytes === undefined) continue
    const group = bytes > room ? undefined : groups.at(-1)
    if (group === undefined) {
      groups.push([session])
      room = maxBytes - bytes
    } else {
      group.push(session)
      room -= bytes
    }
  }
  for (const group of groups) {
    const rows = yield* sql<StepRow>`SELECT ${sql.literal(stepColumns)} ${wanted(group)}
      ORDER BY t.session_id, t.index`
    addTo(steps, rows)
  }
  return steps
})

interface AnnouncedOf {
  readonly id: string
  readonly afterSeq: number
  readonly toSeq: number
}

/** The steps of one session whose frame has a number within bounds. */
export const readAnnounced = (
  sql: SqlClient,
  { afterSeq, id, toSeq }: AnnouncedOf
): Effect.Effect<ReadonlyArray<Step>, SqlError> =>
  Effect.map(
    sql<StepRow>`SELECT ${sql.literal(stepColumns)} FROM agent_steps t
      WHERE t.session_id = ${id} AND t.seq > 0 AND t.seq > ${afterSeq} AND t.seq <= ${toSeq} ORDER BY t.index`,
    (rows) => rows.map(stepOf)
  )

const addTo = (steps: Map<string, Array<Step>>, rows: ReadonlyArray<StepRow>): void => {
  for (const row of rows) {
    const known = steps.get(row.session_id)
    if (known === undefined) steps.set(row.session_id, [stepOf(row)])
    else known.push(stepOf(row))
  }
}
