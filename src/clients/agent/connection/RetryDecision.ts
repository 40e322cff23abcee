import {
  closeCodes,
  type AgentErrorCode,
  type ErrorFrame,
  type ServerBye
} from "#schemas/agents/ServerFrame.ts"
import type { ClosedReason } from "./ClientEvents.ts"

/** The end of an attempt or a connection. */
export type SocketEnd =
  /** an answer of HTTP instead of the upgrade */
  | {
      readonly kind: "refused"
      readonly status: number
      readonly words?: string
      readonly retryAfterMillis: number
    }
  /** no answer, or none in time */
  | { readonly kind: "failed"; readonly problem: string }
  | {
      readonly kind: "closed"
      readonly code: number
      /** the server's last words before it */
      readonly bye?: ServerBye
      readonly error?: ErrorFrame
    }

export type RetryDecision =
  | {
      readonly retry: true
      /** the server asks to come back: it restarts, moves the session, or had to drop a slow reader */
      readonly atOnce: boolean
      readonly askedMillis: number
      readonly problem: string
    }
  | { readonly retry: false; readonly reason: ClosedReason; readonly problem: string }

const final = (reason: ClosedReason, problem: string): RetryDecision => ({ retry: false, reason, problem })
const again = (problem: string, askedMillis = 0, atOnce = false): RetryDecision => ({
  retry: true,
  atOnce,
  askedMillis,
  problem
})

const supersededText = "Another client has taken this session over"
const revokedText = "The key was revoked"

const passing: ReadonlySet<AgentErrorCode> = new Set([
  "busy",
  "rate_limited",
  "overloaded",
  "upstream_error",
  "internal"
])

const ofRefusal = (end: SocketEnd & { readonly kind: "refused" }, wasAttached: boolean): RetryDecision => {
  const words = end.words ?? `The server answered ${end.status}`
  if (end.status === 401) return final("key_refused", `The server does not take this key: ${words}`)
  if (end.status === 403) return final("key_refused", `This key may not open agent sessions: ${words}`)
  if (end.status === 402) return final("no_credits", `Nothing is left to pay model calls with: ${words}`)
  if (end.status === 429 || end.status >= 500) return again(words, end.retryAfterMillis)
  // A proxy may not find its server while that is started again.
  if (wasAttached) return again(words)
  return final("no_gateway", `There is no agent gateway at this address: ${words}`)
}

const ofBye = (bye: ServerBye): RetryDecision => {
  if (bye.reason === "superseded") return final("superseded", supersededText)
  if (bye.reason === "revoked") return final("revoked", revokedText)
  if (bye.reason === "client_bye") return final("bye", "The session was left")
  if (bye.reason === "ended") return final("ended", "The session was ended by its owner")
  return final("ended", `The server ended the session: ${bye.reason}`)
}

const ofClose = (end: SocketEnd & { readonly kind: "closed" }): RetryDecision => {
  const { bye, code, error } = end
  if (code === closeCodes.superseded) return final("superseded", supersededText)
  if (code === closeCodes.revoked) return final("revoked", revokedText)
  if (bye !== undefined && !bye.resumable) return ofBye(bye)
  const askedMillis = bye?.retryAfterMs ?? error?.retryAfterMs ?? 0
  if (error?.fatal === true && !passing.has(error.code)) {
    return final(error.code === "insufficient_credits" ? "no_credits" : "refused", error.message)
  }
  if (error?.fatal === true) return again(error.message, askedMillis)
  if (code === closeCodes.protocol) {
    return final("refused", "The server and this client do not understand one another")
  }
  const problem =
    bye === undefined ? "The connection was lost" : `The server closed the connection: ${bye.reason}`
  const asksBack = code === closeCodes.restart || code === closeCodes.slow || code === closeCodes.idle
  return again(problem, askedMillis, asksBack || bye?.reason === "moved")
}

/** Whether to connect again. Source: contract/agents#close-codes, contract/agents#transport. */
export const decideRetry = (end: SocketEnd, wasAttached: boolean): RetryDecision => {
  if (end.kind === "refused") return ofRefusal(end, wasAttached)
  if (end.kind === "failed") return again(end.problem)
  return ofClose(end)
}
