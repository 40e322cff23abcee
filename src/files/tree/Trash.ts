import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type BadRequest,
  type Conflict,
  invalidField,
  NotFound,
  type PreconditionFailed
} from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import type { Buckets } from "../access/Reach.ts"
import { cursorOf, pageOf, partsOf } from "./Cursors.ts"
import { staysInbox } from "./DirectoryChanges.ts"
import {
  type Caller,
  checkIfMatch,
  directoryFor,
  etagOfDirectory,
  etagOfFile,
  holdingAlone
} from "./Holding.ts"
import { Purge } from "./Purge.ts"
import { rowsOf, sizeOf } from "./Subtrees.ts"
import { Tree, treeChanged } from "./Tree.ts"
import { fileNotFound, Versions } from "./Versions.ts"

/** An entry of the trash: a file or directory that was deleted, with all that was below it. */
export interface TrashRow {
  readonly id: string
  readonly kind: "file" | "directory"
  readonly itemId: string
  readonly name: string
  /** where it was, from the bucket on */
  readonly path: string
  readonly size: number
  readonly trashedAt: Date
  readonly expiresAt: Date
}

type TrashFault = Conflict | NotFound | PreconditionFailed | SqlError

/** Files and directories that were deleted lately; see `Restoring.ts` for the way back. */
export class Trash extends Context.Service<
  Trash,
  {
    /** In the caller's transaction, which holds the bucket alone: a file goes to the trash; answers the entry's id. */
    readonly addFile: (groupId: string) => Effect.Effect<string, SqlError>
    readonly trashFile: (
      caller: Caller,
      id: string,
      ifMatch: string | undefined
    ) => Effect.Effect<string, TrashFault>
    readonly trashDirectory: (
      caller: Caller,
      id: string,
      ifMatch: string | undefined
    ) => Effect.Effect<string, TrashFault>
    /** newest first */
    readonly list: (
      userId: string,
      readable: Buckets,
      page: { readonly limit: number; readonly cursor?: string }
    ) => Effect.Effect<
      { readonly rows: ReadonlyArray<TrashRow>; readonly cursor: string | null },
      BadRequest | SqlError
    >
    /** Deletes all of the user's entries for good; where there are many files, some go a little later. */
    readonly empty: (userId: string) => Effect.Effect<void, SqlError>
    readonly remove: (userId: string, id: string) => Effect.Effect<void, NotFound | SqlError>
    /** Deletes what has been in the trash for too long, and all that deleted users had. */
    readonly sweep: Effect.Effect<void, SqlError>
  }
>()("signalbox/files/Trash") {
  static readonly layer = Layer.effect(
    Trash,
    Effect.gen(function* () {
      const { limits, trashDays } = yield* AppConfig
      const parts = {
        sql: yield* SqlClient,
        notices: yield* Notices,
        purge: yield* Purge,
        tree: yield* Tree,
        versions: yield* Versions,
        directoryFor: yield* directoryFor,
        goneMillis: limits.goneMillis,
        trashDays
      }
      return Trash.of({ ...addingOf(parts), ...emptyingOf(parts), list: listingOf(parts) })
    })
  )
}

interface Parts {
  readonly sql: SqlClient
  readonly notices: Notices["Service"]
  readonly purge: Purge["Service"]
  readonly tree: Tree["Service"]
  readonly versions: Versions["Service"]
  readonly directoryFor: Effect.Success<typeof directoryFor>
  readonly goneMillis: number
  readonly trashDays: number
}

const addingOf = (parts: Parts): Pick<Trash["Service"], "addFile" | "trashFile" | "trashDirectory"> => {
  const { directoryFor, notices, sql, versions } = parts
  const addFile = Effect.fnUntraced(function* (groupId: string) {
    const id = newId("tsh")
    yield* sql`INSERT INTO file_trash (id, user_id, kind, item_id, name, path, size)
      SELECT ${id}, g.user_id, 'file', g.id, g.name, b.name || '/' || g.path,
        (SELECT coalesce(sum(v.size), 0) FROM file_versions v WHERE v.group_id = g.id)
      FROM file_groups g JOIN directories b ON b.id = g.bucket_id WHERE g.id = ${groupId}`
    yield* sql`UPDATE file_groups SET trash_id = ${id} WHERE id = ${groupId}`
    yield* notices.publish(treeChanged)
    return id
  })
  return {
    addFile,
    trashFile: (caller, id, ifMatch) => {
      const look = Effect.gen(function* () {
        const { groupId } = yield* versions.find(id)
        const file = yield* versions.currentOf(groupId)
        const isReached = file.userId === caller.userId && caller.reach.mayWrite(file.bucketName)
        return isReached ? file : yield* fileNotFound
      })
      return holdingAlone(
        sql,
        caller.userId,
        look,
        ({ bucketId }) => [bucketId],
        (file) => Effect.andThen(checkIfMatch(ifMatch, etagOfFile(file)), addFile(file.groupId))
      )
    },
    trashDirectory: (caller, id, ifMatch) =>
      holdingAlone(
        sql,
        caller.userId,
        directoryFor(caller, id, "write"),
        ({ bucketId }) => [bucketId],
        Effect.fnUntraced(function* (directory) {
          yield* checkIfMatch(ifMatch, etagOfDirectory(directory))
          if (directory.kind === "inbox") return yield* staysInbox
          const trashId = newId("tsh")
          const subtree = { ...directory, trashId: null }
          const size = yield* sizeOf(sql, subtree)
          const path = `${directory.bucketName}/${directory.path}`.slice(0, -1)
          yield* sql`INSERT INTO file_trash (id, user_id, kind, item_id, name, path, size) VALUES (${trashId},
            ${directory.userId}, 'directory', ${id}, ${directory.name}, ${path}, ${size}::float8::bigint)`
          yield* sql`UPDATE file_groups SET trash_id = ${trashId} WHERE ${rowsOf(sql, subtree)}`
          yield* sql`UPDATE directories SET trash_id = ${trashId} WHERE ${rowsOf(sql, subtree)}`
          yield* notices.publish(treeChanged)
          return trashId
        })
      )
  }
}

