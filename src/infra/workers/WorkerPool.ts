import { Worker } from "node:worker_threads"

/** The export `job` of a module of jobs: the answer to one ask, and which of its buffers may be moved, not copied. */
export type JobModule = (ask: unknown) => {
  readonly answer: unknown
  readonly transfer?: ReadonlyArray<ArrayBuffer>
}

/** From the pool to a thread. */
export interface JobAsk {
  /** file URL of the module */
  readonly module: string
  readonly ask: unknown
}

/** From a thread to the pool. */
export type JobAnswer =
  | { readonly _tag: "Done"; readonly result: unknown }
  | { readonly _tag: "Failed"; readonly problem: string }

/** "busy": too many jobs wait. "failed": the job threw, took too long, or needed too much memory. */
export interface JobFailure {
  readonly reason: "busy" | "failed"
  readonly problem: string
}

interface Job extends JobAsk {
  /** jobs of different owners take turns */
  readonly owner: string
  readonly transfer: ReadonlyArray<ArrayBuffer>
  /** Called once. */
  readonly done: (answer: JobAnswer | JobFailure) => void
}

interface WorkerPoolOptions {
  readonly threads: number
  /** jobs that wait for a thread; above it a further one is refused */
  readonly waitingMax: number
  /** a job that takes longer has failed, and its thread is ended */
  readonly deadlineMillis: number
  /** heap of one thread; a job that needs more has failed */
  readonly heapMegabytes: number
  /** a thread without a job for so long is ended */
  readonly idleMillis: number
}

export interface WorkerPoolStats {
  readonly threads: number
  readonly waiting: number
  readonly failed: number
}

/** Threads for work that would hold up the event loop. They start when they are needed; one that dies costs its own job. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #waiting = new FairQueue<Job>()
  readonly #threads = new Set<Thread>()
  #failed = 0
  #isStopped = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  stats(): WorkerPoolStats {
    return { threads: this.#threads.size, waiting: this.#waiting.size, failed: this.#failed }
  }

  /** Answers a function that gives a waiting job up; one that runs goes on, and its answer is not heard. */
  run(job: Job): () => void {
    if (this.#isStopped || this.#waiting.size >= this.#options.waitingMax) {
      const problem = this.#isStopped ? "the server ends" : `${this.#options.waitingMax} jobs wait already`
      queueMicrotask(() => job.done({ reason: "busy", problem }))
      return () => undefined
    }
    this.#waiting.push(job.owner, job)
    this.#next()
    return () => this.#waiting.remove(job.owner, job)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift())
      job.done({ reason: "busy", problem: "the server ends" })
    await Promise.all([...this.#threads].map((thread) => thread.end("the server ends")))
  }

  #next(): void {
    while (this.#waiting.size > 0) {
      const thread = [...this.#threads].find((one) => !one.isBusy) ?? this.#start()
      if (thread === undefined) return
      const job = this.#waiting.shift()
      if (job !== undefined) thread.take(job)
    }
  }

  #start(): Thread | undefined {
    if (this.#threads.size >= this.#options.threads) return undefined
    const thread = new Thread(this.#options, {
      freed: () => this.#next(),
      failed: () => {
        this.#failed++
      },
      ended: () => {
        this.#threads.delete(thread)
        if (!this.#isStopped) this.#next()
      }
    })
    this.#threads.add(thread)
    return thread
  }
}

interface ThreadListener {
  readonly freed: () => void
  readonly failed: () => void
  readonly ended: () => void
}

class Thread {
  readonly #worker: Worker
  readonly #options: WorkerPoolOptions
  readonly #listener: ThreadListener
  #job: Job | undefined
  #timer: NodeJS.Timeout | undefined
  #problem = "the thread ended"

  constructor(options: WorkerPoolOptions, listener: ThreadListener) {
    this.#options = options
    this.#listener = listener
    this.#worker = new Worker(new URL("./JobThread.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: options.heapMegabytes },
      // A thread reads what strangers wrote: no secret of the server is in its reach by name.
      env: {}
    })
    this.#worker.unref()
    this.#worker.on("message", (answer: JobAnswer) => this.#answered(answer))
    this.#worker.on("error", (error) => {
      this.#problem = error instanceof Error ? error.message : String(error)
    })
    this.#worker.on("exit", () => this.#exited())
  }

  get isBusy(): boolean {
    return this.#job !== undefined
  }

  take(job: Job): void {
    this.#job = job
    clearTimeout(this.#timer)
    const { deadlineMillis } = this.#options
    this.#timer = setTimeout(() => void this.end(`no answer in ${deadlineMillis} ms`), deadlineMillis)
    const { ask, module, transfer } = job
    this.#worker.postMessage({ ask, module } satisfies JobAsk, [...transfer])
  }

  async end(problem: string): Promise<void> {
    this.#problem = problem
    await this.#worker.terminate()
  }

  #answered(answer: JobAnswer): void {
    const job = this.#job
    this.#job = undefined
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.end("idle"), this.#options.idleMillis).unref()
    if (answer._tag === "Failed") this.#listener.failed()
    job?.done(answer)
    this.#listener.freed()
  }

  #exited(): void {
    const job = this.#job
    this.#job = undefined
    clearTimeout(this.#timer)
    if (job !== undefined) {
      this.#listener.failed()
      job.done({ reason: "failed", problem: this.#problem })
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

  shift(): A | undefined {
    const first = this.#lines.entries().next()
    if (first.done === true) return undefined
    const [owner, line] = first.value
    const item = line.shift()
    this.#lines.delete(owner)
    // Behind all others.
    if (line.length > 0) this.#lines.set(owner, line)
    this.#size--
    return item
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
