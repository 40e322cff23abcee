import { randomBytes } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Credential } from "#schemas/core/Credential.ts"
import { type NewSite, type SiteChange, SiteRow } from "#schemas/analytics/Site.ts"
import { hashOf, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { type BadRequest, type Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import { timeZoneOf } from "#schemas/core/TimeZone.ts"
import { AppConfig } from "#src/Config.ts"
import { parse } from "tldts"
import { Purges } from "../purges/Purges.ts"
import { bareHostname } from "#streams/analytics/PageUrl.ts"

/**
 * The domain of a site as it is stored: the pasted text without scheme, user, port, path and `www.`, in lower case,
 * international names as punycode. undefined where that leaves no host name. Source: contract/analytics#sites.
 */
export const normaliseDomain = (text: string): string | undefined => {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") return undefined
  const hostname = bareHostname(url.hostname)
  // Names without a dot (localhost, an intranet host) and addresses are where people try things out.
  const { isIp, publicSuffix, isIcann } = parse(hostname)
  // Every site under `com` or `co.uk` would be its sub-domain.
  if (isIcann === true && publicSuffix === hostname) return undefined
  const isName = /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/.test(hostname)
  return (isIp === true || isName) && hostname.length <= 253 ? hostname : undefined
}

/** The secret of a site, which writes its events alone. */
export interface SiteCredential extends Credential {
  readonly kind: "site"
  readonly site: SiteRow
}

export const credentialOf = (site: SiteRow): SiteCredential => ({
  kind: "site",
  id: site.id,
  ownerId: site.user_id,
  scopes: [],
  expiresAt: null,
  site
})

/**
 * The sites of this server in memory, a poll behind Postgres at most, and served without it: ingest asks it for every
 * event. A rotated secret and a deleted site stop within a second, everywhere.
 */
export class SiteDirectory extends Context.Service<
  SiteDirectory,
  CachedTable.CachedTable<typeof SiteRow, "secret"> & {
    /** by the secret that a caller sent, whatever it sent */
    readonly findBySecret: (secret: string) => SiteCredential | undefined
  }
>()("signalbox/analytics/SiteDirectory") {
  static readonly layer = Layer.effect(
    SiteDirectory,
    Effect.map(
      CachedTable.make({
        name: "sites",
        title: "Site",
        model: SiteRow,
        ids: "st",
        computed: { secret_hash: "encode(secret_hash, 'hex')" },
        indexes: { secret: (site) => site.secret_hash },
        gone: "deleted_at"
      }),
      // The hash is the key of a map: no comparison takes longer the more of a secret is right.
      (sites) => ({
        ...sites,
        findBySecret: (secret) => {
          const site = sites.by("secret", hashOf(secret).toString("hex"))
          return site === undefined ? undefined : credentialOf(site)
        }
      })
    )
  )
}

/** Sites of a user. Changes take effect in this process at once, elsewhere within a second. */
export class Sites extends Context.Service<
  Sites,
  {
    readonly list: (userId: string) => ReadonlyArray<SiteRow>
    /** the caller's own site, from memory */
    readonly find: (id: string, userId: string) => Effect.Effect<SiteRow, NotFound>
    readonly create: (
      userId: string,
      site: NewSite
    ) => Effect.Effect<{ readonly site: SiteRow; readonly secret: string }, BadRequest | Conflict | SqlError>
    readonly update: (
      id: string,
      userId: string,
      change: SiteChange
    ) => Effect.Effect<SiteRow, NotFound | BadRequest | SqlError>
    readonly remove: (id: string, userId: string) => Effect.Effect<void, NotFound | SqlError>
    /** Its statistics begin anew: what was accepted before is in no figure any more. Answers since when. */
    readonly reset: (id: string, userId: string) => Effect.Effect<Date, NotFound | SqlError>
    /** answers the new secret */
    readonly rotateSecret: (id: string, userId: string) => Effect.Effect<string, NotFound | SqlError>
  }
>()("signalbox/analytics/Sites") {
  static readonly layer = Layer.effect(
    Sites,
    Effect.gen(function* () {
      return make({
        directory: yield* SiteDirectory,
        purges: yield* Purges,
        sql: yield* SqlClient,
        sitesMax: (yield* AppConfig).limits.sitesPerUser
      })
    })
  )
}

const domainOf = (text: string): Effect.Effect<string, BadRequest> => {
  const domain = normaliseDomain(text)
  return domain === undefined
    ? Effect.fail(invalidField("domain", "expected a host name, such as example.com"))
    : Effect.succeed(domain)
}

const secretColumns = (secret: string) => ({ secret_prefix: prefixOf(secret), secret_hash: hashOf(secret) })

const visitorSecretBytes = 32

interface SitesParts {
  readonly directory: SiteDirectory["Service"]
  readonly purges: Purges["Service"]
  readonly sql: SqlClient
  readonly sitesMax: number
}

const make = ({ directory, purges, sitesMax, sql }: SitesParts): Sites["Service"] => {
  /** With the write, the purge of what it made dead. */
  const purged = <E>(write: Effect.Effect<SiteRow, E>) => Effect.tap(write, ({ id }) => purges.site(id))
  return {
    list: directory.list,
    find: directory.find,
    create: Effect.fn("Sites.create")(function* (
      userId,
      { domain, name, public: isPublic, retentionDays, timezone }
    ) {
      const secret = newSecret("ssk_")
      const fields = {
        name,
        domain: yield* domainOf(domain),
        timezone: yield* timeZoneOf(timezone ?? "UTC"),
        public: isPublic ?? false,
        retentionDays: retentionDays ?? null,
        ...secretColumns(secret),
        visitorSecret: randomBytes(visitorSecretBytes)
      }
      return { site: yield* directory.insertFor(userId, fields, sitesMax), secret }
    }),
    update: Effect.fn("Sites.update")(function* (id, userId, change) {
      const fields = {
        ...change,
        ...(change.domain === undefined ? {} : { domain: yield* domainOf(change.domain) }),
        ...(change.timezone === undefined ? {} : { timezone: yield* timeZoneOf(change.timezone) })
      }
      const update = directory.update(id, userId, fields)
      return yield* typeof change.retentionDays === "number" ? sql.withTransaction(purged(update)) : update
    }),
    remove: (id, userId) => Effect.asVoid(sql.withTransaction(purged(directory.remove(id, userId)))),
    // Events and figures of the generation before have another dataset's name, here as soon as this is committed.
    reset: Effect.fn("Sites.reset")(function* (id, userId) {
      const begun = directory.first(
        sql`UPDATE sites SET generation = generation + 1, reset_at = now(), first_event_at = NULL
        WHERE id = ${id} AND user_id = ${userId} AND ${directory.live} RETURNING ${directory.columns}`
      )
      const site = yield* sql.withTransaction(
        purged(
          Effect.filterOrFail(
            begun,
            (row) => row !== undefined,
            () => notFound("Site")
          )
        )
      )
      // The statement has set it.
      return site.resetAt ?? (yield* Effect.die(new Error("a reset without an instant")))
    }),
    rotateSecret: (id, userId) => {
      const secret = newSecret("ssk_")
      return Effect.as(directory.update(id, userId, secretColumns(secret)), secret)
    }
  }
}
