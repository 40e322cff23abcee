import { Effect } from "effect"
import { deviceHeader } from "#schemas/files/Device.ts"
import type { KeyedRoute } from "#src/accounts/KeyedRoute.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Devices } from "./Devices.ts"

/** Wraps handlers of raw routes of this room as `DeviceHeader` does its other endpoints. Source: contract/files#devices. */
export const makeHandleFromDevice = Effect.map(
  Devices,
  (devices) =>
    (handle: KeyedRoute["handle"]): KeyedRoute["handle"] =>
    (exchange, key) => {
      const id = exchange.request.header(deviceHeader)
      if (id === "") return handle(exchange, key)
      return Effect.andThen(storeAway(devices.seen(key.ownerId, id)), handle(exchange, key))
    }
)

/** The same for whole routes. */
export const makeFromDevice = Effect.map(
  makeHandleFromDevice,
  (fromDevice) =>
    ({ atHand, handle, ...rest }: KeyedRoute): KeyedRoute => ({
      ...rest,
      ...(atHand !== undefined && {
        atHand: (exchange, key) =>
          exchange.request.header(deviceHeader) === "" ? atHand(exchange, key) : undefined
      }),
      handle: fromDevice(handle)
    })
)
