import * as Effect from "effect/Effect"
import type { ChatMessage } from "#streams/agents/ChatContext.ts"
import type { AgentSession } from "./AgentSession.ts"
import type { ModelAnswer, ModelCalls } from "./ModelCalls.ts"

export interface AttemptLimits {
  /** pause before a model call is tried again, doubled each time */
  readonly agentRetryMillis: number
}

export interface AttemptParts {
  readonly limits: AttemptLimits
  readonly models: ModelCalls["Service"]
  readonly newId: (prefix: string) => string
}

/** The model's answer, and the id of the message whose pieces were shown. */
export interface Asked {
  readonly messageId: string
  readonly answer: ModelAnswer
}

const triesMax = 4
const retryAfterMaxMillis = 60_000

/** One answer of a model, over as many as `triesMax` calls; a wait that the upstream asks for is obeyed up to a minute. */
export const askModel = Effect.fnUntraced(function* (
  session: AgentSession,
  { limits, models, newId }: AttemptParts,
  asked: { readonly messages: ReadonlyArray<ChatMessage>; readonly withTools: boolean }
): Effect.fn.Return<Asked> {
  for (let tries = 1; ; tries++) {
    const messageId = newId("msg")
    const { payerId, state } = session
    const { signal } = session.abortion
    session.isAnswering = true
    const calling = models.call({
      ...asked,
      keyId: payerId,
      model: state.model,
      thinkingLevel: state.thinkingLevel,
      budgetLeft: state.budget === null ? undefined : BigInt(state.budget) - BigInt(state.cost),
      callId: (index) => `${messageId}_${index}`,
      onDelta: (kind, contentIndex, delta) => {
        // A summary is not shown as an answer.
        if (asked.withTools) session.delta(kind, messageId, contentIndex, delta)
      },
      signal
    })
    const answer = yield* Effect.ensuring(
      calling,
      Effect.sync(() => {
        session.isAnswering = false
      })
    )
    const isOver = answer._tag !== "Failed" || !answer.isPassing || tries >= triesMax || signal.aborted
    if (answer._tag === "Failed") session.outbox.forget(messageId)
    if (isOver) return { messageId, answer }
    const wait = limits.agentRetryMillis * 2 ** (tries - 1) * (0.75 + Math.random() / 2)
    const told = Math.min(answer.retryAfterMillis ?? 0, retryAfterMaxMillis)
    const delayMs = Math.round(Math.max(wait, told))
    session.say({ kind: "retry", attempt: tries + 1, delayMs, message: answer.message })
    yield* Effect.raceFirst(Effect.sleep(delayMs), aborted(signal))
  }
})

const aborted = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (signal.aborted) return resume(Effect.void)
    const end = () => resume(Effect.void)
    signal.addEventListener("abort", end, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", end))
  })
