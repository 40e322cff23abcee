import type { Rounds } from "./Runner.ts"
import type { Ran, StoredRun } from "./Store.ts"
import type { Size } from "./Suite.ts"

/** The assumed duration of a case that has never been run here. */
const usualMillis: Readonly<Record<Size, number>> = { tiny: 1_000, quick: 4_000, full: 12_000 }

export interface ProgressOptions {
  readonly cases: ReadonlyArray<string>
  readonly sides: number
  readonly rounds: Rounds
  readonly size: Size
  /** earlier runs, whose times say how long cases take */
  readonly earlier: ReadonlyArray<StoredRun>
}

const clock = (millis: number): string => {
  const seconds = Math.max(0, Math.round(millis / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
}

/** Tells how far a run is and how long it will still take. */
export class Progress {
  private readonly options: ProgressOptions
  private readonly startedAt = performance.now()
  /** of the latest run of each case */
  private readonly tookMillis = new Map<string, number>()
  private done = 0
  private rounds: Rounds

  constructor(options: ProgressOptions) {
    this.options = options
    this.rounds = options.rounds
    for (const { begun, ran } of options.earlier) {
      if (begun.size === options.size) for (const one of ran) this.tookMillis.set(one.case, one.tookMillis)
    }
  }

  /** "round 2 of 5  ours (most)  3:20 left" */
  line(benchCase: string, round: number, side: string | undefined): string {
    const { rounds } = this
    const of = "count" in rounds ? ` of ${rounds.count}` : ""
    return `round ${round + 1}${of}  ${benchCase}${side === undefined ? "" : ` (${side})`}  ${clock(this.leftMillis())} left`
  }

  /** there are so many rounds now */
  goesOnTo(count: number): void {
    this.rounds = { count }
  }

  ran(one: Ran): void {
    this.tookMillis.set(one.case, one.tookMillis)
    this.done++
  }

  private leftMillis(): number {
    const { rounds } = this
    const { cases, sides, size } = this.options
    const took = cases.map((name) => this.tookMillis.get(name) ?? usualMillis[size])
    const roundMillis = took.reduce((sum, one) => sum + one, 0) * sides
    const sinceMillis = performance.now() - this.startedAt
    if ("count" in rounds) return roundMillis * (rounds.count - this.done / (cases.length * sides))
    return Math.max(rounds.withinMillis - sinceMillis, roundMillis * rounds.least - sinceMillis)
  }
}
