/**
 * State: this process's leases of one user's limits, the calls that hold it, and those that wait for it.
 * Messages: `admitNow` and the ends of holds, synchronously; `wait` puts a call in line, which one fiber serves.
 * Limits: calls in line per user and how long each waits, see `LeaseOptions`; beyond them a call is refused as busy.
 * Restart policy: the kernel's; the next life leases anew, holds of the one before end by themselves.
 * In a crash of this actor free credit is given back; in one of the process its leases, at the next start.
 */
import * as Effect from "effect/Effect"
import { Wakeup } from "../kernel/Wakeup.ts"
import { type Choice, Hold } from "./Hold.ts"
import {
  above,
  affordable,
  HoldRefused,
  type LeaseAsk,
  type LeaseOptions,
  least,
  type Outcome,
  type Pass,
  type Refused,
  type Waiter
} from "./LeaseAsk.ts"
import type { LeaseRow } from "./LeaseRow.ts"
import { LeaseTable } from "./LeaseTable.ts"
import type { GrantAsk, LimitGrants, LimitsAway } from "./LimitGrants.ts"

/** Calls in line for which one statement asks together, where others want of the same limits. */
const waitersAhead = 64

export class CreditLease {
  private readonly userId: string
  private readonly grants: LimitGrants["Service"]
  private readonly options: LeaseOptions
  private readonly now: () => number
  private readonly table: LeaseTable
  private waiters: Array<Waiter> = []
  /** those of them that are not gone */
  private inLine = 0
  private scarceUntilMillis = -Infinity
  private recalledAtMillis = -Infinity
  private toppedUpAtMillis = -Infinity
  private tickedAtMillis = -Infinity
  private isLow = false
  private readonly work = new Wakeup()

  constructor(userId: string, grants: LimitGrants["Service"], options: LeaseOptions, now: () => number) {
    this.userId = userId
    this.grants = grants
    this.options = options
    this.now = now
    this.table = new LeaseTable(grants, now)
  }

  /** A hold of all that is wanted, from what is leased; undefined: `wait` has to ask. */
  admitNow(ask: LeaseAsk): Hold | undefined {
    if (this.inLine > 0) return undefined
    for (const choice of ask.choices) {
      const amount = choice.amountOf(ask.tokens)
      const rows = this.table.of(choice)
      if (rows !== undefined && rows.every((row) => row.free >= amount)) {
        return this.hold(choice, ask.tokens, rows, amount)
      }
      if (!this.table.isUsedUp(choice, ask.tokensMin)) return undefined
    }
    return undefined
  }

  /** A place in line, first come first served, for as long as the options say. */
  wait(ask: LeaseAsk, extend?: Hold): Effect.Effect<Hold, Refused> {
    return Effect.callback((resume) => {
      if (this.inLine >= this.options.waiting) {
        return resume(Effect.fail(new HoldRefused(ask.choices.at(-1)?.limits[0] ?? "", true)))
      }
      const untilMillis = this.now() + this.options.waitMillis
      const waiter: Waiter = {
        ask,
        extends: extend,
        untilMillis,
        resume,
        isGone: false,
        recallUntilMillis: undefined
      }
      // A stream that runs goes before calls that have not begun.
      if (extend === undefined) this.waiters.push(waiter)
      else this.waiters.unshift(waiter)
      this.inLine++
      this.wake()
      return Effect.sync(() => this.leave(waiter))
    })
  }

  /** Makes a hold cover more output tokens, from what is leased; false: `wait` has to ask. */
  extendNow(hold: Hold, tokens: number): boolean {
    if (hold.ended) return false
    const amount = hold.choice.amountOf(tokens) - hold.amount
    const rows = this.table.of(hold.choice)
    if (rows === undefined || !rows.every((row) => row.free >= amount)) return false
    this.holdMore(hold, tokens, rows, amount)
    return true
  }

  /** Gives free credit to a process that needs it; those in line here cannot use it, or had their turn. */
  recalled(): void {
    this.scarceUntilMillis = this.now() + this.options.scarceMillis
    this.table.giveBackFree(this.userId)
  }

  /** Something may be there now for those in line. */
  wake(): void {
    this.work.set()
  }

  /** Free credit is given back now, held credit when its hold ends. */
  close(): void {
    this.table.close()
    for (const waiter of this.waiters.splice(0)) this.finish(waiter, Effect.fail(new HoldRefused("", true)))
  }

