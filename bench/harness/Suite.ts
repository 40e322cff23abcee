/**
 * What a bench suite is. `bench/<name>/Suite.ts` exports `suite: BenchSuite`; `npm run bench -- <name>` runs it,
 * `test/bench/Bench.test.ts` runs every suite with `quick: true` so that none can rot.
 */

/** What one run of one case found. Work is counted in the case's unit ("appends", "requests", …). */
export interface Measurement {
  readonly work: number
  /** wall time of the measured part only, without set-up */
  readonly elapsedMillis: number
  /**
   * CPU time spent on the measured part. Left out: the harness takes the case process's own CPU time, set-up
   * included. A case that drives another process (a server under load) reports that process's CPU time here.
   */
  readonly cpuMillis?: number
  readonly latency?: Latency
  /** further figures, in columns of their own: `{ fsyncsPerSecond: 812 }` */
  readonly figures?: Readonly<Record<string, number>>
  /** figures that would make the table too wide: only in the NDJSON */
  readonly details?: Readonly<Record<string, number>>
  /** a hash or count of what was produced: cases of one group must agree, or they did not do the same work */
  readonly result?: string
}

export interface Latency {
  readonly p50Millis: number
  readonly p99Millis: number
  readonly maxMillis: number
}

/** Sizes that the command line may change; a suite reads those that it knows. */
export interface Sizes {
  /** a directory that is kept between runs, for what is dear to make */
  readonly data?: string
  readonly events?: number
  readonly days?: number
}

export interface StageContext {
  readonly quick: boolean
  /** empty at first, removed after the suite's last case */
  readonly directory: string
  readonly sizes: Sizes
}

/** What all cases of a suite share, such as a server with data: set up once, in the harness's own process. */
export interface Stage<Given> {
  /** told to every case, in whatever process: plain data */
  readonly given: Given
  readonly leave: () => Promise<void>
}

export interface CaseContext<Given = unknown> {
  /** tiny sizes that finish within about a second: the whole point is that the case still runs */
  readonly quick: boolean
  /** an empty directory of this run's own, removed afterwards */
  readonly directory: string
  /** 0, 1, 2, … */
  readonly round: number
  /** what the suite's stage gave; undefined without one */
  readonly given: Given
}

export interface BenchCase<Given = unknown> {
  /** unique within the suite */
  readonly name: string
  /** cases of one group are compared with each other; left out: all cases of the suite are one group */
  readonly group?: string
  /** true for the case that the others of its group are compared with: the raw limit, or the peer. One per group */
  readonly baseline?: boolean
  /** says why the case cannot run on this machine, or undefined when it can; `quick`: without fetching anything */
  readonly unavailable?: (options: {
    readonly quick: boolean
  }) => string | undefined | Promise<string | undefined>
  /** one measured run. Outside of `quick`, called in a fresh process; aim for 2 to 10 seconds */
  readonly run: (context: CaseContext<Given>) => Promise<Measurement>
}

export interface BenchSuite<Given = unknown> {
  /** the folder's name */
  readonly name: string
  /** one sentence: what is measured against what */
  readonly about: string
  /** what `work` counts, in the plural: "appends" */
  readonly unit: string
  /** interleaved rounds of all cases, in reversed order every other round; default 5 (quick: 1) */
  readonly rounds?: number
  readonly stage?: (context: StageContext) => Promise<Stage<Given>>
  readonly cases: ReadonlyArray<BenchCase<Given>>
}

/** Percentiles of latencies, which it sorts in place. */
export const latencyOf = (millis: Float64Array): Latency => {
  millis.sort()
  const at = (share: number): number =>
    millis[Math.min(millis.length - 1, Math.floor(millis.length * share))] ?? 0
  return { p50Millis: at(0.5), p99Millis: at(0.99), maxMillis: at(1) }
}
