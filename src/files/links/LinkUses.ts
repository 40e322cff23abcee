import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Limits } from "#src/Limits.ts"
import { linkUsed } from "../TrafficMetrics.ts"
import { newToken, tokenHash } from "./LinkTokens.ts"

/** A link as those who have it meet it. */
export interface FoundLink {
  readonly hash: Uint8Array
  /** the user who made it */
  readonly userId: string
  readonly groupId: string | null
  /** of a pinned one */
  readonly versionId: string | null
  readonly directoryId: string | null
  /** downloads at most; null: without a limit */
  readonly cap: number | null
  readonly uses: number
  /** salt and hash; null: none is asked for */
  readonly password: Uint8Array | null
  readonly expiresAt: Date | null
}

/** The client of a use. */
export interface Client {
  readonly address: string
  readonly agent: string
}

/** A use that may go on. */
export interface OpenUse {
  readonly id: string
  /** the version that it began with; null: an archive */
  readonly versionId: string | null
}

/** A part of a use that a request takes. */
export interface Hold {
  readonly useId: string
  /** reserved of the bytes that the use may have */
  readonly bytes: number
  /** the request began the use, and nobody else can go on with it: it is given back if nothing was sent */
  readonly isGivenBack: boolean
}

/** The end of a request's answer. */
export interface Outcome {
  readonly sentBytes: number
  /** all that the answer said was handed to the socket */
  readonly isWhole: boolean
  /** the answer went up to the last byte of what the link leads to */
  readonly isLast: boolean
}

/** The use that a request may go on with: who shows its ticket, or asks for a range from its address. */
export type Resuming = { readonly ticket: string } | { readonly address: string }

/**
 * Counts the uses of links. A use is a download, in as many requests as it takes, for an hour and for twice its size. A link
 * with a cap has as many of them, in all processes together. Source: contract/files#links.
 */
export class LinkUses extends Context.Service<
  LinkUses,
  {
    /** undefined: there is none, or its owner is gone */
    readonly find: (token: string) => Effect.Effect<FoundLink | undefined, SqlError>
    /** the newest one that is open */
    readonly open: (link: FoundLink, who: Resuming) => Effect.Effect<OpenUse | undefined, SqlError>
    /** Counts a use and holds `bytes` of it; undefined: the link has no more, or has expired. */
    readonly begin: (
      link: FoundLink,
      client: Client,
      of: { readonly versionId: string | null; readonly sizeBytes: number; readonly bytes: number }
    ) => Effect.Effect<Hold | undefined, SqlError>
    /** Counts a use that whoever shows the ticket goes on with; undefined as in `begin`. */
    readonly beginWithTicket: (
      link: FoundLink,
      client: Client,
      of: { readonly versionId: string | null; readonly sizeBytes: number }
    ) => Effect.Effect<string | undefined, SqlError>
    /** Holds `bytes` of an open use; undefined: it has not as many left. Links without a cap have. */
    readonly resume: (
      link: FoundLink,
      who: Resuming,
      bytes: number
    ) => Effect.Effect<Hold | undefined, SqlError>
    /** Once for each hold: what was not sent counts no more. */
    readonly end: (hold: Hold, outcome: Outcome) => Effect.Effect<void, SqlError>
  }
>()("signalbox/files/LinkUses") {
  static readonly layer = Layer.effect(
    LinkUses,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const clock = yield* Clock.Clock
      const { limits } = yield* AppConfig
      const now = () => new Date(clock.currentTimeMillisUnsafe())
      return LinkUses.of({
        find: findingOf(sql),
        ...beginningOf(sql, limits, now),
        ...resumingOf(sql, now),
        end: endingOf(sql, limits)
      })
    })
  )
}

const findingOf = (sql: SqlClient) =>
  Effect.fnUntraced(function* (token: string) {
    const hash = tokenHash(token)
    if (hash === undefined) return undefined
    const [link] =
      yield* sql<FoundLink>`SELECT l.token_hash AS hash, l.user_id AS "userId", l.group_id AS "groupId",
        l.version_id AS "versionId", l.directory_id AS "directoryId", l.max_requests AS cap, l.uses, l.password,
        l.expires_at AS "expiresAt"
      FROM share_links l JOIN users u ON u.id = l.user_id AND u.deleted_at IS NULL WHERE l.token_hash = ${hash}`
    return link
  })

const agentCharacters = 256

