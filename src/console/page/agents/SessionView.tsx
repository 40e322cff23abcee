import type { AgentSession } from "#schemas/agents/AgentSession.ts"
import { useState } from "preact/hooks"
import { formatCompact, formatCount, formatExactUsd, formatInstant } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Heading } from "../parts/Heading.tsx"
import { type FactList, Facts } from "../parts/Tile.tsx"
import { ViewLink } from "../view/Navigation.tsx"
import { Entry } from "./Entry.tsx"
import { useStickToEnd } from "./UseStickToEnd.ts"
import { isUnknown, useTranscript } from "./UseTranscript.ts"
import { agentsView, stateOf } from "./Words.ts"

/** One session: its state, its cost and its transcript. */
export const SessionView = ({ id }: { readonly id: string }) => {
  const [since, setSince] = useState(0)
  const { refused, transcript } = useTranscript(id, since)
  useStickToEnd(transcript)
  if (transcript === undefined)
    return refused !== undefined && isUnknown(refused) ? (
      <UnknownSession />
    ) : (
      <Asking what="the session" isRefused={refused !== undefined} />
    )
  const { entries, session } = transcript
  const { light, words } = stateOf(session)
  return (
    <>
      <p class="way-back">
        <ViewLink to={agentsView}>All sessions</ViewLink>
      </p>
      <div class="session-head">
        <div>
          <Heading tab="Agents">{session.workspace.name}</Heading>
          <p class="session-state" role="status" data-figure="session-state">
            <span class={`light ${light}`} aria-hidden="true" /> {words}
          </p>
        </div>
        {session.status !== "ended" && (
          <Dialog
            action="End session"
            question="What runs is stopped, and it cannot be resumed."
            yes="End it"
            run={async (ask) => {
              await ask(`/api/v1/agent/sessions/${encodeURIComponent(id)}`, { method: "DELETE" })
              setSince(since + 1)
            }}
          />
        )}
      </div>
      <Facts class="session-summary" of={factsOf(session)} />
      {entries.length > 20 && (
        <p class="to-the-end">
          <button type="button" class="plain" onClick={toTheEnd}>
            To the end
          </button>
        </p>
      )}
      <section aria-labelledby="transcript-title">
        <h2 id="transcript-title" class="unseen">
          Transcript
        </h2>
        {entries.length === 0 && <p class="hint quiet">Nothing was said yet.</p>}
        <ol class="transcript" aria-busy={session.status === "running"}>
          {entries.map((entry) => (
            <Entry key={entry.step} entry={entry} />
          ))}
        </ol>
      </section>
    </>
  )
}

const toTheEnd = (): void => scrollTo(0, document.documentElement.scrollHeight)

const UnknownSession = () => (
  <section class="narrow">
    <Heading tab="Agents">No such session</Heading>
    <p>It is not among yours.</p>
    <p>
      <ViewLink to={agentsView}>All sessions</ViewLink>
    </p>
  </section>
)

const factsOf = (session: AgentSession): FactList => [
  ["session-cost", "Cost", formatExactUsd(session.cost_usd)],
  ["session-model", "Model", session.model],
  ["session-prompts", "Prompts", formatCount(session.prompts)],
  ["session-calls", "Tool calls", callsOf(session)],
  ["session-tokens", "Tokens", tokensOf(session)],
  ["session-root", "Workspace", session.workspace.root],
  ["session-client", "Client", `${session.client.version}, ${session.client.platform}`],
  ["session-thinking", "Thinking", session.thinking_level],
  ["session-started", "Began", formatInstant(session.started_at)],
  ["session-seen", "Last seen", formatInstant(session.last_seen_at)]
]

const callsOf = ({ tool_calls, tool_calls_denied: denied }: AgentSession): string =>
  denied > 0 ? `${formatCount(tool_calls)}, ${formatCount(denied)} denied` : formatCount(tool_calls)

const tokensOf = ({ completion_tokens, prompt_tokens }: AgentSession): string =>
  `${formatCompact(prompt_tokens)} in, ${formatCompact(completion_tokens)} out`
