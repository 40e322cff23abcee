import type { AgentSession } from "#schemas/agents/AgentSession.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import type { StoredSession } from "./store/SessionsRepository.ts"

const instant = (millis: number): string => new Date(millis).toISOString()

/** Since when nobody is attached; null: somebody is. Who was attached to a process that died is not. */
const detachedSince = ({ ownerLives, state }: StoredSession): number | null =>
  state.detachedAt ?? (ownerLives ? null : state.lastSeenAt)

const statusOf = (session: StoredSession): AgentSession["status"] => {
  const { status } = session.state
  if (status === "ended") return status
  if (detachedSince(session) !== null) return "detached"
  return session.isNew ? "starting" : status
}

/** Source: contract/agents#sessions. */
export const sessionResource = (
  session: StoredSession,
  nowMillis: number,
  liveMillis: number
): AgentSession => {
  const { facts, state } = session
  const since = detachedSince(session)
  return {
    id: facts.id,
    status: statusOf(session),
    live: state.status !== "ended" && (since === null || nowMillis - since < liveMillis),
    model: state.model,
    thinking_level: state.thinkingLevel,
    workspace: { root: facts.root, name: facts.workspaceName },
    client: { version: state.clientVersion, platform: state.clientPlatform },
    prompts: state.prompts,
    tool_calls: state.toolCalls,
    tool_calls_denied: state.toolCallsDenied,
    prompt_tokens: state.promptTokens,
    completion_tokens: state.completionTokens,
    cost_usd: usdOf(BigInt(state.cost)),
    started_at: instant(facts.startedAt),
    last_seen_at: instant(state.lastSeenAt),
    ended_at: state.endedAt === null ? null : instant(state.endedAt),
    end_reason: state.endReason
  }
}
