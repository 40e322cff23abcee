import { Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { deviceHeader } from "#schemas/files/Device.ts"
import { DeviceHeader } from "#schemas/files/DeviceHeader.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Devices } from "./Devices.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)
const success = { success: true as const }

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "devices",
  Effect.fnUntraced(function* (handlers) {
    const devices = yield* Devices
    return handlers.handleAll({
      listDevices: () =>
        owner.pipe(
          Effect.flatMap(devices.list),
          storeAway,
          Effect.map((rows) => ({ devices: rows }))
        ),
      createDevice: ({ payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => devices.create(userId, payload, null)),
          storeAway,
          Effect.map(({ id }) => ({ id }))
        ),
      updateDevice: ({ params, payload }) =>
        storeAway(Effect.flatMap(owner, (userId) => devices.update(userId, params.id, payload))),
      deleteDevice: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => devices.remove(userId, params.id)),
          storeAway,
          Effect.as(success)
        )
    })
  })
)

/** The middleware of the groups of this room. */
export const header = Layer.effect(
  DeviceHeader,
  Effect.gen(function* () {
    const devices = yield* Devices
    return (httpEffect) =>
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const id = headers[deviceHeader]
        if (id !== undefined) yield* storeAway(devices.seen(yield* owner, id))
        return yield* httpEffect
      })
  })
)
