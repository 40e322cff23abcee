import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import {
  type BadRequest,
  Conflict,
  invalidField,
  NotFound,
  type ServiceUnavailable
} from "#schemas/core/Problem.ts"
import type { NewShareLink } from "#schemas/files/ShareLink.ts"
import { AppConfig } from "#src/Config.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Tree } from "../tree/Tree.ts"
import { fileNotFound, Versions } from "../tree/Versions.ts"
import { LinkPasswords } from "./LinkPasswords.ts"
import { newToken, sealed, tokenHash, unsealed } from "./LinkTokens.ts"

/** A link as its owner sees it, without the address of the server. */
export interface OwnLink {
  readonly token: string
  /** the version that it leads to now; null: a directory, or nothing any more */
  readonly fileId: string | null
  readonly versionGroupId: string | null
  readonly directoryId: string | null
  /** null: what it leads to is gone */
  readonly name: string | null
  readonly maxRequests: number | null
  readonly uses: number
  readonly passwordProtected: boolean
  readonly pinned: boolean
  readonly label: string | null
  readonly expiresAt: Date | null
  readonly createdAt: Date
}

/** A use of a link. */
export interface Download {
  readonly startedAt: Date
  readonly bytes: number
  readonly complete: boolean
  readonly address: string
  readonly agent: string
}

export interface LinkPage {
  readonly links: ReadonlyArray<OwnLink>
  /** of the next page; null: the last */
  readonly cursor: string | null
}

/** The links that are asked for: all of a user's, or those to one file or directory. */
export interface LinkQuery {
  readonly fileId?: string
  readonly directoryId?: string
  readonly limit: number
  readonly cursor?: string
}

/** The topic of notices that links were revoked. */
export const linksRevoked = "files:links"

export const linkNotFound = NotFound.of("Link not found", { code: "link_not_found", param: "token" })

/** Links to files and directories, as their owners manage them. Source: contract/files#links. */
export class ShareLinks extends Context.Service<
  ShareLinks,
  {
    readonly make: (
      userId: string,
      asked: NewShareLink
    ) => Effect.Effect<OwnLink, BadRequest | NotFound | Conflict | ServiceUnavailable | SqlError>
    readonly list: (
      userId: string,
      query: LinkQuery
    ) => Effect.Effect<LinkPage, BadRequest | NotFound | SqlError>
    /** with the last downloads, the newest first */
    readonly read: (
      userId: string,
      token: string
    ) => Effect.Effect<OwnLink & { readonly downloads: ReadonlyArray<Download> }, NotFound | SqlError>
    /** Downloads under way end within a second, in all processes. */
    readonly revoke: (userId: string, token: string) => Effect.Effect<void, NotFound | SqlError>
  }
>()("signalbox/files/ShareLinks") {
  static readonly layer = Layer.effect(
    ShareLinks,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const notices = yield* Notices
      const reading = yield* makeReading
      return ShareLinks.of({
        make: yield* makeMaking,
        ...reading,
        revoke: Effect.fnUntraced(function* (userId, token) {
          const hash = tokenHash(token)
          const gone =
            hash === undefined
              ? []
              : yield* sql`DELETE FROM share_links WHERE token_hash = ${hash} AND user_id = ${userId}
                  RETURNING user_id`
          if (gone.length === 0) return yield* linkNotFound
          yield* notices.publish(linksRevoked)
        })
      })
    })
  )
}

/** A file by one of its versions, or a directory: exactly one of them. */
const targetOf = Effect.fnUntraced(function* (
  tree: Tree["Service"],
  versions: Versions["Service"],
  userId: string,
  { directoryId, fileId, pinned }: NewShareLink
) {
  if (typeof fileId === "string" && typeof directoryId === "string")
    return yield* invalidField("directoryId", "give this or fileId, not both")
  if (typeof fileId === "string") {
    const file = yield* versions.find(fileId)
    if (file.userId !== userId) return yield* fileNotFound
    return { groupId: file.groupId, versionId: pinned === true ? file.id : null, directoryId: null }
  }
  if (typeof directoryId !== "string") return yield* invalidField("fileId", "give this or directoryId")
  if (pinned === true) return yield* invalidField("pinned", "directories have no versions: leave it out")
  const { id } = yield* tree.directory(userId, directoryId)
  return { groupId: null, versionId: null, directoryId: id }
})

const makeMaking = Effect.gen(function* () {
  const sql = yield* SqlClient
  const clock = yield* Clock.Clock
  const { limits } = yield* AppConfig
  const tree = yield* Tree
  const versions = yield* Versions
  const passwords = yield* LinkPasswords
  const secrets = yield* Secrets
  return Effect.fnUntraced(function* (userId: string, asked: NewShareLink) {
    const target = yield* targetOf(tree, versions, userId, asked)
    const { expiresInMinutes, label = null, maxRequests, password, singleUse } = asked
    const hashed = typeof password === "string" ? yield* passwords.hash(password) : null
    const now = clock.currentTimeMillisUnsafe()
    const expiresAt = typeof expiresInMinutes === "number" ? new Date(now + expiresInMinutes * 60_000) : null
    const made = newToken()
    const seal = sealed(made, yield* secrets.of(secretName))
    const row: Readonly<Record<string, unknown>> = {
      token_hash: made.hash,
      token_sealed: seal,
      user_id: userId,
      group_id: target.groupId,
      version_id: target.versionId,
      directory_id: target.directoryId,
      label,
      max_requests: maxRequests ?? (singleUse === true ? 1 : null),
      password: hashed,
      expires_at: expiresAt,
      created_at: new Date(now)
    }
    const insert = Effect.gen(function* () {
      // Another one that is made for the same user waits here, and counts this one.
      yield* sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
      const [counted] = yield* sql<{ n: number }>`SELECT count(*)::int AS n FROM share_links
        WHERE user_id = ${userId} AND token_sealed IS NOT NULL
          AND (expires_at IS NULL OR expires_at > ${new Date(now)})`
      if ((counted?.n ?? 0) >= limits.linksPerUser)
        return yield* Conflict.of(`A user has at most ${limits.linksPerUser} links`, {
          code: "too_many_links"
        })
      yield* sql`INSERT INTO share_links ${sql.insert(row)}`
    })
    yield* sql.withTransaction(insert)
    const [link] = yield* linksWhere(sql, sql`l.token_hash = ${made.hash}`)
    if (link === undefined) return yield* linkNotFound
    return shown(link, made.token)
  })
})

