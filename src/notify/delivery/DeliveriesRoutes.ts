import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Deliveries } from "./Deliveries.ts"

export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "deliveries",
  Effect.fnUntraced(function* (handlers) {
    const deliveries = yield* Deliveries
    return handlers.handle("redriveDeliveries", ({ payload }) =>
      CurrentKey.pipe(
        Effect.flatMap(({ ownerId }) => deliveries.redrive(ownerId, payload)),
        storeAway,
        Effect.map((redriven) => ({ redriven }))
      )
    )
  })
)
