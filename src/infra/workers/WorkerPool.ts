import type { JobAnswer, JobFailure, JobKind, Runner, RunnerListener } from "./Job.ts"

interface Job {
  readonly kind: JobKind
  /** jobs of different owners take turns */
  readonly owner: string
  readonly ask: unknown
  readonly transfer: ReadonlyArray<ArrayBuffer>
  /** Called once. */
  readonly done: (answer: JobResult) => void
}

/** "Done", or a failure. */
export type JobResult = Extract<JobAnswer, { readonly _tag: "Done" }> | JobFailure

interface WorkerPoolOptions {
  readonly start: (kind: JobKind, listener: RunnerListener) => Runner
  readonly workers: number
  /** jobs that wait for a worker; above it a further one is refused */
  readonly waitingMax: number
  /** a worker that has not begun a job by then is ended */
  readonly startMillis: number
  /** time that a job is given when its caller has gone; then its worker is ended */
  readonly leaveMillis: number
  /** a worker without a job for so long is ended */
  readonly idleMillis: number
}

export interface WorkerPoolStats {
  readonly workers: number
  readonly waiting: number
  readonly failed: number
}

/** Workers for what would hold up the event loop. They start when they are needed; one that dies costs its own job. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #waiting = new FairQueue<Job>()
  readonly #workers = new Set<PooledWorker>()
  #failed = 0
  #isStopped = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  stats(): WorkerPoolStats {
    return { workers: this.#workers.size, waiting: this.#waiting.size, failed: this.#failed }
  }

  /** Answers a function that gives the job up: `done` is not called for it any more. */
  run(job: Job): () => void {
    if (this.#isStopped || this.#waiting.size >= this.#options.waitingMax) {
      const problem = this.#isStopped ? "the server ends" : `${this.#options.waitingMax} jobs wait already`
      queueMicrotask(() => job.done({ reason: "busy", problem }))
      return () => undefined
    }
    this.#waiting.push(job.owner, job)
    this.#next()
    return () => {
      this.#waiting.remove(job.owner, job)
      for (const worker of this.#workers) worker.leave(job)
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const ends = { reason: "busy", problem: "the server ends" } as const
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift()) job.done(ends)
    await Promise.all([...this.#workers].map((worker) => worker.end(ends)))
  }

  #next(): void {
    while (this.#isFree()) {
      const job = this.#waiting.shift((one) => this.#mayBegin(one))
      if (job === undefined) return
      this.#begin(job)
    }
  }

  /** The system may have no file or memory left for a worker: that costs this job, and nobody else's. */
  #begin(job: Job): void {
    try {
      this.#workerFor(job.kind).take(job)
    } catch (error) {
      const problem = `no worker could be started: ${error instanceof Error ? error.message : String(error)}`
      // The pool is amid its turn.
      queueMicrotask(() => job.done({ reason: "failed", problem }))
    }
  }

  #isFree(): boolean {
    if (this.#workers.size < this.#options.workers) return true
    for (const { isBusy } of this.#workers) if (!isBusy) return true
    return false
  }

  #mayBegin({ kind }: Job): boolean {
    const running = [...this.#workers].filter((worker) => worker.kind === kind).length
    return running < (kind.atOnce ?? this.#options.workers)
  }

  /** Memory is a bound of the worker: one with another takes the place of an idle one. */
  #workerFor(kind: JobKind): PooledWorker {
    const idle = [...this.#workers].filter(({ isBusy }) => !isBusy)
    const found = idle.find(({ memoryMegabytes }) => memoryMegabytes === kind.memoryMegabytes)
    if (found !== undefined) return found
    const [other] = idle
    if (other !== undefined && this.#workers.size >= this.#options.workers) {
      this.#workers.delete(other)
      void other.end({ reason: "failed", problem: "another one took its place" })
    }
    const worker = new PooledWorker(kind, this.#options, {
      freed: () => this.#next(),
      failed: () => {
        this.#failed++
      },
      ended: () => {
        this.#workers.delete(worker)
        if (!this.#isStopped) this.#next()
      }
    })
    this.#workers.add(worker)
    return worker
  }
}

interface WorkerListener {
  readonly freed: () => void
  readonly failed: () => void
  readonly ended: () => void
}

class PooledWorker {
  readonly memoryMegabytes: number
  readonly #runner: Runner
  readonly #options: WorkerPoolOptions
  readonly #listener: WorkerListener
  #job: Job | undefined
  #timer: NodeJS.Timeout | undefined
  #end: JobFailure | undefined
  #isLeft = false

  constructor(kind: JobKind, options: WorkerPoolOptions, listener: WorkerListener) {
    this.memoryMegabytes = kind.memoryMegabytes
    this.#options = options
    this.#listener = listener
    this.#runner = options.start(kind, {
      heard: (answer) => this.#heard(answer),
      exited: (how) => this.#exited(how)
    })
  }

  /** From its first job on it is busy until it is free: one that ends takes no other. */
  get isBusy(): boolean {
    return this.#job !== undefined || this.#end !== undefined
  }

  /** of the job that runs */
  get kind(): JobKind | undefined {
    return this.#job?.kind
  }

  take(job: Job): void {
    this.#job = job
    this.#isLeft = false
    const { startMillis } = this.#options
    this.#endAfter(startMillis, { reason: "failed", problem: `no worker began it in ${startMillis} ms` })
    try {
      this.#runner.post({ module: job.kind.module.href, ask: job.ask }, job.transfer)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      // The pool is amid its turn.
      queueMicrotask(() => this.#free({ reason: "failed", problem }))
    }
  }

  /** The caller of the job has gone. */
  leave(job: Job): void {
    if (this.#job !== job || this.#end !== undefined) return
    this.#isLeft = true
    this.#endAfter(this.#options.leaveMillis, { reason: "failed", problem: "its caller has gone" })
  }

  async end(failure: JobFailure): Promise<void> {
    this.#end ??= failure
    clearTimeout(this.#timer)
    await this.#runner.kill()
  }

  #endAfter(millis: number, failure: JobFailure): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.end(failure), millis)
  }

  #heard(answer: JobAnswer): void {
    const kind = this.#job?.kind
    if (kind === undefined || this.#end !== undefined) return
    switch (answer._tag) {
      case "Begun":
        if (this.#isLeft) return
        return this.#endAfter(kind.deadlineMillis, {
          reason: "deadline",
          problem: `no answer in ${kind.deadlineMillis} ms`
        })
      case "Done":
        return this.#free(answer)
      case "Failed":
        if (answer.reason === "memory") return void this.end(this.#tooMuch)
        return this.#free(answer)
      case "Ended":
        this.#end = answer.reason === "memory" ? this.#tooMuch : answer
    }
  }

  get #tooMuch(): JobFailure {
    return { reason: "memory", problem: `it needed more than ${this.memoryMegabytes} MB of memory` }
  }

  #free(result: JobResult): void {
    const job = this.#job
    this.#job = undefined
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => void this.end({ reason: "failed", problem: "idle" }),
      this.#options.idleMillis
    ).unref()
    if ("reason" in result) this.#listener.failed()
    if (!this.#isLeft) job?.done(result)
    this.#listener.freed()
  }

  #exited(how: string): void {
    const job = this.#job
    this.#job = undefined
    this.#end ??= { reason: "failed", problem: how }
    clearTimeout(this.#timer)
    if (job !== undefined) {
      this.#listener.failed()
      if (!this.#isLeft) job.done(this.#end)
    }
    this.#listener.ended()
  }
}

/** Items of several owners, who take turns: one that has many waiting does not keep another's from its turn. */
export class FairQueue<A> {
  /** in the order of their turns; an owner without items is not there */
  readonly #lines = new Map<string, Array<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  push(owner: string, item: A): void {
    const line = this.#lines.get(owner)
    if (line === undefined) this.#lines.set(owner, [item])
    else line.push(item)
    this.#size++
  }

  /** The first item that may be taken, of the owner whose turn it is. */
  shift(may: (item: A) => boolean = () => true): A | undefined {
    for (const [owner, line] of this.#lines) {
      const index = line.findIndex(may)
      if (index < 0) continue
      const [item] = line.splice(index, 1)
      this.#lines.delete(owner)
      // Behind all others.
      if (line.length > 0) this.#lines.set(owner, line)
      this.#size--
      return item
    }
    return undefined
  }

  /** A no-op where the item has been taken. */
  remove(owner: string, item: A): void {
    const line = this.#lines.get(owner) ?? []
    const index = line.indexOf(item)
    if (index < 0) return
    line.splice(index, 1)
    if (line.length === 0) this.#lines.delete(owner)
    this.#size--
  }
}
