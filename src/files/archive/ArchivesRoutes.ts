import { Effect, Result } from "effect"
import { ArchivesApi } from "#schemas/files/ArchivesApi.ts"
import type { NotFound, Problem } from "#schemas/core/Problem.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { type KeyedExchange, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { readsFound, reachOf } from "../access/Reach.ts"
import { makeFromDevice } from "../devices/FromDevice.ts"
import { directoryNotFound, Tree } from "../tree/Tree.ts"
import type { ArchivePlace } from "./ArchivePlans.ts"
import { Archives } from "./Archives.ts"

/** Downloads of directories, served beside the Effect pipeline. Source: contract/files#archives. */
export const archiveRoutes = Effect.gen(function* () {
  const tree = yield* Tree
  const archives = yield* Archives
  const fromDevice = yield* makeFromDevice

  const placeOf = Effect.fnUntraced(function* (exchange: KeyedExchange, key: Principal) {
    const reach = reachOf(key)
    const id = yield* idOf(exchange)
    if (id === "root") return { rootOf: key.ownerId, readable: reach.readable }
    const again = Effect.flatMap(tree.directory(key.ownerId, id), (found) =>
      readsFound(reach, found, directoryNotFound.message)
    )
    return { directory: yield* storeAway(again), again }
  })

  return yield* keyedRoutes(ArchivesApi, {
    archive: fromDevice({
      maxBodyBytes: 0,
      handle: (exchange, key): Effect.Effect<void, Problem> =>
        Effect.gen(function* () {
          const place: ArchivePlace = yield* placeOf(exchange, key)
          const archive = yield* archives.plan(place)
          yield* archive.send(exchange)
        }).pipe(Effect.scoped)
    })
  })
})

/** The id in the path, where it may be encoded; one that none can be is not found. */
const idOf = ({ request }: KeyedExchange): Effect.Effect<string, NotFound> => {
  const sent = request.params["dirId"] ?? ""
  const text = Result.try(() => decodeURIComponent(sent))
  return Result.isSuccess(text) && /^[\w-]{1,64}$/.test(text.success)
    ? Effect.succeed(text.success)
    : Effect.fail(directoryNotFound)
}
