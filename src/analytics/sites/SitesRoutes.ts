import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { Sites } from "./Sites.ts"
import { FirstAccepted } from "../ingest/FirstAccepted.ts"

const caller = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

export const layer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "sites",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const firsts = yield* FirstAccepted
    const { whileCounting } = yield* CountingLease
    const shown = (site: SiteRow) => ({ ...site, firstEventAt: firsts.of(site) })
    return handlers.handleAll({
      listSites: () => Effect.map(caller, (userId) => ({ sites: sites.list(userId).map(shown) })),
      createSite: ({ payload }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.create(userId, payload)),
          storeAway,
          Effect.map(({ secret, site }) => ({ site: shown(site), secret }))
        ),
      updateSite: ({ params, payload }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.update(params.id, userId, payload)),
          storeAway,
          Effect.map(shown)
        ),
      deleteSite: ({ params }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.remove(params.id, userId)),
          storeAway,
          Effect.as({ deleted: true as const })
        ),
      rotateSiteSecret: ({ params }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.rotateSecret(params.id, userId)),
          storeAway,
          Effect.map((secret) => ({ secret }))
        ),
      // By the process that counts: it then has the new dataset before it answers another read.
      resetSite: ({ params }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.reset(params.id, userId)),
          storeAway,
          whileCounting,
          Effect.map((resetAt) => ({ resetAt: resetAt.toISOString() }))
        )
    })
  })
)
