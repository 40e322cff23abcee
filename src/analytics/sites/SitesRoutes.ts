import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { type SiteFieldInvalid, Sites, type TooManySites } from "./Sites.ts"
import { FirstAccepted } from "../ingest/FirstAccepted.ts"
import type { SiteRow } from "./SiteDirectory.ts"
import type { Site } from "#schemas/analytics/Site.ts"
import { BadRequest, Conflict, NotFound } from "#schemas/core/Problem.ts"

/** The site as its owner sees it; `firstEventAt`: as `FirstAccepted` says. */
const siteResource = (row: SiteRow, firstEventAt: Date | null): Site => ({
  id: row.id,
  name: row.name,
  domain: row.domain,
  timezone: row.timezone,
  public: row.isPublic,
  firstEventAt: firstEventAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})

const caller = Effect.map(CurrentKey, ({ userId }) => userId)

/** The errors of these routes; the remaining ones are the stores', and `ErrorBoundary` answers them. */
export const siteProblems = {
  SiteNotFound: () => Effect.fail(NotFound.of("Site not found")),
  SiteFieldInvalid: (invalid: SiteFieldInvalid) => Effect.fail(BadRequest.of(invalid.message))
}

const tooMany = ({ limit }: TooManySites) => Effect.fail(Conflict.of(`A user has at most ${limit} sites`))

export const layer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "sites",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const firsts = yield* FirstAccepted
    const shown = (site: SiteRow) => siteResource(site, firsts.of(site))
    return handlers.handleAll({
      listSites: () => Effect.map(caller, (userId) => ({ sites: sites.list(userId).map(shown) })),
      createSite: ({ payload }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.create(userId, payload)),
          storeAway,
          Effect.map(({ secret, site }) => ({ site: shown(site), secret })),
          Effect.catchTags({ SiteFieldInvalid: siteProblems.SiteFieldInvalid, TooManySites: tooMany })
        ),
      updateSite: ({ params, payload }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.update(params.id, userId, payload)),
          storeAway,
          Effect.map(shown),
          Effect.catchTags(siteProblems)
        ),
      deleteSite: ({ params }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.remove(params.id, userId)),
          storeAway,
          Effect.as({ deleted: true as const }),
          Effect.catchTag("SiteNotFound", siteProblems.SiteNotFound)
        ),
      rotateSiteSecret: ({ params }) =>
        caller.pipe(
          Effect.flatMap((userId) => sites.rotateSecret(params.id, userId)),
          storeAway,
          Effect.map((secret) => ({ secret })),
          Effect.catchTag("SiteNotFound", siteProblems.SiteNotFound)
        )
    })
  })
)
