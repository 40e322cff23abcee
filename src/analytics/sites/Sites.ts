import { randomBytes } from "node:crypto"
import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { NewSite, SiteChange } from "#schemas/analytics/Site.ts"
import { hashOf, newId, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import { AppConfig } from "#src/Config.ts"
import { isTimeZone } from "#streams/analytics/LocalTime.ts"
import { SiteDirectory, type SiteRow } from "./SiteDirectory.ts"
import { SitesRepository } from "./SitesRepository.ts"
import { parse } from "tldts"
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

/** Absent, deleted, or another user's. */
export class SiteNotFound extends Schema.TaggedError<SiteNotFound>()("SiteNotFound", { id: Schema.String }) {}

/** A field that its schema lets pass and that names nothing: `domain` or `timezone`. */
export class SiteFieldInvalid extends Schema.TaggedError<SiteFieldInvalid>()("SiteFieldInvalid", {
  field: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `${this.field}: expected ${this.expected}`
  }
}

export class TooManySites extends Schema.TaggedError<TooManySites>()("TooManySites", {
  limit: Schema.Int
}) {}

/** Sites of a user. Changes take effect in this process at once, elsewhere within a second. */
export class Sites extends Context.Service<
  Sites,
  {
    readonly list: (userId: string) => ReadonlyArray<SiteRow>
    /** the caller's own site, from memory */
    readonly find: (id: string, userId: string) => Effect.Effect<SiteRow, SiteNotFound>
    readonly create: (
      userId: string,
      site: NewSite
    ) => Effect.Effect<
      { readonly site: SiteRow; readonly secret: string },
      SiteFieldInvalid | TooManySites | SqlError
    >
    readonly update: (
      id: string,
      userId: string,
      change: SiteChange
    ) => Effect.Effect<SiteRow, SiteNotFound | SiteFieldInvalid | SqlError>
    readonly remove: (id: string, userId: string) => Effect.Effect<void, SiteNotFound | SqlError>
    /** answers the new secret */
    readonly rotateSecret: (id: string, userId: string) => Effect.Effect<string, SiteNotFound | SqlError>
  }
>()("signalbox/analytics/Sites") {
  static readonly layerNoDeps = Layer.effect(
    Sites,
    Effect.gen(function* () {
      const directory = yield* SiteDirectory
      const repository = yield* SitesRepository
      const { limits } = yield* AppConfig
      return make(directory, repository, limits.sitesPerUser)
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(SitesRepository.layer))
}

const domainOf = (text: string): Effect.Effect<string, SiteFieldInvalid> => {
  const domain = normaliseDomain(text)
  return domain === undefined
    ? Effect.fail(new SiteFieldInvalid({ field: "domain", expected: "a host name, such as example.com" }))
    : Effect.succeed(domain)
}

const timezoneOf = (text: string): Effect.Effect<string, SiteFieldInvalid> =>
  isTimeZone(text)
    ? Effect.succeed(text)
    : Effect.fail(
        new SiteFieldInvalid({ field: "timezone", expected: "an IANA time zone, such as Europe/Berlin" })
      )

const secretColumns = (secret: string) => ({ secret_prefix: prefixOf(secret), secret_hash: hashOf(secret) })

const visitorSecretBytes = 32

const make = (
  directory: SiteDirectory["Service"],
  repository: SitesRepository["Service"],
  sitesMax: number
): Sites["Service"] => {
  /** Tells the directory what was written; a row that is not there is not the caller's to see. */
  const written = <E>(id: string, write: Effect.Effect<SiteRow | undefined, E>) =>
    Effect.flatMap(write, (row) => {
      if (row === undefined) return Effect.fail(new SiteNotFound({ id }))
      directory.applyLocal(row)
      return Effect.succeed(row)
    })

  return {
    list: (userId) =>
      [...directory.all()]
        .filter((site) => site.userId === userId)
        .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || a.id.localeCompare(b.id)),
    find: (id, userId) => {
      const site = directory.find(id)
      return site?.userId === userId ? Effect.succeed(site) : Effect.fail(new SiteNotFound({ id }))
    },
    create: Effect.fn("Sites.create")(function* (userId, { domain, name, public: isPublic, timezone }) {
      const secret = newSecret("ssk_")
      const row = {
        id: newId("st"),
        user_id: userId,
        name,
        domain: yield* domainOf(domain),
        timezone: yield* timezoneOf(timezone ?? "UTC"),
        public: isPublic ?? false,
        ...secretColumns(secret),
        visitor_secret: randomBytes(visitorSecretBytes)
      }
      const site = yield* repository.insert(row, sitesMax)
      if (site === undefined) return yield* new TooManySites({ limit: sitesMax })
      directory.applyLocal(site)
      return { site, secret }
    }),
    update: Effect.fn("Sites.update")(function* (id, userId, change) {
      const columns = {
        ...change,
        ...(change.domain === undefined ? {} : { domain: yield* domainOf(change.domain) }),
        ...(change.timezone === undefined ? {} : { timezone: yield* timezoneOf(change.timezone) })
      }
      return yield* written(id, repository.update(id, userId, columns))
    }),
    remove: Effect.fn("Sites.remove")(function* (id, userId) {
      yield* written(id, repository.markDeleted(id, userId))
    }),
    rotateSecret: Effect.fn("Sites.rotateSecret")(function* (id, userId) {
      const secret = newSecret("ssk_")
      yield* written(id, repository.update(id, userId, secretColumns(secret)))
      return secret
    })
  }
}
