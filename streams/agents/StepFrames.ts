import { usdOf } from "#schemas/llm/Money.ts"
import type { Unnumbered } from "./Outbox.ts"
import type { Step, StepBody } from "./Step.ts"

const event = (promptId: string, kind: string, fields: Readonly<Record<string, unknown>>): Unnumbered => ({
  type: "event",
  promptId,
  kind,
  ...fields
})

/** The frame that tells of a step; undefined where none does. Announced and replayed frames are the same. */
export const frameOf = (body: StepBody, promptId: string): Unnumbered | undefined => {
  switch (body.kind) {
    case "prompt":
      return event(promptId, "turn_start", { turn: 1, text: body.text })
    case "applied":
      return event(promptId, "steer_applied", { id: body.id, text: body.text })
    case "message": {
      const { content, cost, messageId, model, stopReason, usage } = body
      const costUsd = usdOf(BigInt(cost))
      return event(promptId, "message_end", { messageId, model, content, stopReason, usage, costUsd })
    }
    case "result": {
      const { callId, denied, durationMs, error, ok } = body
      return event(promptId, "tool_end", {
        callId,
        ok,
        denied,
        durationMs,
        ...(error === undefined ? {} : { error })
      })
    }
    case "compaction":
      return event(promptId, "compaction_end", { ok: true, tokens: body.tokens, summary: body.summary })
    case "done": {
      const { kind: _, cost, covered, ...rest } = body
      return {
        type: "prompt.done",
        ...rest,
        costUsd: usdOf(BigInt(cost)),
        coveredBySubscription: covered
      }
    }
    default:
      return undefined
  }
}

/** Steps as the frames that told of them, for a client that has missed them. */
export const replayed = (steps: ReadonlyArray<Step>): ReadonlyArray<string> =>
  steps.flatMap(({ body, promptId, seq }) => {
    const frame = seq === 0 ? undefined : frameOf(body, promptId)
    if (frame === undefined) return []
    const { type, ...rest } = frame
    return [JSON.stringify({ type, seq, ...rest })]
  })

export const replayGap = (from: number, to: number): string =>
  JSON.stringify({ type: "event", seq: to, promptId: "", kind: "replay_gap", from, to })
