import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"

interface Waiting {
  readonly ask: ApprovalAsk
  readonly settle: (approval: Approval) => void
}

/** Calls that wait for the user's word, one after the other. */
export class ApprovalDesk {
  readonly #changed: (callId: string, waits: boolean) => void
  #waiting: ReadonlyArray<Waiting> = []

  /** `changed` is called whenever a call begins or ends to wait. */
  constructor(changed: (callId: string, waits: boolean) => void) {
    this.#changed = changed
  }

  /** The one to show, and how many wait with it. */
  get current(): { readonly ask: ApprovalAsk; readonly waiting: number } | undefined {
    const first = this.#waiting[0]
    return first === undefined ? undefined : { ask: first.ask, waiting: this.#waiting.length }
  }

  /** "no" where the call is gone before there was an answer. */
  ask(ask: ApprovalAsk, signal: AbortSignal): Promise<Approval> {
    if (signal.aborted) return Promise.resolve("no")
    return new Promise((resolve) => {
      const withdraw = (): void => this.#settle(waiting, "no")
      const waiting: Waiting = {
        ask,
        settle: (approval) => {
          signal.removeEventListener("abort", withdraw)
          resolve(approval)
        }
      }
      signal.addEventListener("abort", withdraw, { once: true })
      this.#waiting = [...this.#waiting, waiting]
      this.#changed(ask.callId, true)
    })
  }

  /** Answers the one that is shown, if it still is this one. */
  answer(ask: ApprovalAsk, approval: Approval): void {
    const first = this.#waiting[0]
    if (first?.ask === ask) this.#settle(first, approval)
  }

  /** No answer will come any more. */
  close(): void {
    for (const waiting of this.#waiting) this.#settle(waiting, "no")
  }

  #settle(waiting: Waiting, approval: Approval): void {
    if (!this.#waiting.includes(waiting)) return
    this.#waiting = this.#waiting.filter((other) => other !== waiting)
    waiting.settle(approval)
    this.#changed(waiting.ask.callId, false)
  }
}
