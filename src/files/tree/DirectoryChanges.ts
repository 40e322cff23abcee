import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type BadRequest,
  Conflict,
  Forbidden,
  invalidField,
  type NotFound,
  type PreconditionFailed
} from "#schemas/core/Problem.ts"
import type { DirectoryChange, NewDirectory } from "#schemas/files/Directory.ts"
import { bucketName, entryName } from "#schemas/files/Names.ts"
import { AppConfig } from "#src/Config.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import type { Limits } from "#src/Limits.ts"
import { writesNamed } from "../access/Reach.ts"
import { nameTaken } from "./FreeNames.ts"
import { type Caller, checkIfMatch, directoryFor, etagOfDirectory, holdingAlone } from "./Holding.ts"
import { checkFits, moveSubtree, type NewPlace } from "./Subtrees.ts"
import { type Directory, inboxName, Tree, treeChanged } from "./Tree.ts"

/** Makes, renames and moves directories, and sets what holds in a bucket. */
export class DirectoryChanges extends Context.Service<
  DirectoryChanges,
  {
    readonly create: (
      caller: Caller,
      made: NewDirectory
    ) => Effect.Effect<Directory, BadRequest | Conflict | Forbidden | NotFound | SqlError>
    readonly update: (
      caller: Caller,
      id: string,
      change: DirectoryChange,
      ifMatch: string | undefined
    ) => Effect.Effect<
      Directory,
      BadRequest | Conflict | Forbidden | NotFound | PreconditionFailed | SqlError
    >
  }
>()("signalbox/files/DirectoryChanges") {
  static readonly layer = Layer.effect(
    DirectoryChanges,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const parts = {
        sql: yield* SqlClient,
        notices: yield* Notices,
        tree: yield* Tree,
        directoryFor: yield* directoryFor,
        limits
      }
      return DirectoryChanges.of({ create: creatingOf(parts), update: updatingOf(parts) })
    })
  )
}

interface Parts {
  readonly sql: SqlClient
  readonly notices: Notices["Service"]
  readonly tree: Tree["Service"]
  readonly directoryFor: Effect.Success<typeof directoryFor>
  readonly limits: Limits
}

/** Whether a directory, not in the trash, has this name there. */
export const isNameTaken = (sql: SqlClient, userId: string, parentId: string | null, name: string) =>
  Effect.map(
    sql`SELECT 1 FROM directories WHERE user_id = ${userId} AND coalesce(parent_id, '') = ${parentId ?? ""}
      AND name = ${name} AND trash_id IS NULL`,
    (rows) => rows.length > 0
  )

const creatingOf = ({ directoryFor, sql, tree }: Parts): DirectoryChanges["Service"]["create"] =>
  Effect.fnUntraced(function* (caller, { name: sent, parentId = null }) {
    const { reach, userId } = caller
    const name = yield* parentId === null ? bucketName("name", sent) : entryName("name", sent)
    if (parentId === null) yield* writesNamed(reach, name)
    const parent = parentId === null ? undefined : yield* directoryFor(caller, parentId, "write")
    return yield* tree.create(userId, parent, name).pipe(sql.withTransaction, inUserTurn(sql, userId))
  })

/** It is there for what is sent, and has no other place. */
export const staysInbox = Conflict.of("The Inbox cannot be renamed, moved or deleted", { code: "inbox" })

/** Settings of a bucket. */
const settle = Effect.fnUntraced(function* (
  sql: SqlClient,
  { reach }: Caller,
  { id, parentId }: Directory,
  { requiredReplicas, versionDays }: DirectoryChange
) {
  if (versionDays === undefined && requiredReplicas === undefined) return
  const field = versionDays === undefined ? "requiredReplicas" : "versionDays"
  if (parentId !== null) return yield* invalidField(field, "is a bucket's")
  if (!reach.isFull) return yield* Forbidden.of("This takes the scope full")
  if (versionDays !== undefined)
    yield* sql`UPDATE directories SET version_days = ${versionDays}::int WHERE id = ${id}`
  if (requiredReplicas !== undefined)
    yield* sql`UPDATE directories SET required_replicas = ${requiredReplicas}::int WHERE id = ${id}`
})

const updatingOf = (parts: Parts): DirectoryChanges["Service"]["update"] => {
  const { directoryFor, limits, notices, sql, tree } = parts
  const move = Effect.fnUntraced(function* (
    directory: Directory,
    parent: Directory | undefined,
    name: string
  ) {
    const parentId = parent?.id ?? null
    if (parentId === directory.parentId && name === directory.name) return
    if (directory.kind === "inbox") return yield* staysInbox
    const isInside = parent?.bucketId === directory.bucketId && parent.path.startsWith(directory.path)
    if (isInside) return yield* invalidField("parentId", "is the directory itself, or below it")
    if (yield* isNameTaken(sql, directory.userId, parentId, name)) return yield* nameTaken
    const to: NewPlace = {
      bucketId: parent?.bucketId ?? directory.id,
      parentId,
      name,
      path: parent === undefined ? "" : `${parent.path}${name}/`
    }
    const subtree = { ...directory, trashId: null }
    yield* checkFits(sql, subtree, to, limits)
    yield* moveSubtree(sql, directory.id, subtree, to)
    yield* notices.publish(treeChanged)
  })
  return Effect.fnUntraced(function* (caller, id, change, ifMatch) {
    const { name: sent, parentId } = change
    const toRoot = parentId === null
    const look = Effect.gen(function* () {
      const directory = yield* directoryFor(caller, id, "write")
      const above = parentId === undefined ? directory.parentId : parentId
      const parent = above === null ? undefined : yield* directoryFor(caller, above, "write")
      return { directory, parent }
    })
    return yield* holdingAlone(
      sql,
      caller.userId,
      look,
      ({ directory, parent }) => [directory.bucketId, parent?.bucketId ?? directory.bucketId],
      Effect.fnUntraced(function* ({ directory, parent }) {
        yield* checkIfMatch(ifMatch, etagOfDirectory(directory))
        const wanted = sent ?? directory.name
        const name = yield* parent === undefined ? bucketName("name", wanted) : entryName("name", wanted)
        if (parent === undefined && (toRoot || name !== directory.name))
          yield* writesNamed(caller.reach, name)
        if (parent === undefined && name === inboxName && directory.kind !== "inbox") return yield* nameTaken
        yield* move(directory, parent, name)
        const moved = yield* tree.directory(caller.userId, id)
        yield* settle(sql, caller, moved, change)
        return yield* tree.directory(caller.userId, id)
      })
    )
  })
}
