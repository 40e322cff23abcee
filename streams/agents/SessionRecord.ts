import type { endReasons } from "#schemas/agents/AgentSession.ts"
import type { ThinkingLevel } from "#schemas/agents/ClientFrame.ts"

/** The facts of a session that never change. */
export interface SessionFacts {
  /** `ses_…` */
  readonly id: string
  readonly userId: string
  /** of the key that it was begun with, whose live sessions are counted */
  readonly keyId: string
  readonly root: string
  readonly workspaceName: string
  /** epoch milliseconds, as all times here */
  readonly startedAt: number
}

export type EndReason = (typeof endReasons)[number]

/** The state of a session that changes. Its owner has it in memory and writes it whole, with every step. */
export interface SessionState {
  readonly clientVersion: string
  readonly clientPlatform: string
  readonly clientName: string
  /** of the client that is, or was last, attached */
  readonly journalId: string
  readonly model: string
  readonly thinkingLevel: ThinkingLevel
  /** pico-USD as text; null: no bound */
  readonly budget: string | null
  /** `running`: a prompt is worked on, or waits for its client */
  readonly status: "idle" | "running" | "ended"
  readonly prompts: number
  readonly toolCalls: number
  readonly toolCallsDenied: number
  /** pico-USD as text, of all calls */
  readonly cost: string
  readonly promptTokens: number
  readonly completionTokens: number
  /** frames may carry numbers up to this one; a later load of the session goes on behind it */
  readonly seqReserved: number
  /** the index of the first step that models see (0, or that of the last compaction's `keepFrom`) */
  readonly baseStep: number
  readonly lastSeenAt: number
  /** null while a client is attached */
  readonly detachedAt: number | null
  readonly endedAt: number | null
  readonly endReason: EndReason | null
}

/** A session as it is stored. */
export interface SessionRecord {
  readonly facts: SessionFacts
  readonly state: SessionState
  /** counts its owners: one with an older number may not write any more */
  readonly epoch: number
  /** the number of steps stored */
  readonly steps: number
}
