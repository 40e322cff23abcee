import type { ToolErrorCode, ToolMethod } from "#schemas/agents/ToolCall.ts"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"

/** A call as the server requests it. Nothing in it is trusted. */
export interface ToolCall {
  readonly callId: string
  readonly method: ToolMethod
  readonly params: unknown
  readonly timeoutMs: number
}

/** `denied`: this machine's rules or its user refused; otherwise the tool itself failed. */
export type ToolOutcome =
  | { readonly ok: true; readonly result: unknown }
  | {
      readonly ok: false
      readonly error: { readonly code: ToolErrorCode; readonly message: string }
      readonly denied?: true
    }

export interface ToolHooks {
  /** stops the call; its outcome is then `cancelled` */
  readonly signal: AbortSignal
  /** output of a command as it comes, whole characters, each piece once and in order */
  readonly onOutput: (stream: "stdout" | "stderr", data: string) => void
  /** asks the user, before anything is done. Without a user to ask it answers "no". */
  readonly approve: (ask: ApprovalAsk) => Promise<Approval>
}

/** Of a call that takes its turn among others. */
export interface TurnHooks extends ToolHooks {
  /** done when the call may begin: its turn has come, and nothing was done so far. It is not made where this fails. */
  readonly begin: () => Promise<void>
}
