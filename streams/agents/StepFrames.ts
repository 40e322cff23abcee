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

/**
 * The frames sent to a client for the numbers above `lastSeq` up to `floor`, which are not kept any more: those of
 * steps, and one `replay_gap` for all others, in the place of the last missing frame.
 */
export const missedFrames = (
  steps: ReadonlyArray<Step>,
  lastSeq: number,
  floor: number
): ReadonlyArray<string> => {
  const frames = new Map<number, string>()
  for (const { body, promptId, seq } of steps) {
    const frame = seq > lastSeq && seq <= floor ? frameOf(body, promptId) : undefined
    if (frame === undefined) continue
    const { type, ...rest } = frame
    frames.set(seq, JSON.stringify({ type, seq, ...rest }))
  }
  let [from, to] = [lastSeq + 1, floor]
  while (frames.has(from)) from++
  while (frames.has(to)) to--
  if (from <= to)
    frames.set(to, JSON.stringify({ type: "event", seq: to, promptId: "", kind: "replay_gap", from, to }))
  return Array.from(frames)
    .toSorted(([one], [other]) => one - other)
    .map(([, text]) => text)
}
