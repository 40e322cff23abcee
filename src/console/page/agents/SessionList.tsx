import type { AgentSession, AgentSessionList } from "#schemas/agents/AgentSession.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCounted, formatInstant, formatUsd } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Heading } from "../parts/Heading.tsx"
import { ViewLink } from "../view/Navigation.tsx"
import { FirstSession } from "./FirstSession.tsx"
import { agentsView, stateOf } from "./Words.ts"

const refreshMillis = 3_000

/** The latest sessions, live ones first. */
export const SessionList = () => {
  const { data, refused } = useAnswer<typeof AgentSessionList.Type>(
    "/api/v1/agent/sessions?limit=100",
    refreshMillis
  )
  const live = data?.data.filter((session) => session.live) ?? []
  const earlier = data?.data.filter((session) => !session.live) ?? []
  return (
    <>
      <Heading>Agents</Heading>
      {data === undefined && <Asking what="your sessions" isRefused={refused !== undefined} />}
      {data?.data.length === 0 && <FirstSession />}
      <Sessions title="Live" sessions={live} />
      <Sessions title="Earlier" sessions={earlier} />
      {data?.data.length === 100 && <p class="hint">The latest 100 are shown.</p>}
    </>
  )
}

interface SessionsProps {
  readonly title: string
  readonly sessions: ReadonlyArray<AgentSession>
}

const Sessions = ({ sessions, title }: SessionsProps) =>
  sessions.length === 0 ? null : (
    <section class="sessions" aria-labelledby={`sessions-${title}`}>
      <h2 id={`sessions-${title}`}>{title}</h2>
      <ul class="links">
        {sessions.map((session) => (
          <li key={session.id}>
            <ViewLink to={{ ...agentsView, params: { session: session.id } }}>
              <Row session={session} />
            </ViewLink>
          </li>
        ))}
      </ul>
    </section>
  )

const Row = ({ session }: { readonly session: AgentSession }) => {
  const { light, words } = stateOf(session)
  const denied = session.tool_calls_denied
  return (
    <>
      <span class={`light ${light}`} aria-hidden="true" />
      <span class="session-name">
        <strong>{session.workspace.name}</strong> <span class="hint">{words}</span>
      </span>
      <span class="session-cost">{formatUsd(session.cost_usd)}</span>
      <span class="session-facts hint">
        <span>{session.model}</span>
        <span>{formatCounted(session.prompts, "prompt")}</span>
        <span>
          {formatCounted(session.tool_calls, "tool call")}
          {denied > 0 && <span class="worse">, {denied} denied</span>}
        </span>
      </span>
      <time class="session-seen hint" dateTime={session.last_seen_at}>
        {formatInstant(session.last_seen_at)}
      </time>
    </>
  )
}
