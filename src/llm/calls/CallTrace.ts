import { Effect } from "effect"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { AttemptFailure } from "./AttemptFailure.ts"
import type { CallParts } from "./CallParts.ts"

/** Spans of calls. Names and attributes are OpenTelemetry's, of generative AI. */

/** The outcome of a try, as far as its span has it. */
interface Tried {
  readonly _tag: string
  readonly failure?: AttemptFailure
  readonly streamed?: { readonly failure: AttemptFailure | undefined }
}

/** The span of one try of one model, and so of all upstream traffic. Without a collector the try as it is. */
export const traceAttempt = <A extends Tried>(
  { isTraced, upstream }: CallParts,
  operation: "chat" | "embeddings",
  { id }: CatalogueModel,
  attempt: Effect.Effect<A>
): Effect.Effect<A> =>
  isTraced
    ? Effect.withSpan(Effect.tap(attempt, annotate), `${operation} ${id}`, {
        kind: "client",
        attributes: {
          "gen_ai.operation.name": operation,
          "gen_ai.request.model": id,
          "server.address": new URL(upstream.url).host
        }
      })
    : attempt

const annotate = ({ _tag, failure, streamed }: Tried): Effect.Effect<void> => {
  const reason = (failure ?? streamed?.failure)?.reason
  return Effect.annotateCurrentSpan({
    "signalbox.outcome": _tag,
    ...(reason === undefined ? {} : { "error.type": reason })
  })
}
