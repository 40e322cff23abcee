import type { AgentBilling, AgentModel } from "#schemas/agents/ServerFrame.ts"
import type { ThinkingLevel } from "#schemas/agents/ClientFrame.ts"
import type { ClosedReason } from "../connection/ClientEvents.ts"

/** The terminal's contents, as data. Every text in it is safe to print. */
export interface TerminalState {
  /** in the order in which they are shown */
  readonly items: ReadonlyArray<Item>
  /** older items that are not kept any more */
  readonly forgotten: number
  readonly queue: ReadonlyArray<Queued>
  readonly link: Link
  readonly session: SessionFacts | undefined
  /** the prompt that is worked on */
  readonly active: { readonly id: string; readonly since: number } | undefined
  /** USD by prompt: of its messages so far, and of all of it when it is done */
  readonly costs: Readonly<Record<string, number>>
  /** tokens in the context of the last call */
  readonly contextTokens: number
  readonly totalTokens: number
  /** whole thoughts and outputs instead of their beginnings */
  readonly expanded: { readonly thinking: boolean; readonly tools: boolean }
}

export interface SessionFacts {
  readonly id: string
  readonly model: AgentModel
  readonly thinkingLevel: ThinkingLevel
  readonly billing: AgentBilling
  /** frames up to this number tell what was before the session was attached, last */
  readonly replayedTo: number
  /** the prompt that was worked on then */
  readonly activePrompt: string | undefined
}

export type Link =
  | { readonly state: "connecting"; readonly attempt: number }
  | { readonly state: "connected" }
  | { readonly state: "waiting"; readonly retryAt: number; readonly problem: string }
  | { readonly state: "closed"; readonly reason: ClosedReason; readonly problem: string }

export interface Queued {
  readonly id: string
  readonly text: string
  readonly mode: "steer" | "follow_up"
}

export type Item = PromptItem | MessageItem | ToolItem | NoticeItem

interface PromptItem {
  readonly kind: "prompt"
  readonly id: string
  readonly text: string
  /** files whose text was sent with it */
  readonly files: ReadonlyArray<string>
}

export interface MessagePart {
  readonly index: number
  readonly type: "text" | "thinking"
  readonly text: string
}

export interface MessageItem {
  readonly kind: "message"
  readonly id: string
  readonly parts: ReadonlyArray<MessagePart>
  /** `left`: it was never finished, and the following item takes its place */
  readonly progress: "open" | "done" | "left"
}

export type ToolProgress = "called" | "asking" | "running" | "ok" | "failed" | "denied"

export interface ToolItem {
  readonly kind: "tool"
  readonly id: string
  readonly tool: string
  readonly args: unknown
  readonly progress: ToolProgress
  /** epoch milliseconds; of a call that runs */
  readonly since: number
  readonly durationMillis: number
  readonly error: string
  /** the end of what it printed */
  readonly output: string
  /** the output comes from this machine: the server's copy of it adds nothing */
  readonly local: boolean
  /** by method, where this machine ran it */
  readonly result: unknown
}

export interface NoticeItem {
  readonly kind: "notice"
  readonly level: "info" | "warning" | "error"
  readonly text: string
}

/** Bounds of what is kept and drawn. */
export const terminalLimits = {
  /** when there are so many items … */
  items: 1_500,
  /** … the oldest are forgotten down to this: rarely, since the whole screen is drawn anew */
  itemsKept: 1_000,
  /** characters of one prompt, message part or output that are drawn */
  textCharacters: 200_000,
  /** characters of the end of a call's output */
  outputCharacters: 16_384,
  /** lines of output below a call that runs, or that failed */
  outputLines: 6,
  /** lines of the last thought, while it comes */
  thinkingLines: 4,
  /** lines of a diff, unless all is shown */
  diffLines: 24
} as const

export const emptyState: TerminalState = {
  items: [],
  forgotten: 0,
  queue: [],
  link: { state: "connecting", attempt: 1 },
  session: undefined,
  active: undefined,
  costs: {},
  contextTokens: 0,
  totalTokens: 0,
  expanded: { thinking: false, tools: false }
}
