import type { Effect } from "effect"

/** A recipient's copy of a mail, on its way to the next hop. */
export interface Handover {
  readonly deliveryId: string
  readonly owner: string
  readonly messageId: string
  readonly envelope: { readonly from: string; readonly to: string }
  /** the message in parts, in order */
  readonly message: ReadonlyArray<Uint8Array>
  /** Written down before the last byte leaves. False: another process has the delivery; nothing may be ended. */
  readonly ending: Effect.Effect<boolean>
}

/**
 * The end of a try. `RouteDown`: the next hop's own fault, nothing was handed over. `Unknown`: the last byte may have arrived,
 * and no reply came. `Withdrawn`: another process has the delivery.
 */
export type Handed =
  | {
      readonly _tag: "Sent" | "Bounced" | "Deferred" | "Unknown" | "RouteDown"
      readonly reply: string
    }
  | { readonly _tag: "Withdrawn" }

/** A way to hand mail over. */
export interface Transport {
  readonly name: "sandbox" | "smtp" | "direct"
  readonly handOver: (handover: Handover) => Effect.Effect<Handed>
}
