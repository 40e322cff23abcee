import { hash } from "node:crypto"
import type { ChatRequest } from "../ChatRequest.ts"

/** Conversations in memory; the oldest is forgotten first. */
const conversationsMax = 1_000

/**
 * The number of times that a conversation met a fault that its plan wants a few times only. It is all that the sandbox
 * remembers, and only such plans use it: a restarted sandbox counts from the beginning.
 */
export class Faults {
  private readonly met = new Map<string, number>()

  /** Whether the fault is due; if so, counts it. */
  isDue(messages: ChatRequest["messages"], times: number): boolean {
    if (times === Infinity) return true
    const conversation = hash("sha256", JSON.stringify(messages), "base64url")
    const before = this.met.get(conversation) ?? 0
    if (before >= times) return false
    this.met.delete(conversation)
    this.met.set(conversation, before + 1)
    const [oldest] = this.met.keys()
    if (this.met.size > conversationsMax && oldest !== undefined) this.met.delete(oldest)
    return true
  }
}
