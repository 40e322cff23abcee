import type { HotReply } from "#src/front/HotRoute.ts"

/** Whether somebody still waits for the answer. */
export class Client {
  #isGone = false
  #isForsaken = false
  #isExpelled = false
  #stays = false
  readonly #listeners = new Set<() => void>()

  constructor(reply: Pick<HotReply, "onAbort">) {
    reply.onAbort(() => {
      if (!this.#stays) this.leave()
    })
  }

  /** The client is gone for good. */
  leave(): void {
    this.#isGone = true
    for (const listener of this.#listeners) listener()
    this.#listeners.clear()
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** It went because this platform ended it, not of its own will: what it was told is the platform's loss. */
  get isForsaken(): boolean {
    return this.#isForsaken
  }

  abandon(): void {
    this.#isForsaken = true
  }

  /** Its key has ended: it counts as gone from here on, having been told why. */
  expel(): void {
    this.#isExpelled = true
    this.leave()
  }

  /** Why there was nobody to answer any more, as it is written down. */
  get goneCode(): "client_gone" | "invalid_api_key" {
    return this.#isExpelled ? "invalid_api_key" : "client_gone"
  }

  /** The answer is wanted even if nobody waits for it: from here on nobody leaves. */
  stay(): void {
    this.#stays = true
  }

  /** Called once when the client goes away; the answer takes it back. */
  onGone(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
