import type { LeaseRow } from "./LeaseRow.ts"

/** Held of each of these limits. */
interface Part {
  readonly rows: ReadonlyArray<LeaseRow>
  readonly amount: bigint
}

export interface Drawn {
  readonly limit: string
  readonly windowStart: number
  amount: bigint
}

interface Settled {
  readonly draws: ReadonlyArray<Drawn>
  /** of each limit */
  readonly drawn: bigint
}

/** The limits that may pay a call, and the amount it takes of each. */
export interface Choice {
  /** in their order */
  readonly limits: ReadonlyArray<string>
  /** with so many output tokens; rises with them */
  readonly amountOf: (outputTokens: number) => bigint
}

/** One draw of each limit and window, also where the hold was extended in another life of the actor. */
const draw = (draws: Array<Drawn>, { limit, windowStart }: LeaseRow, amount: bigint): void => {
  const drawn = draws.find((one) => one.limit === limit && one.windowStart === windowStart)
  if (drawn === undefined) draws.push({ limit, windowStart, amount })
  else drawn.amount += amount
}

/**
 * The amounts one call holds of its limits, in the order in which it got them; never more than was leased. It outlives
 * its actor, and its rest is given back then. In a crash of the process it is gone with its lease.
 */
export class Hold {
  readonly choice: Choice
  /** output tokens that it covers */
  tokens: number
  private parts: Array<Part>
  private isEnded = false
  private readonly onEnd: (hold: Hold) => void

  constructor(choice: Choice, tokens: number, part: Part, onEnd: (hold: Hold) => void) {
    this.choice = choice
    this.tokens = tokens
    this.parts = [part]
    this.onEnd = onEnd
  }

  get ended(): boolean {
    return this.isEnded
  }

  get amount(): bigint {
    return this.parts.reduce((sum, part) => sum + part.amount, 0n)
  }

  /** This hold's share of a row's held amount. */
  heldOf(row: LeaseRow): bigint {
    return this.parts.reduce((sum, part) => (part.rows.includes(row) ? sum + part.amount : sum), 0n)
  }

  extended(tokens: number, part: Part): void {
    this.tokens = tokens
    this.parts.push(part)
  }

  /** Uses up `actual` of each limit; beyond what is held, only what is leased and free. */
  settle(actual: bigint): Settled {
    if (this.isEnded) return { draws: [], drawn: 0n }
    this.isEnded = true
    const draws: Array<Drawn> = []
    let rest = actual
    for (const { amount, rows } of this.parts) {
      const used = rest < amount ? rest : amount
      rest -= used
      for (const row of rows) {
        row.unhold(amount, used)
        if (used > 0n) draw(draws, row, used)
      }
    }
    const rows = this.parts.at(-1)?.rows ?? []
    if (rest > 0n && rows.every((row) => row.isOpen)) {
      const extra = rows.reduce((least, { free }) => (free < least ? free : least), rest)
      rest -= extra
      for (const row of rows) {
        row.spend(extra)
        if (extra > 0n) draw(draws, row, extra)
      }
    }
    this.onEnd(this)
    return { draws, drawn: actual - rest }
  }

  release(): void {
    this.settle(0n)
  }
}
