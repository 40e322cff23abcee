import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Markups } from "./Markups.ts"

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "markups",
  Effect.fnUntraced(function* (handlers) {
    const markups = yield* Markups
    return handlers.handleAll({
      listMarkups: () => Effect.sync(() => ({ markups: markups.list() })),
      readMarkup: ({ params }) => Effect.sync(() => markups.get(params.provider)),
      setMarkup: ({ params, payload }) => storeAway(markups.set(params.provider, payload.percent))
    })
  })
)
