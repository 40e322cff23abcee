import { Worker } from "node:worker_threads"
import { Context, Effect, Layer, Schema } from "effect"
import { AppConfig } from "#src/Config.ts"
import { endThread } from "#src/infra/workers/EndThread.ts"
import type { CountAnswer, CountAsk } from "./TokenWorker.ts"

class TokensUncounted extends Schema.TaggedError<TokensUncounted>()("TokensUncounted", {
  problem: Schema.String
}) {}

/**
 * Counts the tokens of texts of calls whose upstream does not report them. In a thread of its own that starts at the
 * first need: a long text takes seconds, and the tables 90 MB.
 */
export class TokenCounter extends Context.Service<
  TokenCounter,
  {
    /** By o200k_base, which comes near enough to other models' counts; an estimate where counting fails. */
    readonly count: (text: string) => Effect.Effect<number>
  }
>()("signalbox/llm/TokenCounter") {
  static readonly layer = Layer.effect(
    TokenCounter,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const counting = new CountingThread()
      yield* Effect.addFinalizer(() => Effect.promise(() => counting.stop()))
      const count = (text: string): Effect.Effect<number> => {
        if (text === "") return Effect.succeed(0)
        if (text.length > limits.countedCharacters) return Effect.succeed(estimateTokens(text.length))
        return counting.ask(text).pipe(
          Effect.timeoutOrElse({
            duration: limits.countMillis,
            orElse: () => Effect.fail(new TokensUncounted({ problem: `none in ${limits.countMillis} ms` }))
          }),
          Effect.catchTag("TokensUncounted", ({ problem }) =>
            Effect.as(
              Effect.logWarning(`Tokens were estimated, not counted: ${problem}`),
              estimateTokens(text.length)
            )
          )
        )
      }
      return TokenCounter.of({ count })
    })
  )
}

/** Tokens of most texts, a little to the dear side. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 3)

/** The thread and its waiting callers. A thread that dies fails them, and the next question starts another. */
class CountingThread {
  #worker: Worker | undefined
  #nextId = 0
  readonly #waiting = new Map<number, (result: Effect.Effect<number, TokensUncounted>) => void>()

  ask(text: string): Effect.Effect<number, TokensUncounted> {
    return Effect.callback<number, TokensUncounted>((resume) => {
      const ask: CountAsk = { id: this.#nextId++, text }
      this.#waiting.set(ask.id, resume)
      this.#worker ??= this.#start()
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- between threads there are no origins
      this.#worker.postMessage(ask)
      return Effect.sync(() => this.#waiting.delete(ask.id))
    })
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    if (worker !== undefined) await endThread(worker)
  }

  #start(): Worker {
    const worker = new Worker(new URL("./TokenWorker.ts", import.meta.url), { env: {} })
    worker.unref()
    worker.on("message", ({ id, tokens }: CountAnswer) => {
      const resume = this.#waiting.get(id)
      this.#waiting.delete(id)
      resume?.(Effect.succeed(tokens))
    })
    worker.on("error", (error) => this.#failAll(error instanceof Error ? error.message : String(error)))
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined
      this.#failAll("the thread ended")
    })
    return worker
  }

  #failAll(problem: string): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const resume of waiting) resume(Effect.fail(new TokensUncounted({ problem })))
  }
}