const beginningOf = (sql: SqlClient, limits: Limits, now: () => Date) => {
  const count = Effect.fnUntraced(function* (
    { hash }: FoundLink,
    { address, agent }: Client,
    use: {
      readonly id: string
      readonly ticketHash: Uint8Array | null
      readonly versionId: string | null
      readonly sizeBytes: number
      readonly bytes: number
    }
  ) {
    const at = now()
    const until = new Date(at.getTime() + limits.linkUseMillis)
    const [counted] = yield* sql<{ uses: number }>`
      WITH counted AS (
        UPDATE share_links SET uses = uses + 1
        WHERE token_hash = ${hash} AND (expires_at IS NULL OR expires_at > ${at})
          AND (max_requests IS NULL OR uses < max_requests)
        RETURNING token_hash, uses),
      begun AS (
        INSERT INTO share_uses (id, token_hash, ticket_hash, version_id, size, held, address, agent, started_at, open_until)
        SELECT ${use.id}, token_hash, ${use.ticketHash}::bytea, ${use.versionId}::text, ${use.sizeBytes}::float8::bigint,
          ${use.bytes}::float8::bigint, ${address}, ${agent.toWellFormed().slice(0, agentCharacters)}, ${at}, ${until}
        FROM counted)
      SELECT uses FROM counted`
    if (counted === undefined) return undefined
    yield* linkUsed
    // Uses that are not shown any more go now and then, so that no link has more rows than twice as many.
    // The use counts where that fails.
    if (counted.uses % limits.usesPerLink === 0)
      yield* sql`DELETE FROM share_uses WHERE token_hash = ${hash} AND open_until < ${at} AND id NOT IN (
        SELECT id FROM share_uses WHERE token_hash = ${hash} ORDER BY started_at DESC LIMIT ${limits.usesPerLink})`.pipe(
        Effect.catch((error) => Effect.logWarning("old downloads of a link were not deleted", error))
      )
    return counted
  })
  const begin: LinkUses["Service"]["begin"] = Effect.fnUntraced(function* (link, client, of) {
    const id = newId("use")
    const counted = yield* count(link, client, { ...of, id, ticketHash: null })
    return counted === undefined ? undefined : { useId: id, bytes: of.bytes, isGivenBack: true }
  })
  const beginWithTicket: LinkUses["Service"]["beginWithTicket"] = Effect.fnUntraced(
    function* (link, client, of) {
      const { hash, token } = newToken()
      const counted = yield* count(link, client, { ...of, bytes: 0, id: newId("use"), ticketHash: hash })
      return counted === undefined ? undefined : token
    }
  )
  return { begin, beginWithTicket }
}

const resumingOf = (sql: SqlClient, now: () => Date) => {
  /** A ticket that cannot be one names no use. */
  const whose = (who: Resuming): Fragment =>
    "address" in who
      ? sql`address = ${who.address}`
      : sql`ticket_hash = ${tokenHash(who.ticket) ?? Buffer.alloc(0)}`
  const open: LinkUses["Service"]["open"] = ({ hash }, who) =>
    Effect.map(
      sql<OpenUse>`SELECT id, version_id AS "versionId" FROM share_uses
        WHERE token_hash = ${hash} AND ${whose(who)} AND open_until > ${now()}
        ORDER BY started_at DESC, id LIMIT 1`,
      ([use]) => use
    )
  const resume: LinkUses["Service"]["resume"] = Effect.fnUntraced(function* ({ cap, hash }, who, bytes) {
    const isThere = cap === null ? sql`true` : sql`held + ${bytes}::float8::bigint <= 2 * size`
    const [use] = yield* sql<{ id: string }>`UPDATE share_uses SET held = held + ${bytes}::float8::bigint
      WHERE id = (SELECT id FROM share_uses
        WHERE token_hash = ${hash} AND ${whose(who)} AND open_until > ${now()} AND ${isThere}
        ORDER BY started_at DESC, id LIMIT 1 FOR UPDATE)
      RETURNING id`
    return use === undefined ? undefined : { useId: use.id, bytes, isGivenBack: false }
  })
  return { open, resume }
}

const endingOf = (sql: SqlClient, limits: Limits): LinkUses["Service"]["end"] =>
  Effect.fnUntraced(function* ({ bytes, isGivenBack, useId }, { isLast, isWhole, sentBytes }) {
    if (isGivenBack && sentBytes === 0 && !isWhole) {
      // Another request may have gone on with it by now. The link is locked first, as where it is revoked.
      const gone = yield* sql`WITH link AS MATERIALIZED (
          SELECT token_hash FROM share_links
          WHERE token_hash = (SELECT token_hash FROM share_uses WHERE id = ${useId}) FOR UPDATE),
        gone AS (
          DELETE FROM share_uses WHERE id = ${useId} AND sent = 0 AND held = ${bytes}::float8::bigint
            AND token_hash IN (SELECT token_hash FROM link) RETURNING token_hash)
        UPDATE share_links SET uses = uses - 1 WHERE token_hash IN (SELECT token_hash FROM gone) RETURNING uses`
      if (gone.length > 0) return
    }
    const inFlight = isWhole ? 0 : Math.min(sentBytes, limits.linkBytesInFlight)
    const lost = sql`least(${inFlight}::float8::bigint, greatest(0, ${limits.linkBytesLost}::float8::bigint - lost))`
    yield* sql`UPDATE share_uses SET sent = sent + ${sentBytes}::float8::bigint,
        held = greatest(0, held - ${bytes}::float8::bigint + ${sentBytes}::float8::bigint - ${lost}),
        lost = lost + ${lost}, is_complete = is_complete OR ${isWhole && isLast}
      WHERE id = ${useId}`
  })
