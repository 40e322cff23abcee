import type { TranscriptEntry, TranscriptToolCall } from "#schemas/agents/AgentSession.ts"
import type { Tokens } from "#schemas/agents/ServerFrame.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import type { MessageStep, ResultStep, Step, StepBody } from "#streams/agents/Step.ts"
import type { StepSize } from "./store/SessionsRepository.ts"

/** Steps that begin something: all earlier tool calls are closed. */
const beginnings = new Set<StepBody["kind"]>([
  "prompt",
  "compact",
  "applied",
  "message",
  "compaction",
  "done"
])

/** Results of calls, and marks that calls were sent, are shown with the message that made the calls. */
const isShown = (kind: StepBody["kind"]): boolean => kind !== "taken" && kind !== "result"

interface PageBounds {
  readonly entries: number
  readonly bytes: number
}

interface TranscriptPage {
  /** the index behind the last step that is on it */
  readonly end: number
  /** the steps before this one are needed: results of a message may come after the entries of the next page */
  readonly readTo: number
}

/** As many entries as fit, at least one; from the sizes of the steps that could be on the page. */
export const pageOf = (sizes: ReadonlyArray<StepSize>, bounds: PageBounds): TranscriptPage => {
  let entries = 0
  let bytes = 0
  let end: number | undefined
  for (const { bytes: size, index, kind } of sizes) {
    const isFull = entries === bounds.entries || (entries > 0 && bytes >= bounds.bytes)
    if (isFull && isShown(kind)) end ??= index
    if (end !== undefined && beginnings.has(kind)) return { end, readTo: index }
    if (isShown(kind)) entries++
    bytes += size
  }
  const behind = (sizes.at(-1)?.index ?? -1) + 1
  return { end: end ?? behind, readTo: behind }
}

/** The steps before one, as transcript entries. */
export const entriesOf = (steps: ReadonlyArray<Step>, end: number): ReadonlyArray<TranscriptEntry> => {
  const results = new Map<string, ResultStep>()
  for (const { body } of steps) if (body.kind === "result") results.set(body.callId, body)
  return steps.flatMap((step) => {
    const { at, index, promptId } = step
    const rest = restOf(step.body, results)
    if (rest === undefined || index >= end) return []
    return [{ step: index, at: new Date(at).toISOString(), prompt_id: promptId, ...rest }]
  })
}

type Where = "step" | "at" | "prompt_id"
type Rest<E> = E extends unknown ? Omit<E, Where> : never

const restOf = (
  body: StepBody,
  results: ReadonlyMap<string, ResultStep>
): Rest<TranscriptEntry> | undefined => {
  switch (body.kind) {
    case "prompt":
      return { type: "prompt", text: body.text, images: body.images }
    case "compact":
      return { type: "compact", instructions: body.instructions }
    case "queued":
      return { type: "queued", id: body.id, mode: body.mode, text: body.text }
    case "unqueued":
      return { type: "unqueued" }
    case "applied":
      return { type: "applied", id: body.id, text: body.text }
    case "message":
      return messageOf(body, results)
    case "compaction":
      return { type: "compaction", summary: body.summary, tokens: body.tokens, ...paidOf(body) }
    case "done":
      return {
        type: "done",
        status: body.status,
        ...(body.error === undefined ? {} : { error: body.error }),
        turns: body.turns,
        tool_calls: body.toolCalls,
        tool_calls_denied: body.toolCallsDenied,
        ...paidOf(body)
      }
    case "taken":
    case "result":
      return undefined
  }
}

const messageOf = (body: MessageStep, results: ReadonlyMap<string, ResultStep>): Rest<TranscriptEntry> => ({
  type: "message",
  message_id: body.messageId,
  model: body.model,
  content: body.content.flatMap((part) => (part.type === "tool_call" ? [] : [part])),
  tool_calls: body.content.flatMap((part) =>
    part.type === "tool_call" ? [toolCallOf(part, results.get(part.callId))] : []
  ),
  stop_reason: body.stopReason,
  ...paidOf(body)
})

const toolCallOf = (
  call: { readonly callId: string; readonly tool: string; readonly args: unknown },
  outcome: ResultStep | undefined
): TranscriptToolCall => ({
  call_id: call.callId,
  tool: call.tool,
  args: call.args,
  ok: outcome?.ok ?? null,
  ...(outcome?.result === undefined ? {} : { result: outcome.result }),
  ...(outcome?.error === undefined ? {} : { error: outcome.error }),
  denied: outcome?.denied ?? false,
  duration_ms: outcome?.durationMs ?? null
})

const paidOf = (body: { readonly usage: Tokens; readonly cost: string; readonly covered: boolean }) => ({
  usage: {
    prompt_tokens: body.usage.promptTokens,
    completion_tokens: body.usage.completionTokens,
    total_tokens: body.usage.totalTokens
  },
  cost_usd: usdOf(BigInt(body.cost)),
  covered_by_subscription: body.covered
})
