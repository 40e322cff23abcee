import type { ContentPart, PromptDone, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { amount, seconds, tokens } from "./Figures.ts"
import { asked, call, finish, grow, leaveOpenMessages, notice, printed } from "./Items.ts"
import type { MessagePart, TerminalState } from "./TerminalState.ts"

type EventFrame = Extract<ServerFrame, { type: "event" }>
type EventFrameOf<K extends EventFrame["kind"]> = Extract<EventFrame, { kind: K }>

/** The state after a frame. Unknown frames and kinds change nothing. */
export const reduceFrame = (state: TerminalState, frame: ServerFrame, now: number): TerminalState => {
  switch (frame.type) {
    case "event":
      return reduceEvent(state, frame, now)
    case "prompt.done":
      return reduceDone(state, frame, now)
    case "error": {
      // A refused prompt is not worked on.
      const refused = frame.id !== undefined && frame.id === state.active?.id
      return notice(refused ? { ...state, active: undefined } : state, "error", frame.message)
    }
    default:
      return state
  }
}

const reduceEvent = (state: TerminalState, event: EventFrame, now: number): TerminalState => {
  switch (event.kind) {
    case "turn_start":
      return turnStarted(state, event, now)
    case "text_delta":
      return grow(state, event.messageId, { index: event.contentIndex, type: "text" }, event.delta)
    case "thinking_delta":
      return grow(state, event.messageId, { index: event.contentIndex, type: "thinking" }, event.delta)
    case "message_end":
      return messageEnded(state, event)
    case "tool_start":
    case "tool_update":
    case "tool_end":
      return reduceCall(state, event, now)
    case "queue_update":
      return { ...state, queue: event.queue }
    case "steer_applied":
      return asked({ ...state, queue: state.queue.filter(({ id }) => id !== event.id) }, event.id, event.text)
    case "compaction_end":
      return compacted(state, event)
    default:
      return noticed(state, event)
  }
}

const turnStarted = (
  state: TerminalState,
  { promptId, seq, text }: EventFrameOf<"turn_start">,
  now: number
): TerminalState => {
  const known = text === undefined ? state : asked(state, promptId, text)
  const { session } = state
  const over = session !== undefined && seq <= session.replayedTo && promptId !== session.activePrompt
  return over || known.active?.id === promptId ? known : { ...known, active: { id: promptId, since: now } }
}

const messageEnded = (state: TerminalState, event: EventFrameOf<"message_end">): TerminalState => {
  const ended = finish(state, event.messageId, event.content.flatMap(partOf))
  const called = event.content.reduce(
    (next, part) =>
      part.type === "tool_call"
        ? call(next, part.callId, (item) => ({ ...item, tool: part.tool, args: part.args }))
        : next,
    ended
  )
  const counted: TerminalState = {
    ...called,
    costs: { ...called.costs, [event.promptId]: (called.costs[event.promptId] ?? 0) + event.costUsd },
    contextTokens: event.usage.totalTokens,
    totalTokens: called.totalTokens + event.usage.totalTokens
  }
  return event.stopReason === "length"
    ? notice(counted, "warning", "The answer reached its greatest length and is cut here.")
    : counted
}

const partOf = (part: ContentPart, index: number): ReadonlyArray<MessagePart> =>
  part.type === "tool_call" ? [] : [{ index, type: part.type, text: part.text }]

const reduceCall = (
  state: TerminalState,
  event: EventFrameOf<"tool_start" | "tool_update" | "tool_end">,
  now: number
): TerminalState =>
  call(state, event.callId, (item) => {
    switch (event.kind) {
      case "tool_start":
        return {
          ...item,
          tool: event.tool,
          args: event.args,
          progress: item.progress === "called" ? "running" : item.progress,
          since: item.since === 0 ? now : item.since
        }
      case "tool_update":
        return item.local ? item : printed(item, event.data)
      case "tool_end":
        return {
          ...item,
          progress: event.ok ? "ok" : event.denied ? "denied" : "failed",
          durationMillis: event.durationMs,
          error: event.error?.message ?? ""
        }
      default:
        return item
    }
  })

const compacted = (state: TerminalState, event: EventFrameOf<"compaction_end">): TerminalState =>
  event.ok
    ? notice(
        { ...state, contextTokens: event.tokens },
        "info",
        `Context made smaller: ${tokens(event.tokens)} tokens`
      )
    : notice(state, "warning", `The context could not be made smaller: ${event.message ?? "unknown reason"}`)

const noticed = (state: TerminalState, event: EventFrame): TerminalState => {
  switch (event.kind) {
    case "model_fallback":
      return notice(state, "warning", `${event.from} does not answer; ${event.to} goes on`)
    case "retry":
      return notice(
        state,
        "warning",
        `${event.message} (attempt ${event.attempt} in ${seconds(event.delayMs)})`
      )
    case "compaction_start":
      return notice(state, "info", `Making the context of ${tokens(event.tokens)} tokens smaller …`)
    case "budget_warning":
      return notice(
        state,
        "warning",
        `${amount(event.spentUsd)} of this session's ${amount(event.budgetUsd)} are spent`
      )
    case "replay_gap":
      return notice(
        state,
        "info",
        "Some of what was streamed is not repeated; the transcript goes on complete."
      )
    default:
      return state
  }
}

const ends: Readonly<Record<Exclude<PromptDone["status"], "completed" | "error">, string>> = {
  aborted: "Stopped",
  budget: "Stopped: the budget of this session is used up",
  max_turns: "Stopped: the greatest number of turns is reached"
}

const reduceDone = (state: TerminalState, done: PromptDone, now: number): TerminalState => {
  const since = state.active?.id === done.id ? state.active.since : undefined
  const over: TerminalState = {
    ...leaveOpenMessages(state),
    active: since === undefined ? state.active : undefined,
    costs: { ...state.costs, [done.id]: done.costUsd }
  }
  if (done.status === "error") {
    return notice(over, "error", done.error?.message ?? "The prompt failed")
  }
  if (done.status !== "completed") {
    return notice(over, "warning", ends[done.status])
  }
  // A compaction is answered like a prompt; it has said already what came of it.
  return done.turns === 0 ? over : notice(over, "info", summaryOf(done, since, now))
}

/** The duration of a prompt that began before this program is unknown. */
const summaryOf = (done: PromptDone, since: number | undefined, now: number): string =>
  [
    ...(since === undefined || now - since < 1_000 ? ["Done"] : [`Done in ${seconds(now - since)}`]),
    ...(done.toolCalls === 0 ? [] : [`${done.toolCalls} tool call${done.toolCalls === 1 ? "" : "s"}`]),
    `${tokens(done.usage.totalTokens)} tokens`,
    done.coveredBySubscription ? "plan" : amount(done.costUsd)
  ].join(" · ")
