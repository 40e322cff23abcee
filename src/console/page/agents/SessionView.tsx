import { useState } from "preact/hooks"
import type { AgentSession } from "../api/Contract.ts"
import { formatCompact, formatCount, formatExactUsd, formatInstant } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { useFocusOnce } from "../parts/UseFocusOnce.ts"
import { ViewLink } from "../view/Navigation.tsx"
import { agentsView } from "../view/View.ts"
import { EndSession } from "./EndSession.tsx"
import { Entry } from "./Entry.tsx"
import { useStickToEnd } from "./UseStickToEnd.ts"
import { useTranscript } from "./UseTranscript.ts"
import { stateOf } from "./Words.ts"

/** One session: its state, its cost and its transcript. */
export const SessionView = ({ id }: { readonly id: string }) => {
  const heading = useFocusOnce()
  const [since, setSince] = useState(0)
  const { refused, transcript } = useTranscript(id, since)
  useStickToEnd(transcript)
  if (transcript === undefined)
    return refused?.status === 404 ? (
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
          <h1 ref={heading} tabIndex={-1}>
            {session.workspace.name}
          </h1>
          <p class="session-state" role="status" data-figure="session-state">
            <span class={`light ${light}`} aria-hidden="true" /> {words}
          </p>
        </div>
        {session.status !== "ended" && <EndSession id={id} onEnded={() => setSince(since + 1)} />}
      </div>
      <Facts session={session} />
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
    <h1>No such session</h1>
    <p>It is not among those of this key’s owner.</p>
    <p>
      <ViewLink to={agentsView}>All sessions</ViewLink>
    </p>
  </section>
)

const Facts = ({ session }: { readonly session: AgentSession }) => (
  <dl class="facts session-summary">
    <Fact name="session-cost" label="Cost" value={formatExactUsd(session.cost_usd)} />
    <Fact name="session-model" label="Model" value={session.model} />
    <Fact name="session-prompts" label="Prompts" value={formatCount(session.prompts)} />
    <Fact
      name="session-calls"
      label="Tool calls"
      value={`${formatCount(session.tool_calls)}${session.tool_calls_denied > 0 ? `, ${formatCount(session.tool_calls_denied)} denied` : ""}`}
    />
    <Fact
      name="session-tokens"
      label="Tokens"
      value={`${formatCompact(session.prompt_tokens)} in, ${formatCompact(session.completion_tokens)} out`}
    />
    <Fact name="session-root" label="Workspace" value={session.workspace.root} />
    <Fact
      name="session-client"
      label="Client"
      value={`${session.client.version}, ${session.client.platform}`}
    />
    <Fact name="session-thinking" label="Thinking" value={session.thinking_level} />
    <Fact name="session-started" label="Began" value={formatInstant(session.started_at)} />
    <Fact name="session-seen" label="Last seen" value={formatInstant(session.last_seen_at)} />
  </dl>
)

interface FactProps {
  readonly name: string
  readonly label: string
  readonly value: string
}

const Fact = ({ label, name, value }: FactProps) => (
  <div>
    <dt>{label}</dt>
    <dd data-figure={name}>{value}</dd>
  </div>
)