const dayMillis = 86_400_000

const listingOf = ({ sql, trashDays }: Parts): Trash["Service"]["list"] =>
  Effect.fnUntraced(function* (userId, readable, { cursor, limit }) {
    const [micros = "9007199254740991", id = ""] = (yield* partsOf(cursor, 2)) ?? []
    if (!/^\d{1,16}$/u.test(micros)) return yield* invalidField("cursor", "expected `cursor` of another page")
    const isReadable =
      readable === "all" ? sql.literal("true") : sql`split_part(path, '/', 1) = ANY(${[...readable]}::text[])`
    const rows = yield* sql<Omit<TrashRow, "expiresAt"> & { readonly micros: string }>`
      SELECT id, kind, item_id AS "itemId", name, path, size::float8 AS size, trashed_at AS "trashedAt",
        (extract(epoch FROM trashed_at) * 1000000)::bigint::text AS micros FROM file_trash
      WHERE user_id = ${userId} AND NOT is_ended AND ${isReadable} AND (trashed_at, id) <
        (timestamptz 'epoch' + ${Number(micros)}::float8 * interval '1 microsecond', ${id})
      ORDER BY trashed_at DESC, id DESC LIMIT ${limit + 1}`
    const shown = rows.map((row) => ({
      ...row,
      expiresAt: new Date(row.trashedAt.getTime() + trashDays * dayMillis)
    }))
    return pageOf(shown, limit, (last) => cursorOf(last.micros, last.id))
  })

/** The tree of a user who was deleted becomes one entry, which has ended as those that there are: it goes as they do. */
const endingTrees = ({ goneMillis, sql }: Parts) => {
  const gone = sql<{ id: string }>`SELECT id FROM users u
    WHERE deleted_at < now() - ${goneMillis}::float8 * interval '1 millisecond'
      AND (EXISTS (SELECT FROM directories d WHERE d.user_id = u.id AND d.trash_id IS NULL)
        OR EXISTS (SELECT FROM file_trash t WHERE t.user_id = u.id AND NOT t.is_ended))`
  const end = Effect.fnUntraced(function* (userId: string) {
    const trashId = newId("tsh")
    yield* sql`INSERT INTO file_trash (id, user_id, kind, item_id, name, path, size, is_ended)
      VALUES (${trashId}, ${userId}, 'directory', ${userId}, '', '', 0, true)`
    yield* sql`UPDATE file_groups SET trash_id = ${trashId} WHERE user_id = ${userId} AND trash_id IS NULL`
    yield* sql`UPDATE directories SET trash_id = ${trashId} WHERE user_id = ${userId} AND trash_id IS NULL`
    yield* sql`UPDATE file_trash SET is_ended = true WHERE user_id = ${userId}`
  }, sql.withTransaction)
  return Effect.flatMap(gone, (users) => Effect.forEach(users, ({ id }) => end(id), { discard: true }))
}

const emptyingOf = (parts: Parts): Pick<Trash["Service"], "empty" | "remove" | "sweep"> => {
  const { purge, sql, trashDays } = parts
  return {
    empty: (userId) =>
      Effect.andThen(
        sql`UPDATE file_trash SET is_ended = true WHERE user_id = ${userId} AND NOT is_ended`,
        purge.begin(userId)
      ),
    remove: Effect.fnUntraced(function* (userId, id) {
      const ended = yield* sql`UPDATE file_trash SET is_ended = true
        WHERE user_id = ${userId} AND id = ${id} AND NOT is_ended RETURNING 1`
      if (ended.length === 0)
        return yield* NotFound.of("Entry not found in the trash", { code: "entry_not_found", param: "id" })
      yield* purge.begin(userId)
    }),
    sweep: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* endingTrees(parts)
      yield* sql`UPDATE file_trash SET is_ended = true
        WHERE NOT is_ended AND trashed_at <= ${new Date(now - trashDays * dayMillis)}`
      yield* purge.all
    })
  }
}
