import type { Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import type { ToolError, ToolMethod } from "#schemas/agents/ToolCall.ts"

/** The events that a client sends to its observers. */

/**
 * Why a connection ended for good. `key_refused`, `unreachable` and `no_gateway` can only be a start's. `not_understood`:
 * a frame that cannot be done without says something that this version does not know.
 */
export const closedReasons = [
  "bye",
  "superseded",
  "revoked",
  "ended",
  "key_refused",
  "no_credits",
  "no_gateway",
  "refused",
  "locked",
  "unreachable",
  "not_understood"
] as const
export type ClosedReason = (typeof closedReasons)[number]

export type LinkState =
  | { readonly state: "connecting"; readonly attempt: number }
  | { readonly state: "connected"; readonly ready: Ready }
  /** the connection is gone, and the next attempt is made after so long */
  | { readonly state: "waiting"; readonly retryInMillis: number; readonly problem: string }
  | { readonly state: "closed"; readonly reason: ClosedReason; readonly problem: string }

export type ToolState =
  | {
      readonly state: "started"
      readonly callId: string
      readonly method: ToolMethod
      readonly params: unknown
    }
  | {
      readonly state: "output"
      readonly callId: string
      readonly stream: "stdout" | "stderr"
      readonly data: string
    }
  | {
      readonly state: "ended"
      readonly callId: string
      readonly ok: boolean
      readonly denied: boolean
      readonly durationMs: number
      /** by method, where ok */
      readonly result?: unknown
      readonly error?: ToolError
    }

export type ClientEvent =
  /** Each frame once, in the order of its `seq`; kinds that this version does not know are left out. */
  | { readonly type: "frame"; readonly frame: ServerFrame }
  | ({ readonly type: "link" } & LinkState)
  /** Something that the user should know and that changes nothing. */
  | { readonly type: "notice"; readonly level: "warning"; readonly text: string }
  /** Of a call that runs on this machine. */
  | ({ readonly type: "tool" } & ToolState)

export type ClientListener = (event: ClientEvent) => void
