import { Effect, Semaphore } from "effect"
import { abandonedAfter } from "./AbandonedAfter.ts"
import { SinkRefused, SinkUnavailable, type Sink, type SinkBatch } from "./Sink.ts"

/**
 * The sink as the batcher calls it: one call at a time, none for longer than the timeout, and a defect is a refusal: the
 * sink tripped over something that it was given. Refusals are answered, outages fail. A call that is given up may still have
 * its effect, later: a COMMIT that is not answered cannot be interrupted.
 */
export class SinkCalls {
  readonly #sink: Sink
  readonly #timeoutMillis: number
  readonly #oneAtATime = Semaphore.makeUnsafe(1)

  constructor(sink: Sink, timeoutMillis: number) {
    this.#sink = sink
    this.#timeoutMillis = timeoutMillis
  }

  /** Undefined: the sink has the batch. */
  write(batch: SinkBatch): Effect.Effect<SinkRefused | undefined, SinkUnavailable> {
    return this.#bounded(Effect.suspend(() => this.#sink.write(batch)))
  }

  readonly check: Effect.Effect<SinkRefused | undefined, SinkUnavailable> = Effect.suspend(() =>
    this.#bounded(this.#sink.check)
  )

  #bounded(
    call: Effect.Effect<void, SinkUnavailable | SinkRefused>
  ): Effect.Effect<SinkRefused | undefined, SinkUnavailable> {
    const judged = call.pipe(
      Effect.as(undefined),
      Effect.catchDefect((cause) =>
        Effect.fail(new SinkRefused({ problem: "it threw", cause, blames: "unknown" }))
      ),
      Effect.catchTag("SinkRefused", (refused) => Effect.succeed(refused))
    )
    return abandonedAfter(judged, this.#timeoutMillis).pipe(
      Effect.catchTag("TimeoutError", () =>
        Effect.fail(new SinkUnavailable({ problem: "it did not answer in time", cause: undefined }))
      ),
      this.#oneAtATime.withPermits(1)
    )
  }
}
