import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { deviceHeader } from "#schemas/files/Device.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { isNoneMatch } from "#src/http/ByteRanges.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { reachOf } from "../access/Reach.ts"
import { Devices } from "../devices/Devices.ts"
import { type Manifest, Manifests } from "./Manifests.ts"
import { SyncFlags } from "./SyncFlags.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

const manifestAnswer = ({ etag, pieces }: Manifest, ifNoneMatch: string | undefined) => {
  // Weak: the instant differs each time.
  const headers = { etag: `W/${etag}`, "cache-control": "private, no-cache", vary: "X-Device-Id" }
  if (isNoneMatch(ifNoneMatch, etag)) return HttpServerResponse.empty({ status: 304, headers })
  const contentLength = pieces.reduce((sum, { length }) => sum + length, 0)
  return HttpServerResponse.stream(Stream.fromIterable(pieces), {
    contentType: "application/json",
    contentLength,
    headers
  })
}

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "sync",
  Effect.fnUntraced(function* (handlers) {
    const flags = yield* SyncFlags
    const manifests = yield* Manifests
    const devices = yield* Devices
    return handlers.handleAll({
      listSyncFlags: () => storeAway(Effect.flatMap(owner, flags.shown)),
      setSyncFlag: ({ payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => flags.set(userId, payload)),
          storeAway,
          Effect.as({ success: true as const, enabled: payload.enabled ?? true })
        ),
      readManifest: ({ request }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const id = request.headers[deviceHeader]
          const device = id === undefined ? undefined : yield* storeAway(devices.find(key.ownerId, id))
          // Its memory is held until the request's scope ends, with the last piece of the answer.
          const manifest = yield* storeAwayUntimed(manifests.read(key.ownerId, device, reachOf(key)))
          return manifestAnswer(manifest, request.headers["if-none-match"])
        })
    })
  })
)
