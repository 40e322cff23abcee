import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BadRequest, Conflict, NotFound } from "#schemas/core/Problem.ts"
import { searchName } from "#schemas/files/Names.ts"
import type { OnConflict } from "#schemas/files/TreeTerms.ts"
import { AppConfig } from "#src/Config.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import type { Limits } from "#src/Limits.ts"
import { isNameTaken } from "./DirectoryChanges.ts"
import { FileChanges } from "./FileChanges.ts"
import { freeName, nameTaken } from "./FreeNames.ts"
import { type Caller, holdingAlone } from "./Holding.ts"
import { checkFits, moveSubtree, type NewPlace } from "./Subtrees.ts"
import { checkLength, type Directory, directoryGone, directoryNotFound, Tree, treeChanged } from "./Tree.ts"
import { fileNotFound, type StoredFile, Versions } from "./Versions.ts"

type RestoreFault = BadRequest | Conflict | NotFound | SqlError

/** The way back from the trash. Directories that are gone are made again, as they were called. */
export class Restoring extends Context.Service<
  Restoring,
  {
    /** by an id of a file; undefined: it is not in the trash */
    readonly file: (
      caller: Caller,
      id: string,
      onConflict: OnConflict
    ) => Effect.Effect<StoredFile | undefined, RestoreFault>
    readonly directory: (
      caller: Caller,
      id: string,
      onConflict: "fail" | "rename"
    ) => Effect.Effect<Directory, RestoreFault>
  }
>()("signalbox/files/Restoring") {
  static readonly layer = Layer.effect(
    Restoring,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const parts = {
        sql: yield* SqlClient,
        notices: yield* Notices,
        changes: yield* FileChanges,
        tree: yield* Tree,
        versions: yield* Versions,
        limits
      }
      return Restoring.of({ file: restoringFile(parts), directory: restoringDirectory(parts) })
    })
  )
}

interface Parts {
  readonly sql: SqlClient
  readonly notices: Notices["Service"]
  readonly changes: FileChanges["Service"]
  readonly tree: Tree["Service"]
  readonly versions: Versions["Service"]
  readonly limits: Limits
}

/** The directory that something was in: by its id if it is there, else by its names, the bucket first. */
const placeOf = (
  { sql, tree }: Parts,
  userId: string,
  id: string,
  names: ReadonlyArray<string>
): Effect.Effect<Directory, BadRequest | Conflict | SqlError> =>
  Effect.catchTag(tree.directory(userId, id), "NotFound", () => tree.ensure(userId, undefined, names)).pipe(
    inUserTurn(sql, userId)
  )

/** Whether an entry is still there and stays until the transaction ends, which holds the bucket. */
const holdEntry = (sql: SqlClient, id: string) =>
  Effect.map(
    sql`SELECT 1 FROM file_trash WHERE id = ${id} AND NOT is_ended FOR UPDATE`,
    (rows) => rows.length > 0
  )

interface TrashedFile {
  readonly groupId: string
  readonly name: string
  readonly directoryId: string
  readonly trashId: string
  readonly isWhole: boolean
  /** of the entry, from the bucket on */
  readonly entryPath: string
  /** within the bucket */
  readonly path: string
}

const bucketOf = (path: string): string => path.split("/")[0] ?? ""

const restoringFile = (parts: Parts): Restoring["Service"]["file"] => {
  const { changes, notices, sql, versions } = parts
  const find = (userId: string, id: string) => {
    const group = id.startsWith("fg_")
      ? sql`${id}`
      : sql`(SELECT group_id FROM file_versions WHERE id = ${id})`
    return Effect.map(
      sql<TrashedFile>`SELECT g.id AS "groupId", g.name, g.directory_id AS "directoryId", t.id AS "trashId",
          t.item_id = g.id AS "isWhole", t.path AS "entryPath", g.path
        FROM file_groups g JOIN file_trash t ON t.id = g.trash_id
        WHERE g.id = ${group} AND g.user_id = ${userId} AND NOT t.is_ended`,
      ([found]) => found
    )
  }
  const put = Effect.fnUntraced(function* (file: TrashedFile, to: Directory, name: string) {
    yield* checkLength(to.path + name, "name")
    yield* sql`UPDATE file_groups SET trash_id = NULL, directory_id = ${to.id}, bucket_id = ${to.bucketId},
      name = ${name}, search_name = ${searchName(name)}, path = ${to.path + name} WHERE id = ${file.groupId}`
    yield* file.isWhole
      ? sql`DELETE FROM file_trash WHERE id = ${file.trashId}`
      : sql`UPDATE file_trash SET size = size - (SELECT coalesce(sum(v.size), 0) FROM file_versions v
          WHERE v.group_id = ${file.groupId}) WHERE id = ${file.trashId}`
    yield* notices.publish(treeChanged)
    return yield* versions.currentOf(file.groupId)
  })
  return Effect.fnUntraced(function* (caller, id, onConflict) {
    const { reach, userId } = caller
    const seen = yield* find(userId, id)
    if (seen === undefined) return undefined
    const bucket = bucketOf(seen.entryPath)
    if (!reach.mayWrite(bucket)) return yield* fileNotFound
    const names = [bucket, ...seen.path.split("/").slice(0, -1)]
    const { id: directoryId } = yield* placeOf(parts, userId, seen.directoryId, names)
    const look = Effect.gen(function* () {
      const file = yield* find(userId, id)
      const to = yield* Effect.catchTag(parts.tree.directory(userId, directoryId), "NotFound", () =>
        Effect.fail(directoryGone)
      )
      if (file === undefined || !reach.mayWrite(to.bucketName)) return yield* fileNotFound
      return { file, to }
    })
    return yield* holdingAlone(
      sql,
      userId,
      look,
      ({ to }) => [to.bucketId],
      Effect.fnUntraced(function* ({ file, to }) {
        if (!(yield* holdEntry(sql, file.trashId))) return yield* fileNotFound
        const name = yield* changes.nameFor(file.groupId, to, file.name, onConflict)
        return yield* put(file, to, name)
      })
    )
  })
}

