import type { TranscriptToolCall } from "#schemas/agents/AgentSession.ts"
import { Fold } from "./Fold.tsx"
import { formatMillis } from "../figures/Format.ts"
import { gistOf, isFine, lineKind, outcomeOf, shownArguments, shownResult } from "./Words.ts"

/** A model's tool call: its arguments, its outcome and its duration. */
export const ToolCall = ({ call }: { readonly call: TranscriptToolCall }) => {
  const shown = shownResult(call)
  const isUnderWay = call.ok === null
  return (
    <Fold
      class="tool-call"
      summary={
        <>
          <span class="tool-name">{call.tool}</span> <code class="tool-gist">{gistOf(call.args)}</code>{" "}
          <span class={isUnderWay || isFine(call) ? "tool-outcome" : "tool-outcome worse"}>
            {isUnderWay && <span class="light pulsing" aria-hidden="true" />} {outcomeOf(call)}
            {call.duration_ms !== null && !call.denied && (
              <span class="hint"> {formatMillis(call.duration_ms)}</span>
            )}
          </span>
        </>
      }
    >
      <Block title="Asked" kind="text" text={shownArguments(call.args)} />
      {shown !== undefined && <Block title={call.ok === true ? "Came back" : "Why not"} {...shown} />}
    </Fold>
  )
}

interface BlockProps {
  readonly title: string
  readonly kind: "text" | "diff"
  readonly text: string
}

const Block = ({ kind, text, title }: BlockProps) => (
  <div class="tool-block">
    <p class="hint">{title}</p>
    <pre tabIndex={0} role="group" aria-label={title}>
      {kind === "diff" ? <Diff text={text} /> : text === "" ? <span class="hint">Nothing</span> : text}
    </pre>
  </div>
)

/** Colours are never alone: the marks of the diff stand at the beginning of each line. */
const Diff = ({ text }: { readonly text: string }) => (
  <>
    {text
      .trimEnd()
      .split("\n")
      .map((line, index) => (
        <span key={index} class={`diff-${lineKind(line)}`}>
          {line}
          {"\n"}
        </span>
      ))}
  </>
)
