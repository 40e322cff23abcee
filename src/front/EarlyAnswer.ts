import type { Ending } from "./HotExchange.ts"

/** The outcome of discarding the rest of a body: all of it came, it is too long to wait for, or it came too slowly. */
export type Discarded = "Complete" | "TooLong" | "TooSlow"

/** A body whose rest can be thrown away. */
interface Discardable {
  readonly isComplete: boolean
  /** it came too slowly already */
  readonly isSlow: boolean
  /** At once where it is complete. */
  discard(done: (outcome: Discarded) => void): void
}

const endings = { TooLong: "announce", TooSlow: "close" } as const

/** The one answer to a request of a raw route, which may be chosen before its body has come. */
export class EarlyAnswer {
  isChosen = false
  /** the answer says that its connection is not used again */
  isLast = false
  private readonly body: Discardable | undefined

  constructor(body: Discardable | undefined) {
    this.body = body
  }

  /** Calls `answer` once the body is out of the way; also where the client leaves meanwhile. */
  choose(answer: (ending: Ending) => void): void {
    const { body } = this
    this.isChosen = true
    const kept = this.isLast ? "announce" : "keep"
    if (body === undefined) answer(kept)
    else if (body.isSlow) answer("close")
    else body.discard((outcome) => answer(outcome === "Complete" ? kept : endings[outcome]))
  }

  /** the answer need not wait for the body */
  get isReady(): boolean {
    return this.body?.isComplete !== false
  }
}
