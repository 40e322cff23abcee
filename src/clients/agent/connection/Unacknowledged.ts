import type { Compact, Prompt, Steer } from "#schemas/agents/ClientFrame.ts"
import type { Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"

export type PromptFrame = Prompt | Steer | Compact

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
  private promptFrames: ReadonlyArray<PromptFrame> = []

  add(promptFrame: PromptFrame): void {
    this.promptFrames = [...this.promptFrames, promptFrame]
  }

  has(id: string): boolean {
    return this.promptFrames.some((promptFrame) => promptFrame.id === id)
  }

  /** In the order in which it was said. */
  all(): ReadonlyArray<PromptFrame> {
    return this.promptFrames
  }

  take(frame: ServerFrame): void {
    this.promptFrames = this.promptFrames.filter(({ id }) => !acknowledges(frame, id))
  }

  takeReady({ activePrompt }: Ready): void {
    this.promptFrames = this.promptFrames.filter(({ id }) => id !== activePrompt)
  }

  clear(): void {
    this.promptFrames = []
  }
}
