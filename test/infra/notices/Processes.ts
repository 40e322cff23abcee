import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import type { Limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"

/** The notices of one more process, once it listens. */
export const processWith = Effect.fnUntraced(function* (changes: Partial<Limits>) {
  const config = yield* AppConfig
  const limits = { ...config.limits, ...changes }
  const built = yield* Layer.build(
    Layer.fresh(Notices.layer).pipe(Layer.provide(Layer.succeed(AppConfig, { ...config, limits })))
  )
  const notices = Context.get(built, Notices)
  const opened = yield* counterOf(notices, "opened")
  yield* eventually(
    "it listens",
    Effect.sync(() => opened.count > 0)
  )
  return notices
})

export const anotherProcess = processWith({})

/** Counts the notices about a topic. */
export const counterOf = Effect.fnUntraced(function* (notices: Notices["Service"], topic: string) {
  const counter = { count: 0 }
  yield* notices.subscribe(topic, () => void counter.count++)
  return counter
})

export const isAt = (counter: { readonly count: number }, count: number) =>
  eventually(
    `a count of ${count}`,
    Effect.sync(() => counter.count === count)
  )