interface TrashedDirectory {
  readonly bucketId: string
  readonly parentId: string | null
  readonly name: string
  readonly path: string
  readonly trashId: string
  /** from the bucket on */
  readonly entryPath: string
}

/** The name that a directory gets among those that are there. */
const nameAmong = Effect.fnUntraced(function* (
  sql: SqlClient,
  userId: string,
  parentId: string | null,
  name: string,
  onConflict: "fail" | "rename"
): Effect.fn.Return<string, Conflict | SqlError> {
  if (!(yield* isNameTaken(sql, userId, parentId, name))) return name
  if (onConflict === "fail") return yield* nameTaken
  return yield* freeName(
    name,
    (names) =>
      Effect.map(
        sql<{ name: string }>`SELECT name FROM directories WHERE user_id = ${userId} AND trash_id IS NULL
          AND coalesce(parent_id, '') = ${parentId ?? ""} AND name = ANY(${names}::text[])`,
        (rows) => rows.map((row) => row.name)
      ),
    parentId === null
  )
})

const restoringDirectory = (parts: Parts): Restoring["Service"]["directory"] => {
  const { limits, notices, sql, tree } = parts
  const find = (userId: string, id: string) =>
    Effect.flatMap(
      sql<TrashedDirectory>`SELECT d.bucket_id AS "bucketId", d.parent_id AS "parentId", d.name, d.path,
          t.id AS "trashId", t.path AS "entryPath"
        FROM directories d JOIN file_trash t ON t.id = d.trash_id AND t.item_id = d.id
        WHERE d.id = ${id} AND d.user_id = ${userId} AND NOT t.is_ended`,
      ([found]): Effect.Effect<TrashedDirectory, NotFound> =>
        found === undefined ? Effect.fail(directoryNotFound) : Effect.succeed(found)
    )
  return Effect.fnUntraced(function* (caller, id, onConflict) {
    const { reach, userId } = caller
    const seen = yield* find(userId, id)
    if (!reach.mayWrite(bucketOf(seen.entryPath))) return yield* directoryNotFound
    const names = seen.entryPath.split("/").slice(0, -1)
    const parentId = seen.parentId === null ? null : (yield* placeOf(parts, userId, seen.parentId, names)).id
    const look = Effect.gen(function* () {
      const found = yield* find(userId, id)
      const parent = parentId === null ? undefined : yield* tree.directory(userId, parentId)
      const isReached = parent === undefined || reach.mayWrite(parent.bucketName)
      return isReached ? { found, parent } : yield* directoryNotFound
    })
    return yield* holdingAlone(
      sql,
      userId,
      look,
      ({ found, parent }) => [found.bucketId, parent?.bucketId ?? found.bucketId],
      Effect.fnUntraced(function* ({ found, parent }) {
        if (!(yield* holdEntry(sql, found.trashId))) return yield* directoryNotFound
        const name = yield* nameAmong(sql, userId, parentId, found.name, onConflict)
        const to: NewPlace = {
          bucketId: parent?.bucketId ?? id,
          parentId,
          name,
          path: parent === undefined ? "" : `${parent.path}${name}/`
        }
        yield* checkFits(sql, found, to, limits)
        yield* moveSubtree(sql, id, found, to)
        yield* sql`DELETE FROM file_trash WHERE id = ${found.trashId}`
        yield* notices.publish(treeChanged)
        return yield* tree.directory(userId, id)
      })
    )
  })
}
