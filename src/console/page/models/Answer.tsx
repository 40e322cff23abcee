import type { ComponentChildren } from "preact"
import { formatCount, formatExactUsd } from "../figures/Format.ts"
import { MoreCredits } from "./MoreCredits.tsx"
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
      <p class="problem" role="alert">
        {completion?.problem}
      </p>
      {completion?.code === "insufficient_credits" && <MoreCredits onAdded={onAdded} />}
      {completion !== undefined && <Facts completion={completion} />}
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

const Facts = ({ completion }: { readonly completion: Completion }) => {
  const { firstTokenMillis, router, totalMillis, usage } = completion
  return (
    <dl class="facts">
      {router !== undefined && (
        <>
          <Fact name="cost" label="Cost">
            {router.covered_by_subscription ? "covered by the plan" : formatExactUsd(router.charged_usd)}
          </Fact>
          <Fact name="resolved" label="Answered by">
            {router.resolved === "" ? "none" : router.resolved}
          </Fact>
          <Fact name="stages" label="Stages">
            {router.stages.join(", then ")}
          </Fact>
          <Fact name="attempts" label="Attempts">
            {formatCount(router.attempts)}
          </Fact>
        </>
      )}
      {usage !== undefined && (
        <Fact name="tokens" label="Tokens">
          {formatCount(usage.prompt_tokens)} in, {formatCount(usage.completion_tokens)} out
        </Fact>
      )}
      {firstTokenMillis !== undefined && (
        <Fact name="first-token" label="First word after">
          {formatMillis(firstTokenMillis)}
        </Fact>
      )}
      {totalMillis !== undefined && (
        <Fact name="total" label="All after">
          {formatMillis(totalMillis)}
        </Fact>
      )}
    </dl>
  )
}

interface FactProps {
  readonly name: string
  readonly label: string
  readonly children: ComponentChildren
}

const Fact = ({ children, label, name }: FactProps) => (
  <div>
    <dt>{label}</dt>
    <dd data-figure={name}>{children}</dd>
  </div>
)

const formatMillis = (millis: number): string =>
  millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`
