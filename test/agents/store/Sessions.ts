import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import type { Step, StepBody } from "#streams/agents/Step.ts"
import { Processes } from "#src/infra/processes/Processes.ts"
import * as SessionStore from "#src/agents/store/SessionStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { makeKey, makeUser } from "#test/llm/ledger/LedgerProbe.ts"

/** A store as one process has it; each has an owner of its own. */
export const processLayer = SessionStore.layer.pipe(Layer.provideMerge(Layer.fresh(Processes.layer)))

/** Somebody's new session, for a key of theirs or one that is given. */
export const newSession = Effect.fnUntraced(function* (
  changes: Partial<SessionState> = {},
  of?: Pick<SessionFacts, "userId" | "keyId">
) {
  const whose = of ?? (yield* someone)
  const now = Date.now()
  const facts: SessionFacts = {
    ...whose,
    id: newId("ses"),
    root: "/home/ada/work",
    workspaceName: "work",
    startedAt: now
  }
  return { facts, state: { ...freshState(now), ...changes } }
})

export const someone = Effect.gen(function* () {
  const userId = yield* makeUser
  return { userId, keyId: yield* makeKey(userId) }
})

export const freshState = (now: number): SessionState => ({
  clientVersion: "1.0.0",
  clientPlatform: "linux-x64",
  clientName: "signalbox-agent",
  journalId: "jrn",
  model: "m/one",
  thinkingLevel: "medium",
  budget: null,
  status: "idle",
  prompts: 0,
  toolCalls: 0,
  toolCallsDenied: 0,
  cost: "0",
  promptTokens: 0,
  completionTokens: 0,
  seqReserved: 10_000,
  baseStep: 0,
  lastSeenAt: now,
  detachedAt: null,
  endedAt: null,
  endReason: null
})

export const stepOf = (index: number, body: StepBody = promptBody(`step ${index}`), seq = 0): Step => ({
  index,
  seq,
  promptId: "p-1",
  at: 1_763_733_600_123 + index,
  body
})

export const promptBody = (text: string): StepBody => ({ kind: "prompt", id: "p-1", text, images: [] })

/** A session's row, as far as tests look at it. */
export const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{
    epoch: number
    owner: string
    steps: number
    status: string
    end_reason: string | null
    prompts: number
    cost: string
    last_seen_at: Date
  }>`SELECT epoch::float8 AS epoch, owner, steps, status, end_reason, prompts, cost::text AS cost, last_seen_at
    FROM agent_sessions WHERE id = ${id}`
  return row
})

export const setRow = Effect.fnUntraced(function* (
  id: string,
  change: Readonly<Record<string, Date | string>>
) {
  const sql = yield* SqlClient
  yield* sql`UPDATE agent_sessions SET ${sql.update(change)} WHERE id = ${id}`
})
