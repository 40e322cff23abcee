import * as Effect from "effect/Effect"
import { type FrontAnswer, failuresOf, upgradeRequired } from "./FrontAnswer.ts"
import type { BlockPool } from "./BlockPool.ts"
import type { ByteBudget } from "./ByteBudget.ts"
import type { HotCors } from "./HotCors.ts"
import type { HotPaths } from "./HotPaths.ts"
import type { HotPath } from "./HotRoute.ts"
import type { HotSocketRoute } from "./HotSocket.ts"
import type { OpenSockets } from "./OpenSockets.ts"
import { upgradeHeaders } from "./WebSocketHandshake.ts"

/** The options that both engines need to serve hot routes. */
export interface HotContext {
  readonly paths: HotPaths
  readonly sockets: ReadonlyArray<HotSocketRoute>
  readonly open: OpenSockets
  readonly cors: HotCors
  readonly held: ByteBudget
  readonly blocks: BlockPool
  /** a handler or a listener threw */
  readonly report: (defect: unknown) => void
  /** a trusted proxy did not say whose request it handed over */
  readonly onMissingForwardedFor: (peer: string) => void
}

/** Calls a listener; an error it throws is reported and goes no further. */
export const attempt = (listener: () => void, context: HotContext): void => {
  try {
    listener()
  } catch (defect) {
    context.report(defect)
  }
}

/** The answer to a request to a hot path that no route serves: only OPTIONS is another matter. */
export const refusalOf = (
  there: HotPath,
  method: string,
  allow: string
): readonly [FrontAnswer, ReadonlyArray<readonly [string, string]>] =>
  there.isSocket === true && (method === "GET" || method === "HEAD")
    ? [upgradeRequired, upgradeHeaders]
    : [failuresOf(there.errors).methodNotAllowed, [["Allow", allow]]]

/** How long clients have to take their close frames once the deadline has passed. */
const closeFrameMillis = 1_000

/** Tells the routes to end; a socket that is still open at the deadline is closed, and then dropped. */
export const drain = (
  context: HotContext,
  idle: Effect.Effect<void>,
  deadlineMillis: number
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { open, sockets } = context
    for (const route of sockets) attempt(() => route.drain(), context)
    return Effect.andThen(idle, open.whenEmpty).pipe(
      within(deadlineMillis),
      Effect.andThen(Effect.sync(() => open.closeAll())),
      Effect.andThen(within(closeFrameMillis)(open.whenEmpty)),
      Effect.andThen(Effect.sync(() => open.dropAll()))
    )
  })

const within =
  (millis: number) =>
  (effect: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.timeoutOrElse(effect, { duration: millis, orElse: () => Effect.void })
