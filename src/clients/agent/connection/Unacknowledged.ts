import type { Compact, Prompt, Steer } from "#schemas/agents/ClientFrame.ts"
import type { Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"

export type Sayable = Prompt | Steer | Compact

/** Whether a frame shows that the server has, or has refused, the message with this id. */
const acknowledges = (frame: ServerFrame, id: string): boolean => {
  if (frame.type === "prompt.done") return frame.id === id
  if (frame.type === "error") return frame.id === id
  if (frame.type !== "event") return false
  if (frame.kind === "steer_applied") return frame.id === id
  if (frame.kind === "queue_update") return frame.queue.some((waiting) => waiting.id === id)
  return frame.promptId === id
}

/** The user's messages that the server has not acknowledged: sent again, with the same ids, after each reconnect. */
export class Unacknowledged {
  private sayables: ReadonlyArray<Sayable> = []

  add(sayable: Sayable): void {
    this.sayables = [...this.sayables, sayable]
  }

  has(id: string): boolean {
    return this.sayables.some((sayable) => sayable.id === id)
  }

  /** In the order in which it was said. */
  all(): ReadonlyArray<Sayable> {
    return this.sayables
  }

  take(frame: ServerFrame): void {
    this.sayables = this.sayables.filter(({ id }) => !acknowledges(frame, id))
  }

  takeReady({ activePrompt }: Ready): void {
    this.sayables = this.sayables.filter(({ id }) => id !== activePrompt)
  }

  clear(): void {
    this.sayables = []
  }
}
