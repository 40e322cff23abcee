import { sandboxLimits as limits } from "./Limits.ts"
import { bad, Fields, SandboxRefusal } from "./SandboxRequest.ts"

/** A fault that was ordered for requests to channels. */
export interface Fault {
  readonly id: string
  /** the id of a subscription or webhook; null: all of them */
  readonly channel: string | null
  /** the answer, in place of the channel's own; the request is not accepted */
  readonly status: number | null
  /** `Retry-After` of that answer: seconds or a date */
  readonly retryAfter: string | null
  /** the body of that answer */
  readonly body: string | null
  /** the answer comes so much later; it was counted before */
  readonly delayMillis: number
  /** The connection is reset without an answer, before the request counts as accepted or after it. */
  readonly cut: "before" | "after" | null
  /** requests that are still to be changed; null: all */
  left: number | null
}

const cuts = ["before", "after"] as const

/** The faults on order; for a request the oldest that is meant for it counts. */
export class Faults {
  readonly #ordered = new Map<string, Fault>()
  #made = 0

  order(fields: Fields, channelOf: (target: string) => string | undefined): Fault {
    if (this.#ordered.size >= limits.faults)
      throw new SandboxRefusal(429, `at most ${limits.faults} faults are on order at once`)
    const fault = read(fields, `flt_${++this.#made}`, channelOf)
    this.#ordered.set(fault.id, fault)
    return fault
  }

  get list(): ReadonlyArray<Fault> {
    return [...this.#ordered.values()]
  }

  /** The fault for a request, which is one less from now on. */
  take(channel: string | undefined, areAllMeant = true): Fault | undefined {
    for (const fault of this.#ordered.values()) {
      if (fault.channel === null ? !areAllMeant : fault.channel !== channel) continue
      if (fault.left !== null && --fault.left === 0) this.#ordered.delete(fault.id)
      return fault
    }
    return undefined
  }

  /** One that was ordered for this very target. */
  takeFor(target: string): Fault | undefined {
    const isMeant = [...this.#ordered.values()].some(({ channel }) => channel === target)
    return isMeant ? this.take(target, false) : undefined
  }

  remove(id: string): boolean {
    return this.#ordered.delete(id)
  }

  clear(): void {
    this.#ordered.clear()
  }
}

const read = (fields: Fields, id: string, channelOf: (target: string) => string | undefined): Fault => {
  const target = fields.text("target")
  const channel = target === undefined ? null : channelOf(target)
  if (channel === undefined) throw bad("target: expected the address or id of a subscription or webhook")
  const fault: Fault = {
    id,
    channel,
    status: fields.integer("status", 200, 599) ?? null,
    retryAfter: fields.text("retryAfter", /^[\x20-\x7e]{1,100}$/u, "expected 1 to 100 characters") ?? null,
    body: fields.text("body", /^[^]{0,4096}$/u, "expected at most 4096 characters") ?? null,
    delayMillis: fields.integer("delayMillis", 0, limits.delayMillis) ?? 0,
    cut: fields.oneOf("cut", cuts) ?? null,
    left: fields.flag("always") === true ? null : (fields.integer("times", 1, limits.faultTimes) ?? 1)
  }
  if (fault.status === null && fault.cut === null && fault.delayMillis === 0)
    throw bad("status: one of status, cut and delayMillis is required")
  if (fault.status !== null && fault.cut !== null) throw bad("cut: a request that is cut has no status")
  if (fault.status === null && (fault.retryAfter !== null || fault.body !== null))
    throw bad("status: is required with retryAfter and body")
  return fault
}
