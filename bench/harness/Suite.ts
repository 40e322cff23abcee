import type { Use } from "./ProcessUse.ts"
import type { Meet } from "./Barrier.ts"

/**
 * A bench suite. `bench/<name>/Suite.ts` exports `suite: BenchSuite`; `npm run bench -- <name>` runs it,
 * `test/bench/Bench.faults.test.ts` runs every suite at its tiny size so that none can rot.
 */

/**
 * The amount of work. "full": figures to publish. "quick": the same in shorter windows and smaller crowds, at most 90 s
 * a suite, with ratios that agree with a full run's. "tiny": a second or less a case, which only shows that it works.
 */
export type Size = "tiny" | "quick" | "full"

/** A part of a window, measured at the same time as another tree's. */
export interface Part {
  readonly work: number
  readonly elapsedMillis: number
  readonly cpuMillis: number
}

/** The result of one run of one case. Work is counted in the suite's unit ("appends", "requests", …). */
export interface Measurement {
  readonly work: number
  /** wall time of the measured part only, without set-up */
  readonly elapsedMillis: number
  /**
   * CPU time spent on the measured part. Left out: that of `use`, or else the case process's own CPU time, set-up
   * included.
   */
  readonly cpuMillis?: number
  /** of the process under test during the measured part, by `metered` */
  readonly use?: Use
  /** of a case that measures side by side, in their order: a comparison sets each beside the other side's */
  readonly parts?: ReadonlyArray<Part>
  readonly latency?: Latency
  /** further figures, in columns of their own: `{ fsyncsPerSecond: 812 }` */
  readonly figures?: Readonly<Record<string, number>>
  /** figures that would make the table too wide: only in the stored results */
  readonly details?: Readonly<Record<string, number>>
  /** a hash or count of what was produced: cases of one group must agree, or they did not do the same work */
  readonly result?: string
}

export interface Latency {
  readonly p50Millis: number
  readonly p99Millis: number
  readonly maxMillis: number
}

/** Settings of the command line for suites with data; a suite reads those that it knows. */
export interface Settings {
  /** a directory that is kept between runs, for data that takes long to make */
  readonly data?: string
  readonly events?: number
  readonly days?: number
}

export interface PrepareContext {
  readonly size: Size
  readonly settings: Settings
  /** the stages' kept directories, empty yet, one for each side of a comparison; none where one tree is measured */
  readonly kept: ReadonlyArray<string>
  readonly say: (text: string) => void
  /** ends what is made */
  readonly signal: AbortSignal
}

export interface StageContext {
  readonly size: Size
  /** empty at first, removed after the suite's last case */
  readonly directory: string
  /** a directory of this side of a comparison that lasts from round to round; undefined where one tree is measured */
  readonly kept: string | undefined
  readonly settings: Settings
  /** cases that will run; a stage starts nothing that none of them needs */
  readonly cases: ReadonlyArray<string>
}

/** Servers or data that all cases of a suite share, set up once in the process of the suite. */
export interface Stage<Given> {
  /** given to every case, in another process: plain data */
  readonly given: Given
  readonly leave: () => Promise<void>
}

export interface CaseContext<Given = unknown> {
  readonly size: Size
  /** length of the measured window, in milliseconds; a case that does a fixed amount of work ignores it */
  readonly windowMillis: number
  /** parts that a case which measures side by side divides its window into; 1 where one tree is measured */
  readonly parts: number
  /** waits for the other side, before each part of the window of a case that measures side by side */
  readonly meet: Meet
  /** an empty directory of this run's own, removed afterwards */
  readonly directory: string
  /** as the stage's */
  readonly kept: string | undefined
  /** 0, 1, 2, … */
  readonly round: number
  /** from the suite's stage; undefined without one */
  readonly given: Given
}

export interface BenchCase<Given = unknown> {
  /** unique within the suite */
  readonly name: string
  /** cases of one group are compared with each other; left out: all cases of the suite are one group */
  readonly group?: string
  /** true for the case that the others of its group are compared with: the raw limit, or the peer. One per group */
  readonly baseline?: boolean
  /**
   * The case measures the project's own code, so that `--against` compares it: "always", or only in a "full" run.
   * Left out for raw limits and peers, which are the same on both sides.
   */
  readonly compared?: "always" | "full"
  /**
   * The case `meet`s the other side, by `warmUp` and `meteredInParts`: a comparison runs both at a time, on the same core, and
   * looks at their CPU time in the same instants. Other cases are run one after the other.
   */
  readonly sideBySide?: boolean
  /**
   * gives the reason why the case cannot run on this machine, or undefined when it can; a tiny run fetches nothing, and the
   * signal ends what is fetched
   */
  readonly unavailable?: (
    size: Size,
    signal?: AbortSignal
  ) => string | undefined | Promise<string | undefined>
  /** one measured run, in a fresh process outside of tiny runs; `warmUp` before the measured window */
  readonly run: (context: CaseContext<Given>) => Promise<Measurement>
}

export interface BenchSuite<Given = unknown> {
  /** the folder's name */
  readonly name: string
  /** one sentence: the quantity measured and its reference */
  readonly about: string
  /** the unit of `work`, in the plural: "appends" */
  readonly unit: string
  /** rounds of a full run, default 5: all cases in turn, in reversed order every other round */
  readonly rounds?: number
  /**
   * Makes data that is kept between runs, once and before anything is measured; the time of a run does not include it.
   * Answers the settings with which each side is opened, one where there is one tree.
   */
  readonly prepare?: (context: PrepareContext) => Promise<ReadonlyArray<Settings>>
  readonly stage?: (context: StageContext) => Promise<Stage<Given>>
  readonly cases: ReadonlyArray<BenchCase<Given>>
}

/** A case that a quick run, a minute and a half a suite, has no time for. */
export const fullOnly = <Given>(one: BenchCase<Given>): BenchCase<Given> => ({
  ...one,
  unavailable: (size, signal) =>
    size === "quick" ? "it is measured by a full run only" : one.unavailable?.(size, signal)
})

/** Chooses by size; the full value serves for quick runs too where none is given for them. */
export const sized = <const A>(
  { size }: { readonly size: Size },
  values: { readonly tiny: A; readonly quick?: A; readonly full: A }
): A => (size === "tiny" ? values.tiny : size === "quick" ? (values.quick ?? values.full) : values.full)

/** Percentiles of latencies, which it sorts in place. */
export const latencyOf = (millis: Float64Array): Latency => {
  millis.sort()
  const at = (share: number): number =>
    millis[Math.min(millis.length - 1, Math.floor(millis.length * share))] ?? 0
  return { p50Millis: at(0.5), p99Millis: at(0.99), maxMillis: at(1) }
}