  /** The fiber that serves the line and keeps the lease at its size. */
  readonly run: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forever(Effect.andThen(this.awaitWork, Effect.andThen(this.serve, this.tend)))
  )

  private readonly awaitWork = Effect.suspend(() => {
    if (this.inLine > 0) return this.work.wait(this.options.pollMillis)
    return this.work.wait(this.table.isEmpty ? Infinity : 1_000)
  })

  private readonly serve = Effect.suspend(() => {
    const pass: Pass = { claimed: new Set(), reaches: new Map(), away: undefined }
    const inLine = this.waiters.slice()
    return Effect.forEach(inLine, (waiter) => (waiter.isGone ? Effect.void : this.serveOne(waiter, pass)), {
      discard: true
    }).pipe(
      Effect.andThen(
        Effect.sync(() => {
          this.waiters = this.waiters.filter(({ isGone }) => !isGone)
        })
      )
    )
  })

  private serveOne(waiter: Waiter, pass: Pass): Effect.Effect<void> {
    return this.outcomesOf(waiter, pass).pipe(
      Effect.matchEffect({
        onFailure: (away) => {
          pass.away = away
          return Effect.sync(() => this.finish(waiter, Effect.fail(away)))
        },
        onSuccess: (outcomes) => this.conclude(waiter, outcomes, pass)
      })
    )
  }

  /** Tries the choices in order, until one is taken. */
  private outcomesOf(waiter: Waiter, pass: Pass) {
    return Effect.gen({ self: this }, function* () {
      const outcomes: Array<Outcome> = []
      for (const choice of waiter.ask.choices) {
        const limit = choice.limits.find((name) => pass.claimed.has(name))
        // An earlier call in line has just asked in vain: there is nothing to ask.
        const outcome: Outcome =
          limit === undefined
            ? yield* this.attempt(waiter, choice, pass)
            : this.now() >= waiter.untilMillis
              ? this.judge(waiter, choice)
              : { is: "held", limit, elsewhere: false, choice, tokens: undefined }
        outcomes.push(outcome)
        if (outcome.is === "taken") break
        if (outcome.is === "held" && (outcome.elsewhere || limit !== undefined) && this.isRecalling(waiter))
          break
      }
      return outcomes
    })
  }

  /** Other processes may hold the credit, or only lease it: leased credit comes back soon. */
  private isRecalling(waiter: Waiter): boolean {
    const now = this.now()
    waiter.recallUntilMillis ??= now + 2 * this.options.pollMillis
    return now < Math.min(waiter.recallUntilMillis, waiter.untilMillis)
  }

  private conclude(waiter: Waiter, outcomes: ReadonlyArray<Outcome>, { claimed }: Pass): Effect.Effect<void> {
    return Effect.suspend(() => {
      const last = outcomes.at(-1)
      if (last?.is === "taken") {
        this.finish(waiter, Effect.succeed(last.hold))
        return Effect.void
      }
      const held = outcomes.filter((outcome) => outcome.is === "held")
      if (held.length === 0) {
        this.finish(waiter, Effect.fail(new HoldRefused(last?.limit ?? "", false)))
        return Effect.void
      }
      if (this.now() >= waiter.untilMillis) {
        const refused = Effect.fail(new HoldRefused(last?.limit ?? "", true))
        this.finish(waiter, this.clamped(waiter, held) ?? refused)
        return Effect.void
      }
      for (const { limit } of held) claimed.add(limit)
      return held.some(({ elsewhere }) => elsewhere) ? this.recall : Effect.void
    })
  }

  /** After the wait the available credit has to do. */
  private clamped(waiter: Waiter, held: ReadonlyArray<Outcome & { readonly is: "held" }>) {
    for (const { choice, tokens } of held) {
      const hold = tokens === undefined ? undefined : this.take(waiter, choice, tokens)
      if (hold !== undefined) return Effect.succeed(hold)
    }
    return undefined
  }

  private attempt(waiter: Waiter, choice: Choice, pass: Pass): Effect.Effect<Outcome, LimitsAway> {
    return Effect.gen({ self: this }, function* () {
      const { ask } = waiter
      const taken = this.take(waiter, choice, ask.tokens)
      if (taken !== undefined) return { is: "taken", hold: taken }
      const base = waiter.extends?.amount ?? 0n
      const need = choice.amountOf(ask.tokensMin) - base
      const short = choice.limits.find((limit) => need > (pass.reaches.get(limit) ?? need))
      if (short !== undefined) return { is: "short", limit: short }
      if (base === 0n && this.table.isUsedUp(choice, ask.tokensMin)) {
        return { is: "short", limit: choice.limits[0] ?? "" }
      }
      if (pass.away !== undefined) return yield* pass.away
      yield* this.table.lease(choice.limits, (limit) =>
        this.askFor(limit, need, choice.amountOf(ask.tokens) - base)
      )
      const outcome = this.judge(waiter, choice)
      if (outcome.is === "short") pass.reaches.set(outcome.limit, this.table.get(outcome.limit)?.reach ?? 0n)
      return outcome
    })
  }

  /** Of one limit, for the call at hand and for those that come after it. */
  private askFor(limit: string, need: bigint, want: bigint): GrantAsk {
    const row = this.table.get(limit)
    const free = row?.free ?? 0n
    const more = this.isScarce()
      ? want * BigInt(Math.min(this.inLine, waitersAhead))
      : above((row?.level ?? 0n) + want, free)
    return { limit, need: above(need, free), want: above(want, free), more }
  }

  /** After asking: takes what there is, if holds do not stand in the way of more. */
  private judge(waiter: Waiter, choice: Choice): Outcome {
    const { ask } = waiter
    const base = waiter.extends?.amount ?? 0n
    const rows = this.table.of(choice)
    if (rows === undefined) {
      return { is: "held", limit: choice.limits[0] ?? "", elsewhere: false, choice, tokens: undefined }
    }
    const reachOf = (row: LeaseRow): bigint | undefined =>
      row.reach === undefined ? undefined : row.reach - (waiter.extends?.heldOf(row) ?? 0n)
    const reaches = rows.flatMap((row) => reachOf(row) ?? [])
    const reach = affordable(ask, choice, base, least(reaches))
    if (reach === undefined) {
      const short = rows.find((row) => reachOf(row) === least(reaches))
      return { is: "short", limit: short?.limit ?? "" }
    }
    const have = affordable(ask, choice, base, least(rows.map(({ free }) => free)))
    if (have !== undefined && have >= reach) {
      const hold = this.take(waiter, choice, have)
      if (hold !== undefined) return { is: "taken", hold }
    }
    const { limit } = rows.reduce((a, b) => (b.free < a.free ? b : a))
    return {
      is: "held",
      limit,
      elsewhere: rows.some(({ elsewhere }) => elsewhere > 0n),
      choice,
      tokens: have
    }
  }

  /** A hold of so much, if it is leased. */
  private take(waiter: Waiter, choice: Choice, tokens: number): Hold | undefined {
    if (waiter.isGone) return undefined
    const rows = this.table.of(choice)
    const amount = choice.amountOf(tokens) - (waiter.extends?.amount ?? 0n)
    if (rows === undefined || !rows.every((row) => row.free >= amount)) return undefined
    if (waiter.extends === undefined) return this.hold(choice, tokens, rows, amount)
    if (!waiter.extends.ended) this.holdMore(waiter.extends, tokens, rows, amount)
    return waiter.extends
  }

  private finish(waiter: Waiter, result: Effect.Effect<Hold, Refused>): void {
    if (waiter.isGone) return
    this.leave(waiter)
    waiter.resume(result)
  }

  private leave(waiter: Waiter): void {
    if (waiter.isGone) return
    waiter.isGone = true
    this.inLine--
    this.wake()
  }

  private hold(choice: Choice, tokens: number, rows: ReadonlyArray<LeaseRow>, amount: bigint): Hold {
    const now = this.now()
    for (const row of rows) {
      row.hold(amount, now)
      if (row.free < row.peak / 2n) this.runLow(now)
    }
    return new Hold(choice, tokens, { rows, amount }, this.ended)
  }

  private holdMore(hold: Hold, tokens: number, rows: ReadonlyArray<LeaseRow>, amount: bigint): void {
    const now = this.now()
    for (const row of rows) row.hold(amount, now)
    hold.extended(tokens, { rows, amount })
  }

  private readonly ended = (): void => {
    if (this.inLine > 0) this.wake()
    else if (this.isScarce()) this.table.giveBackFree(this.userId)
  }

  private runLow(now: number): void {
    if (this.isLow || this.isScarce() || now < this.toppedUpAtMillis + this.options.pollMillis) return
    this.isLow = true
    this.wake()
  }

  private isScarce(): boolean {
    return this.now() < this.scarceUntilMillis
  }

  private readonly recall = Effect.suspend(() => {
    const now = this.now()
    if (now < this.recalledAtMillis + this.options.pollMillis) return Effect.void
    this.recalledAtMillis = now
    this.scarceUntilMillis = now + this.options.scarceMillis
    // The line goes on without: it asks again, and fails if the limits stay away.
    return Effect.orElseSucceed(this.grants.recall(this.userId), () => undefined)
  })

  private readonly tend = Effect.suspend(() => {
    const now = this.now()
    if (now >= this.tickedAtMillis + 1_000) {
      this.tickedAtMillis = now
      this.table.tick(this.options.idleMillis)
    }
    if (!this.isLow) return Effect.void
    this.isLow = false
    this.toppedUpAtMillis = now
    // Only a convenience: calls that need it ask for themselves.
    return Effect.orElseSucceed(this.table.topUp, () => undefined)
  })
}
