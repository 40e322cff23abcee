/** A sort of jobs, with the bounds that each of them has. */
export interface JobKind {
  /** the file whose export `job` is run */
  readonly module: URL
  /**
   * `thread`: for work on which the program sets bounds itself. Buffers are moved there at no cost, but V8 ends the whole
   * server where a single operation (JSON.parse, split, a Map that grows) meets the heap's limit, and cannot interrupt it.
   * `process`: for all else: it can be killed at any instant, and its memory is bounded by the system.
   */
  readonly isolation: "thread" | "process"
  /** time to answer in, from its begin; the wait for a worker is not part of it */
  readonly deadlineMillis: number
  /** of a thread its heap alone, of a process all its memory */
  readonly memoryMegabytes: number
  /** jobs of the kind that are done at once; absent: as many as there are workers */
  readonly atOnce?: number
}

/** The export `job` of a module of jobs: the answer to one ask, and which of its buffers may be moved, not copied. */
export type JobModule = (ask: unknown) => JobMade | Promise<JobMade>

interface JobMade {
  readonly answer: unknown
  readonly transfer?: ReadonlyArray<ArrayBuffer>
}

/** From the pool to a worker. */
export interface JobAsk {
  /** file URL of the module */
  readonly module: string
  readonly ask: unknown
}

/**
 * "busy": too many jobs wait. "deadline": it took too long. "memory": it needed too much. "failed": it threw, or ended its
 * thread, or its process died.
 */
export interface JobFailure {
  readonly reason: "busy" | "deadline" | "memory" | "failed"
  readonly problem: string
}

/** From a worker to the pool. */
export type JobAnswer =
  | { readonly _tag: "Begun" }
  | { readonly _tag: "Done"; readonly result: unknown }
  | ({ readonly _tag: "Failed" } & JobFailure)
  /** the last word of a worker that ends by itself */
  | ({ readonly _tag: "Ended" } & JobFailure)

/** A thread or a process, with one job at a time. */
export interface Runner {
  /** Throws where the ask cannot be cloned, and takes nothing then. */
  readonly post: (ask: JobAsk, transfer: ReadonlyArray<ArrayBuffer>) => void
  /** at once, whatever it does */
  readonly kill: () => Promise<void>
}

export interface RunnerListener {
  readonly heard: (answer: JobAnswer) => void
  /** once; nothing is heard after it */
  readonly exited: (how: string) => void
}

const memoryCode = "ERR_WORKER_OUT_OF_MEMORY"

/** The failure behind the `error` event of a thread. */
export const failureOf = (error: unknown): JobFailure => ({
  reason: error instanceof Error && "code" in error && error.code === memoryCode ? "memory" : "failed",
  problem: error instanceof Error ? error.message : String(error)
})
