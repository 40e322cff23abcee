import type { ToolError, ToolMethod } from "#schemas/agents/ToolCall.ts"

/** What the connection needs of whoever runs the tools on this machine. */
export interface ToolRunner {
  /** Never fails: what goes wrong is an outcome that is not ok. */
  run(call: LocalCall, hooks: CallHooks): Promise<Outcome>
}

export interface LocalCall {
  readonly callId: string
  readonly method: ToolMethod
  /** as the server sent them: not to be trusted */
  readonly params: unknown
  readonly timeoutMillis: number
}

export interface CallHooks {
  /** the call is to end: aborted, timed out at the server, or the client is closing */
  readonly signal: AbortSignal
  readonly onOutput: (stream: "stdout" | "stderr", data: string) => void
  /**
   * Awaited after everything has been checked and approved, before the first side effect: it notes durably that the
   * call begins. Where it fails, the call must not be made.
   */
  readonly begin: () => Promise<void>
}

export type Outcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: ToolError; readonly denied: boolean }
