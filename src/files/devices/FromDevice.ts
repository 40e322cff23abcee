import { Effect } from "effect"
import { deviceHeader } from "#schemas/files/Device.ts"
import type { KeyedRoute } from "#src/accounts/KeyedRoute.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Devices } from "./Devices.ts"

/** Wraps raw routes of this room as `DeviceHeader` does its other endpoints. Source: contract/files#devices. */
export const makeFromDevice = Effect.map(
  Devices,
  (devices) =>
    ({ atHand, handle, ...rest }: KeyedRoute): KeyedRoute => ({
      ...rest,
      ...(atHand !== undefined && {
        atHand: (exchange, key) =>
          exchange.request.header(deviceHeader) === "" ? atHand(exchange, key) : undefined
      }),
      handle: (exchange, key) => {
        const id = exchange.request.header(deviceHeader)
        if (id === "") return handle(exchange, key)
        return Effect.andThen(storeAway(devices.seen(key.ownerId, id)), handle(exchange, key))
      }
    })
)
