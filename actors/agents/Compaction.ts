import * as Effect from "effect/Effect"
import type { Conversation } from "#streams/agents/Conversation.ts"
import { contextTokens, cutOf, shortened, textBefore, tokensOfText } from "#streams/agents/ChatContext.ts"
import { summaryPrompt, summaryRequest } from "#streams/agents/Prompts.ts"
import type { AgentSession } from "./AgentSession.ts"
import type { ModelAnswer, ModelMessage } from "./ModelCalls.ts"

/** Source: contract/agents#compaction. Windows that are not much larger give a quarter. */
const reserveTokens = 16_384
const keepTokens = 20_000

/** The approximate size of the system prompt and the tools. */
const overheadTokens = 2_500

/** Whether a call to a model with this window would be too long. */
export const isDue = (conversation: Conversation, window: number | undefined): boolean =>
  window !== undefined &&
  contextTokens(conversation.steps, overheadTokens) > window - Math.min(reserveTokens, window / 4)

type Summarise = (messages: ReadonlyArray<Readonly<Record<string, unknown>>>) => Effect.Effect<ModelAnswer>

/** Puts a summary in the place of all but the newest steps. Answers whether it did. */
export const compact = Effect.fnUntraced(function* (
  session: AgentSession,
  conversation: Conversation,
  options: {
    readonly window: number | undefined
    readonly instructions: string
    readonly summarise: Summarise
  }
) {
  const { instructions, summarise, window = Infinity } = options
  const { steps } = conversation
  const tokens = contextTokens(steps, overheadTokens)
  session.say({ kind: "compaction_start", tokens })
  const gaveUp = (message: string) => {
    session.say({ kind: "compaction_end", ok: false, tokens, message })
    return false
  }
  const keepFrom = cutOf(steps, Math.min(keepTokens, window / 4))
  if (keepFrom === undefined) return gaveUp("There is nothing that could be left out")
  // Steps that fitted once fit again; a step too long by itself is shortened.
  const text = shortened(textBefore(steps, keepFrom), Math.max(4_000, (window - reserveTokens) * 4))
  const answer = yield* summarise([
    { role: "system", content: summaryPrompt },
    { role: "user", content: summaryRequest(text, instructions) }
  ])
  if (answer._tag === "Failed") return gaveUp(answer.message)
  if (answer._tag === "OverBudget") return gaveUp("What is left of the budget does not pay for it")
  const { said } = answer
  const isWhole = answer._tag === "Answered"
  const summary = isWhole ? textOf(said) : ""
  if (summary === "") {
    // It is paid all the same.
    yield* session.record([], spent(session, said))
    return gaveUp(isWhole ? "The model gave no summary" : "It was not finished")
  }
  const { cost, covered, usage } = said
  const kept = steps.filter(({ index }) => index >= keepFrom)
  const left = contextTokens(
    kept.filter(({ body }) => body.kind !== "message"),
    overheadTokens + tokensOfText(summary)
  )
  return yield* session.record(
    [
      {
        body: { kind: "compaction", summary, keepFrom, tokens: left, usage, cost: String(cost), covered }
      }
    ],
    spent(session, said)
  )
})

const textOf = ({ content }: ModelMessage): string =>
  content
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("")
    .trim()

/** The session's spending with one more call. */
export const spent = ({ state }: AgentSession, { cost, usage }: ModelMessage) => ({
  cost: String(BigInt(state.cost) + cost),
  promptTokens: state.promptTokens + usage.promptTokens,
  completionTokens: state.completionTokens + usage.completionTokens
})
