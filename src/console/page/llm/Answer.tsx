import { formatCount, formatExactUsd, formatMillis } from "../figures/Format.ts"
import { type FactList, Facts } from "../parts/Tile.tsx"
import { Toast } from "../parts/Toast.tsx"
import { MoreCredits } from "./MoreCredits.tsx"
import type { RouterBlock, TokenUsage } from "./CompletionEvents.ts"
import type { Completion } from "./UseCompletion.ts"

interface AnswerProps {
  readonly completion: Completion | undefined
  onAdded(): void
}

/** The model's answer as it streams, and its outcome. */
export const Answer = ({ completion, onAdded }: AnswerProps) => {
  const isRunning = completion?.phase === "asking" || completion?.phase === "streaming"
  return (
    <section class="answer" aria-labelledby="answer-title">
      <h2 id="answer-title">Answer</h2>
      <div
        class={isRunning ? "answer-text running" : "answer-text"}
        data-figure="answer"
        role="log"
        aria-label="Answer"
        aria-busy={isRunning}
        tabIndex={0}
      >
        {completion?.text}
        {completion === undefined && <span class="hint">It appears here word by word.</span>}
      </div>
      <p class="answer-state" role="status" data-figure="state">
        {completion !== undefined && wordsOf(completion)}
      </p>
      <Toast>{completion?.problem}</Toast>
      {completion?.code === "insufficient_credits" && <MoreCredits onAdded={onAdded} />}
      {completion !== undefined && <Facts of={factsOf(completion)} />}
    </section>
  )
}

const wordsOf = ({ finishReason, phase, router }: Completion): string => {
  if (phase === "asking") return "Waiting for the first word …"
  if (phase === "streaming") return "Answering …"
  if (phase === "stopped") return "Stopped. What had been written until then is charged."
  if (phase === "failed") return ""
  if (router?.truncated !== undefined) return "Done: it ends where the credits did."
  return finishReason === "length" ? "Done: it ends at the limit of tokens." : "Done."
}

const factsOf = ({ firstTokenMillis, router, totalMillis, usage }: Completion): FactList => [
  ["cost", "Cost", router && costOf(router)],
  ["resolved", "Answered by", router && (router.resolved || "none")],
  ["stages", "Stages", router?.stages.join(", then ")],
  ["attempts", "Attempts", router && formatCount(router.attempts)],
  ["tokens", "Tokens", usage && tokensOf(usage)],
  [
    "first-token",
    "First word after",
    firstTokenMillis === undefined ? undefined : formatMillis(firstTokenMillis)
  ],
  ["total", "All after", totalMillis === undefined ? undefined : formatMillis(totalMillis)]
]

const costOf = ({ charged_usd, covered_by_subscription }: RouterBlock): string =>
  covered_by_subscription ? "covered by the plan" : formatExactUsd(charged_usd)

const tokensOf = ({ completion_tokens, prompt_tokens }: TokenUsage): string =>
  `${formatCount(prompt_tokens)} in, ${formatCount(completion_tokens)} out`
