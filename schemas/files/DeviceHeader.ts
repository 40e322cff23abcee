import { HttpApiMiddleware } from "effect/http-api"
import { CurrentKey } from "../core/Authorization.ts"
import { NotFound, ServiceUnavailable } from "../core/Problem.ts"

/**
 * Notes that the device of a request's `X-Device-Id` was seen; 404 where the caller has no such device. Groups of this room
 * have it inside of `Authorization`. Source: contract/files#devices.
 */
export class DeviceHeader extends HttpApiMiddleware.Service<DeviceHeader, { requires: CurrentKey }>()(
  "signalbox/files/DeviceHeader",
  { error: [NotFound.plain, ServiceUnavailable.plain] }
) {}
