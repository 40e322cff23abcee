import { Worker } from "node:worker_threads"
import * as NodeWorker from "@effect/platform-node/NodeWorker"
import { Effect, Layer, type LogLevel, Scope } from "effect"
import { RpcClient } from "effect/rpc"
import type { Limits } from "#src/Limits.ts"
import { lanes, SinkCalls } from "./EventSinkCalls.ts"
import type { Lane } from "./VisitUpdate.ts"

/** Given to the thread at its start. */
export interface ThreadData {
  readonly limits: Limits
  readonly logLevel: LogLevel.LogLevel
  readonly logFormat: "text" | "json"
}

export const startThread = (data: ThreadData): Worker =>
  new Worker(new URL("./EventSinkThread.ts", import.meta.url), { workerData: data, env: {} })

/** Of both lanes, rebuilds and checks: one of them is served at a time. */
const callsMax = 64

/**
 * A client of the thread, which starts with the first call, and anew a second after it has died. A call is interrupted there as
 * here; those under way when it dies fail.
 */
export const makeClient = Effect.fnUntraced(function* (start: () => Worker, onDeath: () => void) {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let isClosing = false
  const spawn = (): Worker => {
    const thread = start()
    thread.once("exit", (code) => {
      if (isClosing) return
      onDeath()
      runFork(Effect.logError(`The thread that writes events has ended with ${code}; it is started again`))
    })
    return thread
  }
  const protocol = RpcClient.layerProtocolWorker({ size: 1, concurrency: callsMax })
  const open = Effect.gen(function* () {
    const services = yield* Layer.build(Layer.provide(protocol, NodeWorker.layer(spawn)))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosing = true
      })
    )
    return yield* Effect.provide(RpcClient.make(SinkCalls, { disableTracing: true }), services)
  })
  return yield* Effect.cached(Effect.uninterruptible(Scope.provide(open, scope)))
})

/**
 * Batches that a thread which died may have left half done, by lane. Its memory of what it had tried is gone: they come again as
 * after a crash of the process.
 */
export class Uncertain {
  readonly #given = { live: 0, imports: 0 }
  readonly #ended = { live: 0, imports: 0 }
  readonly #uncertainTo = { live: 0, imports: 0 }

  /** A batch up to this offset goes to the thread. */
  gave(lane: Lane, to: number): void {
    this.#given[lane] = Math.max(this.#given[lane], to)
  }

  /** It has been written, or comes in parts from now on. */
  ended(lane: Lane, to: number): void {
    this.#ended[lane] = Math.max(this.#ended[lane], to)
  }

  died(): void {
    for (const lane of lanes) this.#uncertainTo[lane] = this.#given[lane]
  }

  has(lane: Lane, from: number): boolean {
    return from < this.#uncertainTo[lane]
  }

  /** a batch has to be repeated first that the thread does not know of */
  get isWaiting(): boolean {
    return lanes.some((lane) => this.#ended[lane] < this.#uncertainTo[lane])
  }
}
