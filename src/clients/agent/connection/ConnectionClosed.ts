import type { ClosedReason } from "./ClientEvents.ts"

/** The connection ended, or never came to be, and trying again is of no use. The message is for the user. */
export class ConnectionClosed extends Error {
  override readonly name = "ConnectionClosed"
  readonly reason: ClosedReason

  constructor(reason: ClosedReason, problem: string) {
    super(problem)
    this.reason = reason
  }
}

/** A prompt or steer is longer than the protocol allows. */
export class PromptTooLong extends Error {
  override readonly name = "PromptTooLong"
}
