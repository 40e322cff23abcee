import { Breaker } from "#actors/kernel/Breaker.ts"
import { type Refusal, Turns, type TurnsOptions } from "./Turns.ts"

export interface HostGatesOptions extends TurnsOptions {
  /** hosts of which failures are remembered; beyond it those that were asked first are forgotten */
  readonly hosts: number
  /** an attempt at a host that is being probed looks again so much later at most */
  readonly pauseMillis: number
  /** failures in a row after which a host rests … */
  readonly failuresMax: number
  /** … for so long at first, doubled each time its probe fails … */
  readonly openMinMillis: number
  /** … up to this */
  readonly openMaxMillis: number
}

/** The end of an attempt, as it speaks for the host. "moot": the host was not asked, or had no part in the end. */
export type HostHealth = "well" | "failed" | "moot"

/** An attempt may be made. It is given back with `leave`, once. */
export interface Pass {
  readonly leave: (health: HostHealth) => void
}

interface Waiter {
  readonly timer: NodeJS.Timeout
  readonly end: (entry: Pass | Refusal) => void
}

/** One host: attempts under way, those that wait for one of them to end, and how it does. */
class HostGate {
  underWay = 0
  readonly waiting = new Set<Waiter>()
  readonly breaker: Breaker
  readonly turns = new Turns()

  constructor({ failuresMax, openMaxMillis, openMinMillis }: HostGatesOptions) {
    this.breaker = new Breaker({ failuresMax, openMinMillis, openMaxMillis, limitedMillis: 0 })
  }
}

/**
 * Lets so many attempts through to each host, and none to one that rests because it fails. Attempts wait here only behind as
 * many others, and only where the host is fast: each of them is one of the few that the process makes at once. The others are
 * refused, with the time until the host has a turn for them. State: of hosts with attempts, waiting ones or failures.
 */
export class HostGates {
  private readonly gates = new Map<string, HostGate>()
  private readonly options: HostGatesOptions
  private readonly now: () => number
  private isStopping = false

  constructor(options: HostGatesOptions, now: () => number = () => performance.now()) {
    this.options = options
    this.now = now
  }

  get size(): number {
    return this.gates.size
  }

  /**
   * `most` attempts at once; `end` is called once, now or within `turnMillis`. The turns of those of one
   * owner's that were sent away do not come before those of another's.
   */
  enter(owner: string, host: string, most: number, end: (entry: Pass | Refusal) => void): void {
    if (this.isStopping) return end({ restMillis: 0, isBusy: false })
    const gate = this.gates.get(host) ?? this.open(host)
    const now = this.now()
    const state = gate.breaker.state(now)
    if (state === "open") return end({ restMillis: this.untilProbe(gate, now), isBusy: false })
    const isFree = gate.underWay < most && gate.waiting.size === 0
    if (state === "probe" || isFree) return end(this.pass(host, gate, most))
    if (this.isRefused(gate, most)) return end(this.refusal(owner, gate, most))
    const waiter: Waiter = {
      end,
      timer: setTimeout(() => {
        gate.waiting.delete(waiter)
        end(this.refusal(owner, gate, most))
      }, this.options.turnMillis)
    }
    gate.waiting.add(waiter)
  }

  /** Milliseconds until the turn of an attempt that `enter` would refuse now; 0: it would not. */
  untilTurn(owner: string, host: string, most: number): number {
    const gate = this.gates.get(host)
    if (gate === undefined || this.isStopping) return 0
    const now = this.now()
    const state = gate.breaker.state(now)
    if (state === "open") return this.untilProbe(gate, now)
    const isFull = gate.underWay >= most && this.isRefused(gate, most)
    return state === "closed" && isFull ? this.refusal(owner, gate, most).restMillis : 0
  }

  /** Whether a host rests because it fails, or is being asked whether it still does. */
  isResting(host: string): boolean {
    const breaker = this.gates.get(host)?.breaker
    const now = this.now()
    if (breaker === undefined || breaker.state(now) === "closed") return false
    // Those that wait for its probe come within one pause, and a little later where the process is busy.
    return breaker.state(now) === "open" || now < breaker.openUntil + 2 * this.options.pauseMillis
  }

  /** Lets nothing more through: those who wait are refused, and due again at once. */
  stop(): void {
    this.isStopping = true
    for (const gate of this.gates.values()) this.refuseAll(gate, 0)
  }

  private open(host: string): HostGate {
    for (const [other, { underWay, waiting }] of this.gates) {
      if (this.gates.size < this.options.hosts) break
      if (underWay === 0 && waiting.size === 0) this.gates.delete(other)
    }
    const gate = new HostGate(this.options)
    this.gates.set(host, gate)
    return gate
  }

  private untilProbe({ breaker }: HostGate, now: number): number {
    // Those of one host do not come back all at once, nor before the first of them has told how it is.
    const { pauseMillis } = this.options
    return Math.max(breaker.openUntil - now, 0) + pauseMillis * Math.random()
  }

  /** Whether attempts that have no pass do not wait here: as many do, or the host is slow. */
  private isRefused({ turns, waiting }: HostGate, most: number): boolean {
    return waiting.size >= most || turns.meanMillis > this.options.turnMillis
  }

  private refusal(owner: string, gate: HostGate, most: number): Refusal {
    return gate.turns.next(owner, this.now(), most, this.options)
  }

  private pass(host: string, gate: HostGate, most: number): Pass {
    const began = this.now()
    gate.underWay++
    gate.breaker.begin()
    return {
      leave: (health) => {
        const now = this.now()
        gate.underWay--
        if (health === "well") gate.breaker.succeed()
        else if (health === "failed") gate.breaker.fail(now)
        else gate.breaker.withdraw()
        if (health !== "moot") gate.turns.ended(now - began)
        this.next(host, gate, most)
      }
    }
  }

  private next(host: string, gate: HostGate, most: number): void {
    const now = this.now()
    if (gate.breaker.state(now) !== "closed") this.refuseAll(gate, this.untilProbe(gate, now))
    const [first] = gate.waiting
    if (first !== undefined && gate.underWay < most) {
      gate.waiting.delete(first)
      clearTimeout(first.timer)
      first.end(this.pass(host, gate, most))
    }
    if (
      gate.underWay === 0 &&
      gate.waiting.size === 0 &&
      gate.breaker.isUntroubled &&
      gate.turns.areOver(now)
    )
      this.gates.delete(host)
  }

  private refuseAll(gate: HostGate, restMillis: number): void {
    for (const { end, timer } of gate.waiting) {
      clearTimeout(timer)
      end({ restMillis, isBusy: false })
    }
    gate.waiting.clear()
  }
}