const secretName = "share-links"

type LinkRow = Omit<OwnLink, "token"> & { readonly hash: Uint8Array; readonly sealed: Uint8Array | null }

const shown = ({ hash: _hash, sealed: _sealed, ...link }: LinkRow, token: string): OwnLink => ({
  ...link,
  token
})

/** With what they lead to now. */
const linksWhere = (sql: SqlClient, where: Fragment, limit = 1) =>
  sql<LinkRow>`SELECT l.token_hash AS hash, l.token_sealed AS sealed, v.id AS "fileId", l.group_id AS "versionGroupId",
      l.directory_id AS "directoryId", CASE WHEN v.id IS NULL THEN d.name ELSE g.name END AS name,
      l.max_requests AS "maxRequests", l.uses, l.password IS NOT NULL AS "passwordProtected",
      l.version_id IS NOT NULL AS pinned, l.label, l.expires_at AS "expiresAt", l.created_at AS "createdAt"
    FROM share_links l
    LEFT JOIN file_groups g ON g.id = l.group_id AND g.trash_id IS NULL
    LEFT JOIN file_versions v ON v.id = coalesce(l.version_id, g.current_id) AND v.group_id = g.id
    LEFT JOIN directories d ON d.id = l.directory_id AND d.trash_id IS NULL
    WHERE ${where} ORDER BY l.created_at DESC, l.token_hash DESC LIMIT ${limit}`

const cursorForm = /^(\d{1,13})-([0-9a-f]{64})$/

const cursorOf = ({ createdAt, hash }: LinkRow): string =>
  `${createdAt.getTime()}-${Buffer.from(hash).toString("hex")}`

const behind = (sql: SqlClient, cursor: string | undefined): Effect.Effect<Fragment, BadRequest> => {
  if (cursor === undefined) return Effect.succeed(sql`true`)
  const [, millis, hash] = cursorForm.exec(cursor) ?? []
  if (millis === undefined || hash === undefined)
    return Effect.fail(invalidField("cursor", "the cursor of the page before"))
  return Effect.succeed(
    sql`(l.created_at, l.token_hash) < (${new Date(Number(millis))}, ${Buffer.from(hash, "hex")})`
  )
}

const makeReading = Effect.gen(function* () {
  const sql = yield* SqlClient
  const secrets = yield* Secrets
  const versions = yield* Versions
  const clock = yield* Clock.Clock
  const { limits } = yield* AppConfig
  const ofFile = Effect.fnUntraced(function* (userId: string, fileId: string | undefined) {
    if (fileId === undefined) return sql`true`
    const { groupId, userId: owner } = yield* versions.find(fileId)
    if (owner !== userId) return yield* fileNotFound
    return sql`l.group_id = ${groupId}`
  })
  const list: ShareLinks["Service"]["list"] = Effect.fnUntraced(function* (userId, query) {
    const { cursor, directoryId, fileId, limit } = query
    const file = yield* ofFile(userId, fileId)
    const directory = directoryId === undefined ? sql`true` : sql`l.directory_id = ${directoryId}`
    const after = yield* behind(sql, cursor)
    const where = sql`l.user_id = ${userId} AND l.token_sealed IS NOT NULL AND ${file} AND ${directory} AND ${after}`
    const rows = yield* linksWhere(sql, where, limit + 1)
    const key = yield* secrets.of(secretName)
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      links: page.map((row) => shown(row, unsealed(row.sealed ?? row.hash, row.hash, key))),
      cursor: rows.length > limit && last !== undefined ? cursorOf(last) : null
    }
  })
  const read: ShareLinks["Service"]["read"] = Effect.fnUntraced(function* (userId, token) {
    const hash = tokenHash(token)
    if (hash === undefined) return yield* linkNotFound
    const [row] = yield* linksWhere(sql, sql`l.token_hash = ${hash} AND l.user_id = ${userId}`)
    if (row === undefined) return yield* linkNotFound
    const since = new Date(clock.currentTimeMillisUnsafe() - limits.linkUseKeptMillis)
    const downloads = yield* sql<Download>`SELECT started_at AS "startedAt", sent::float8 AS bytes,
        is_complete AS complete, address, agent
      FROM share_uses WHERE token_hash = ${hash} AND started_at > ${since}
      ORDER BY started_at DESC, id LIMIT ${limits.usesPerLink}`
    return { ...shown(row, token), downloads }
  })
  return { list, read }
})
