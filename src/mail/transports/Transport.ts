import type { Effect } from "effect"

/** One message for one recipient, on its way to the next hop. */
export interface Handover {
  readonly deliveryId: string
  readonly owner: string
  readonly messageId: string
  readonly envelope: { readonly from: string; readonly to: string }
  /** the message in parts, in order: lines end with CRLF, 7-bit */
  readonly message: ReadonlyArray<Uint8Array>
  /**
   * Runs once before the last byte leaves, to write down that it does. False: another process has the delivery, and the
   * message is not ended.
   */
  readonly ending: Effect.Effect<boolean>
}

/**
 * The end of a hand-over, with the reply of the next hop (or why there is none) of at most 500 characters.
 *
 * - Sent: the next hop has taken the message (2xx).
 * - Bounced, Deferred: it refuses the recipient or the message, for good (5xx) or at this time (4xx).
 * - Unknown: the last byte has left, and there is no reply.
 * - RouteDown: the next hop cannot be used, which says nothing of the recipient. The message was not taken.
 * - SenderRefused: it refuses the envelope's sender, which says nothing of the recipient, nor of other senders.
 * - Withdrawn: `ending` was false, or what this server plays needs the store, which is away. The message was not taken.
 */
export type Handed =
  | {
      readonly _tag: "Sent" | "Bounced" | "Deferred" | "Unknown" | "RouteDown" | "SenderRefused"
      readonly reply: string
    }
  | { readonly _tag: "Withdrawn" }

/** A way out for mail. Interrupting `handOver` ends its connection. */
export interface Transport {
  readonly name: "sandbox" | "smtp" | "direct"
  readonly handOver: (handover: Handover) => Effect.Effect<Handed>
}
