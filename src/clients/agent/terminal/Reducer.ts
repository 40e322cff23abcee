import { tools } from "#schemas/agents/ToolCall.ts"
import type { ClientEvent, LinkState, ToolState } from "../connection/ClientEvents.ts"
import { reduceFrame } from "./FrameReducer.ts"
import { append, asked, call, notice, printed } from "./Items.ts"
import { safeOutput, safeValue } from "./SafeText.ts"
import type { NoticeItem, Queued, TerminalState, ToolItem } from "./TerminalState.ts"
import { emptyState } from "./TerminalState.ts"

/** The inputs that change the terminal's state: the client's events, and the user's actions. */
export type TerminalInput =
  | ClientEvent
  | { readonly type: "asked"; readonly id: string; readonly text: string }
  /** something else than a prompt is worked on, and answered like one */
  | { readonly type: "working"; readonly id: string }
  | ({ readonly type: "queued" } & Queued)
  /** the waiting messages were taken back */
  | { readonly type: "unqueued" }
  /** a call waits for the user's word, or has it */
  | { readonly type: "approval"; readonly callId: string; readonly waits: boolean }
  | { readonly type: "notice"; readonly level: NoticeItem["level"]; readonly text: string }
  | { readonly type: "expand"; readonly what: "thinking" | "tools" }

/** `now`: epoch milliseconds. */
export const reduce = (state: TerminalState, input: TerminalInput, now: number): TerminalState => {
  const safe = made(input)
  switch (safe.type) {
    case "frame":
      return reduceFrame(state, safe.frame, now)
    case "link":
      return reduceLink(state, safe, now)
    case "tool":
      return reduceTool(state, safe, now)
    case "asked":
      return { ...asked(state, safe.id, safe.text), active: { id: safe.id, since: now } }
    case "working":
      return { ...state, active: { id: safe.id, since: now } }
    case "queued": {
      const { id, text, mode } = safe
      return state.queue.some((known) => known.id === id)
        ? state
        : { ...state, queue: [...state.queue, { id, text, mode }] }
    }
    case "approval":
      return call(state, safe.callId, (item) => ({
        ...item,
        progress: safe.waits ? "asking" : item.progress === "asking" ? "running" : item.progress
      }))
    case "notice":
      return append(state, { kind: "notice", level: safe.level, text: safe.text })
    case "unqueued":
      return { ...state, queue: [] }
    case "expand":
      return { ...state, expanded: { ...state.expanded, [safe.what]: !state.expanded[safe.what] } }
    default:
      return state
  }
}

/** Nothing of it can reach the terminal as a command. Output of commands loses its colours before. */
const made = (input: TerminalInput): TerminalInput => {
  const plain =
    input.type === "tool" && input.state === "output" ? { ...input, data: safeOutput(input.data) } : input
  return safeValue(plain) as TerminalInput
}

const reduceLink = (state: TerminalState, link: LinkState, now: number): TerminalState => {
  switch (link.state) {
    case "connecting":
      // While it tries again the last problem is worth more than the number of the attempt.
      return state.link.state === "waiting" && link.attempt > 1
        ? { ...state, link: { ...state.link, retryAt: now } }
        : { ...state, link: { state: "connecting", attempt: link.attempt } }
    case "waiting": {
      const { problem, retryInMillis } = link
      return { ...state, link: { state: "waiting", retryAt: now + retryInMillis, problem } }
    }
    case "closed": {
      const { problem, reason } = link
      return { ...state, link: { state: "closed", reason, problem } }
    }
    case "connected":
      return attached(state, link, now)
    default:
      return state
  }
}

/** Another session has another transcript; the same one goes on where it was, and a new one below what was before. */
const attached = (
  state: TerminalState,
  { ready }: Extract<LinkState, { state: "connected" }>,
  now: number
): TerminalState => {
  const other = state.session !== undefined && state.session.id !== ready.sessionId
  const kept = ready.resumed ? {} : { items: state.items, forgotten: state.forgotten }
  const fresh: TerminalState = { ...emptyState, ...kept, expanded: state.expanded }
  const before = !other ? state : ready.resumed ? fresh : notice(fresh, "info", "A new session begins here.")
  const { sessionId, model, thinkingLevel, billing, activePrompt, seq } = ready
  const active =
    activePrompt === undefined || activePrompt === before.active?.id
      ? before.active
      : { id: activePrompt, since: now }
  return {
    ...before,
    link: { state: "connected" },
    session: { id: sessionId, model, thinkingLevel, billing, activePrompt, replayedTo: seq },
    active
  }
}

const toolNamed: ReadonlyMap<string, string> = new Map(tools.map(({ method, name }) => [method, name]))

const reduceTool = (state: TerminalState, tool: ToolState, now: number): TerminalState =>
  call(state, tool.callId, (item): ToolItem => {
    switch (tool.state) {
      case "started":
        return {
          ...item,
          tool: toolNamed.get(tool.method) ?? tool.method,
          args: tool.params,
          progress: item.progress === "asking" ? "asking" : "running",
          since: now,
          // Output of an earlier attempt is made again.
          output: "",
          local: true
        }
      case "output":
        return printed(item, tool.data)
      case "ended":
        return {
          ...item,
          progress: tool.ok ? "ok" : tool.denied ? "denied" : "failed",
          durationMillis: tool.durationMs,
          error: tool.error?.message ?? "",
          result: tool.result,
          local: true
        }
      default:
        return item
    }
  })
