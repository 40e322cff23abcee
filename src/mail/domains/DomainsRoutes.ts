import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql/SqlError"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import type { DomainRow } from "#schemas/mail/Domain.ts"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import { storeAway, storeAwayAbandoned, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { shownDomain } from "./DomainRecords.ts"
import { DomainSettings } from "./DomainSettings.ts"
import { MailDomains } from "./MailDomains.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

export const layer = HttpApiBuilder.group(
  MailRoomApi,
  "mailDomains",
  Effect.fnUntraced(function* (handlers) {
    const domains = yield* MailDomains
    const settings = yield* DomainSettings
    const shown = <E>(row: (userId: string) => Effect.Effect<DomainRow, E | SqlError>) =>
      Effect.map(Effect.flatMap(owner, row), (found) => shownDomain(found, settings))

    return handlers.handleAll({
      listMailDomains: () =>
        Effect.map(owner, (userId) => ({
          domains: domains.list(userId).map((row) => shownDomain(row, settings))
        })),
      createMailDomain: ({ payload }) => storeAway(shown((userId) => domains.create(userId, payload.name))),
      readMailDomain: ({ params }) => storeAway(shown((userId) => domains.find(userId, params.id))),
      // DNS may take longer than any statement.
      verifyMailDomain: ({ params }) =>
        storeAwayUntimed(shown((userId) => domains.verify(userId, params.id))),
      rotateMailDomainKey: ({ params }) =>
        storeAwayAbandoned(shown((userId) => domains.rotate(userId, params.id))),
      deleteMailDomain: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => domains.remove(userId, params.id)),
          storeAway,
          Effect.as({ deleted: true as const })
        )
    })
  })
)
