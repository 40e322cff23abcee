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

const endings = { Complete: "keep", TooLong: "announce", TooSlow: "close" } as const

/** The one answer to a request of a raw route, which may be chosen before its body has come. */
export class EarlyAnswer {
  isChosen = false
  private readonly body: Discardable | undefined

  constructor(body: Discardable | undefined) {
    this.body = body
  }

  /** Calls `answer` once the body is out of the way; also where the client leaves meanwhile. */
  choose(answer: (ending: Ending) => void): void {
    const { body } = this
    this.isChosen = true
    if (body === undefined) answer("keep")
    else if (body.isSlow) answer("close")
    else body.discard((outcome) => answer(endings[outcome]))
  }

  /** the answer need not wait for the body */
  get isReady(): boolean {
    return this.body?.isComplete !== false
  }
}
