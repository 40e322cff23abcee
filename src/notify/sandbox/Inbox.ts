import { sandboxLimits as limits } from "./Limits.ts"

/** States of a push: `waiting` for a browser that is offline; `replaced` by a later one of its topic; `expired` at its TTL. */
export type PushState = "delivered" | "waiting" | "replaced" | "expired" | "cancelled"

/** A request to a channel. */
export interface Entry {
  /** counts up from 1 */
  readonly seq: number
  readonly kind: "push" | "webhook" | "slack" | "discord" | "telegram"
  /** the id of the subscription, webhook or chat; null where there is none at the address */
  readonly channel: string | null
  readonly receivedAt: string
  /** The service took it: what it says was delivered. */
  readonly accepted: boolean
  /** the status that was answered; null: the connection was cut without an answer */
  readonly status: number | null
  /** why it was refused */
  readonly problem: string | null
  /** the id of the fault that was ordered for it */
  readonly fault: string | null
  /** The same topic, or `webhook-id`, was accepted before at this channel. */
  readonly repeated: boolean
  /** null where it is no push, and where it was not accepted */
  state: PushState | null
  /** headers that matter to the kind, in lower case, without signatures */
  readonly headers: Readonly<Record<string, string>>
  /** the claims of VAPID; null where it is no push, and where they are not good */
  readonly vapid: { readonly aud: string; readonly exp: number; readonly sub: string | null } | null
  /** whether a webhook's signature is good; null: its secret is not known here, or the kind has none */
  readonly signed: boolean | null
  /** the message: JSON where it is, else text; null where it could not be read */
  readonly payload: unknown
  /** bytes of the body as it came */
  readonly bytes: number
}

interface Kept {
  readonly entry: Entry
  /** bytes of the payload as it is held */
  readonly size: number
}

interface Waiter {
  readonly isMeant: (entry: Entry) => boolean
  readonly told: () => void
}

/** The requests that came, in order. */
export class Inbox {
  #kept: Array<Kept> = []
  #size = 0
  #seq = 0
  #accepted = 0
  #repeated = 0
  #forgotten = 0
  readonly #known = new Set<string>()
  readonly #waiters = new Set<Waiter>()

  /** How many came since the start or the last clearing; `forgotten` ones made room for later ones. */
  get counts() {
    const received = this.#kept.length + this.#forgotten
    return { received, accepted: this.#accepted, repeated: this.#repeated, forgotten: this.#forgotten }
  }

  /** the number of the last one that ever came */
  get last(): number {
    return this.#seq
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /** Whether this id was accepted before at the channel; it is known from now on if `isAccepted`. */
  isRepeated(channel: string, id: string | undefined, isAccepted: boolean): boolean {
    if (id === undefined) return false
    const name = `${channel} ${id}`
    if (this.#known.has(name)) return true
    if (!isAccepted) return false
    this.#known.add(name)
    for (const oldest of this.#known) {
      if (this.#known.size <= limits.knownIds) break
      this.#known.delete(oldest)
    }
    return false
  }

  add(fields: Omit<Entry, "seq">): Entry {
    const entry: Entry = { seq: ++this.#seq, ...fields }
    const size = entry.payload === null ? 0 : entry.bytes
    this.#kept.push({ entry, size })
    this.#size += size
    if (entry.accepted) this.#accepted++
    if (entry.repeated) this.#repeated++
    this.#makeRoom()
    for (const waiter of this.#waiters) if (waiter.isMeant(entry)) waiter.told()
    return entry
  }

  #makeRoom(): void {
    // Many at once: an array loses its first element at the cost of all others.
    if (this.#kept.length <= limits.entries && this.#size <= limits.entryBytes) return
    let gone = Math.ceil(this.#kept.length / 10)
    this.#size -= sizeOf(this.#kept.slice(0, gone))
    while (this.#size > limits.entryBytes) this.#size -= this.#kept[gone++]?.size ?? 0
    this.#kept = this.#kept.slice(gone)
    this.#forgotten += gone
  }

  /** Those after a number, the oldest first. */
  list(after: number, limit: number, isMeant: (entry: Entry) => boolean): ReadonlyArray<Entry> {
    const found: Array<Entry> = []
    for (let at = this.#indexAfter(after); at < this.#kept.length && found.length < limit; at++) {
      const kept = this.#kept[at]
      if (kept !== undefined && isMeant(kept.entry)) found.push(kept.entry)
    }
    return found
  }

  /** The last ones, the newest first. */
  newest(limit: number): ReadonlyArray<Entry> {
    return this.#kept
      .slice(-limit)
      .map(({ entry }) => entry)
      .toReversed()
  }

  #indexAfter(seq: number): number {
    const first = this.#kept[0]?.entry.seq ?? 1
    return Math.max(0, seq - first + 1)
  }

  /** Calls back at the next one that is meant. @returns gives the waiting up */
  wait(isMeant: (entry: Entry) => boolean, then: () => void): () => void {
    const waiter: Waiter = { isMeant, told: then }
    this.#waiters.add(waiter)
    return () => void this.#waiters.delete(waiter)
  }

  /** Numbers go on. */
  clear(): void {
    this.#kept = []
    this.#size = this.#accepted = this.#repeated = this.#forgotten = 0
    this.#known.clear()
  }
}

const sizeOf = (kept: ReadonlyArray<Kept>): number => kept.reduce((sum, { size }) => sum + size, 0)
