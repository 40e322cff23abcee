import type { TranscriptEntry } from "#schemas/agents/AgentSession.ts"
import type { ComponentChildren } from "preact"
import { formatCounted, formatInstant, formatUsd } from "../figures/Format.ts"
import { Fold } from "./Fold.tsx"
import { ToolCall } from "./ToolCall.tsx"
import { doneWords } from "./Words.ts"

/** One entry of a transcript. */
export const Entry = ({ entry }: { readonly entry: TranscriptEntry }) => {
  switch (entry.type) {
    case "prompt":
      return (
        <li class="entry said">
          <p class="entry-who">
            Prompt <time dateTime={entry.at}>{formatInstant(entry.at)}</time>
          </p>
          <p class="entry-text">{entry.text}</p>
          {entry.images.length > 0 && <p class="hint">With {formatCounted(entry.images.length, "image")}</p>}
        </li>
      )
    case "queued":
      return (
        <Note>
          Waits to be said{entry.mode === "follow_up" ? " at the end" : ""}: {entry.text}
        </Note>
      )
    case "unqueued":
      return <Note>What waited was thrown away.</Note>
    case "applied":
      return (
        <li class="entry said">
          <p class="entry-who">Said meanwhile</p>
          <p class="entry-text">{entry.text}</p>
        </li>
      )
    case "compact":
      return <Note>The person asked for a summary. {entry.instructions}</Note>
    case "compaction":
      return (
        <li class="entry">
          <Fold summary={<>Everything before was summed up · {formatUsd(entry.cost_usd)}</>}>
            <p class="entry-text">{entry.summary}</p>
          </Fold>
        </li>
      )
    case "message":
      return <Message entry={entry} />
    case "done":
      return <Done entry={entry} />
  }
}

const Note = ({ children }: { readonly children: ComponentChildren }) => (
  <li class="entry hint">
    <p class="entry-text">{children}</p>
  </li>
)

type Of<T extends TranscriptEntry["type"]> = Extract<TranscriptEntry, { readonly type: T }>

const stopWords: Readonly<Partial<Record<Of<"message">["stop_reason"], string>>> = {
  length: "It ends at the limit of tokens.",
  aborted: "It was aborted.",
  error: "It broke off."
}

const Message = ({ entry }: { readonly entry: Of<"message"> }) => (
  <li class="entry">
    {entry.content.map((part, index) =>
      part.type === "thinking" ? (
        <Fold key={index} summary="Thinking">
          <p class="entry-text thinking">{part.text}</p>
        </Fold>
      ) : (
        <p key={index} class="entry-text">
          {part.text}
        </p>
      )
    )}
    {entry.tool_calls.map((call) => (
      <ToolCall key={call.call_id} call={call} />
    ))}
    <p class="entry-cost hint">
      {entry.model} · {entry.covered_by_subscription ? "covered by the plan" : formatUsd(entry.cost_usd)}
      {stopWords[entry.stop_reason] !== undefined && ` · ${stopWords[entry.stop_reason]}`}
    </p>
  </li>
)

const Done = ({ entry }: { readonly entry: Of<"done"> }) => (
  <li class="entry done">
    <p class={entry.status === "completed" || entry.status === "aborted" ? undefined : "worse"}>
      {doneWords[entry.status]}
      {entry.error !== undefined && `: ${entry.error.message}`}
    </p>
    <p class="hint">
      {formatCounted(entry.turns, "turn")} · {formatCounted(entry.tool_calls, "tool call")}
      {entry.tool_calls_denied > 0 && `, ${entry.tool_calls_denied} denied`} · {formatUsd(entry.cost_usd)}
      {entry.covered_by_subscription && ", covered by the plan"}
    </p>
  </li>
)
