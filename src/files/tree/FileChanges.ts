import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type BadRequest,
  Conflict,
  type NotFound,
  type PreconditionFailed,
  ServiceUnavailable,
  type StorageFull
} from "#schemas/core/Problem.ts"
import { entryName, searchName } from "#schemas/files/Names.ts"
import type { OnConflict } from "#schemas/files/TreeTerms.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import { freeName, nameTaken } from "./FreeNames.ts"
import { type Caller, checkIfMatch, directoryFor, etagOfFile, holdingAlone } from "./Holding.ts"
import { Purge } from "./Purge.ts"
import { StorageRoom } from "./StorageRoom.ts"
import { Trash } from "./Trash.ts"
import { checkLength, type Directory, Tree, treeChanged } from "./Tree.ts"
import { fileNotFound, type StoredFile, Versions } from "./Versions.ts"

interface Target {
  readonly name?: string
  readonly directoryId?: string
  readonly onConflict?: OnConflict
}

type ChangeFault = BadRequest | Conflict | NotFound | PreconditionFailed | SqlError

/** Renames, moves, copies and versions that become current again. `id`: of a version or a file. */
export class FileChanges extends Context.Service<
  FileChanges,
  {
    readonly move: (
      caller: Caller,
      id: string,
      target: Target,
      ifMatch: string | undefined
    ) => Effect.Effect<StoredFile, ChangeFault>
    readonly copy: (
      caller: Caller,
      id: string,
      target: Target,
      ifMatch: string | undefined
    ) => Effect.Effect<StoredFile, ChangeFault | ServiceUnavailable | StorageFull>
    /**
     * The name that a file gets in a directory, whose bucket the transaction holds alone; where another file has the one that
     * is wanted and is to be replaced, that is in the trash then.
     */
    readonly nameFor: (
      groupId: string,
      to: Directory,
      name: string,
      onConflict: OnConflict
    ) => Effect.Effect<string, Conflict | SqlError>
    /** The bytes of a version become a new version of its file; a current one stays as it is. */
    readonly revert: (
      caller: Caller,
      id: string,
      ifMatch: string | undefined
    ) => Effect.Effect<StoredFile, ChangeFault | ServiceUnavailable | StorageFull>
    /** Deletes a version for good, but not the current one. */
    readonly deleteVersion: (
      caller: Caller,
      id: string,
      versionId: string
    ) => Effect.Effect<void, Conflict | NotFound | SqlError>
  }
>()("signalbox/files/FileChanges") {
  static readonly layer = Layer.effect(
    FileChanges,
    Effect.gen(function* () {
      const parts = {
        sql: yield* SqlClient,
        blobs: yield* BlobStore,
        notices: yield* Notices,
        room: yield* StorageRoom,
        tree: yield* Tree,
        purge: yield* Purge,
        trash: yield* Trash,
        versions: yield* Versions,
        directoryFor: yield* directoryFor
      }
      return FileChanges.of({
        move: movingOf(parts),
        ...copyingOf(parts),
        deleteVersion: deletingOf(parts),
        nameFor: namingOf(parts)
      })
    })
  )
}

interface Parts {
  readonly sql: SqlClient
  readonly blobs: BlobStore["Service"]
  readonly notices: Notices["Service"]
  readonly room: StorageRoom["Service"]
  readonly tree: Tree["Service"]
  readonly purge: Purge["Service"]
  readonly trash: Trash["Service"]
  readonly versions: Versions["Service"]
  readonly directoryFor: Effect.Success<typeof directoryFor>
}

const missing = fileNotFound

/** A file of the caller's, found by an id of it. */
const foundFor = ({ versions }: Parts, { reach, userId }: Caller, id: string, to: "read" | "write") =>
  Effect.flatMap(versions.find(id), (file) => {
    const isReached = to === "read" ? reach.mayRead(file.bucketName) : reach.mayWrite(file.bucketName)
    return file.userId === userId && isReached ? Effect.succeed(file) : Effect.fail(missing)
  })

const directoryOf = ({ tree }: Parts, file: StoredFile) =>
  Effect.catchTag(tree.directory(file.userId, file.directoryId), "NotFound", () => Effect.fail(missing))

/** The names of files in a directory, among these. */
const takenIn = (sql: SqlClient, directory: Directory) => (names: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ name: string }>`SELECT name FROM file_groups
      WHERE directory_id = ${directory.id} AND trash_id IS NULL AND name = ANY(${names}::text[])`,
    (rows) => rows.map(({ name }) => name)
  )

const namingOf = ({ sql, trash }: Parts): FileChanges["Service"]["nameFor"] =>
  Effect.fnUntraced(function* (groupId, to, name, onConflict) {
    const [other] = yield* sql<{ id: string }>`SELECT id FROM file_groups
      WHERE bucket_id = ${to.bucketId} AND path = ${to.path + name} AND trash_id IS NULL`
    if (other === undefined || other.id === groupId) return name
    if (onConflict === "fail") return yield* nameTaken
    if (onConflict === "rename") return yield* freeName(name, takenIn(sql, to))
    yield* trash.addFile(other.id)
    return name
  })

const movingOf = (parts: Parts): FileChanges["Service"]["move"] => {
  const { notices, sql, versions } = parts
  const nameFor = namingOf(parts)
  const moved = Effect.fnUntraced(function* (file: StoredFile, to: Directory, name: string) {
    const path = to.path + name
    yield* checkLength(path, "name")
    yield* sql`UPDATE file_groups SET directory_id = ${to.id}, bucket_id = ${to.bucketId}, name = ${name},
      path = ${path}, search_name = ${searchName(name)} WHERE id = ${file.groupId}`
    yield* notices.publish(treeChanged)
    return yield* versions.currentOf(file.groupId)
  })
  return Effect.fnUntraced(function* (caller, id, { directoryId, name: sent, onConflict = "fail" }, ifMatch) {
    const name = sent === undefined ? undefined : yield* entryName("name", sent)
    const look = Effect.gen(function* () {
      const file = yield* versions.currentOf((yield* foundFor(parts, caller, id, "write")).groupId)
      const to =
        directoryId === undefined
          ? yield* directoryOf(parts, file)
          : yield* parts.directoryFor(caller, directoryId, "write")
      return { file, to }
    })
    return yield* holdingAlone(
      sql,
      caller.userId,
      look,
      ({ file, to }) => [file.bucketId, to.bucketId],
      Effect.fnUntraced(function* ({ file, to }) {
        yield* checkIfMatch(ifMatch, etagOfFile(file))
        const wanted = name ?? file.name
        if (to.id === file.directoryId && wanted === file.name) return file
        return yield* moved(file, to, yield* nameFor(file.groupId, to, wanted, onConflict))
      })
    )
  })
}

const elsewhere = ServiceUnavailable.of(
  "The file's bytes are not on this server's disk; another server has them"
)

const copyingOf = (parts: Parts): Pick<FileChanges["Service"], "copy" | "revert"> => {
  const { blobs, room, sql, versions } = parts
  /** A version of the same bytes at a place, if there is room for them. */
  const write = Effect.fnUntraced(function* (
    file: StoredFile,
    directory: Directory,
    name: string,
    ifVersion: string | undefined
  ) {
    if (file.store !== blobs.id) return yield* elsewhere
    const { encryptionKeyId, isEncrypted, mimeType, modifiedAt, sha256, sizeBytes, userId } = file
    const made = { mimeType, modifiedAt, isEncrypted, encryptionKeyId, ifVersion }
    const blob = { sha256, sizeBytes }
    const written = yield* versions.write(userId, "copy", { directory, name, blob, ...made })
    yield* room.check(userId)
    return written
  })
  return {
    copy: (caller, id, { directoryId, name: sent, onConflict = "fail" }, ifMatch) =>
      Effect.gen(function* () {
        const file = yield* foundFor(parts, caller, id, "read")
        yield* checkIfMatch(ifMatch, etagOfFile(file))
        const to = yield* parts.directoryFor(caller, directoryId ?? file.directoryId, "write")
        const wanted = sent === undefined ? file.name : yield* entryName("name", sent)
        const taken = takenIn(sql, to)
        const isTaken = (yield* taken([wanted])).length > 0
        if (isTaken && onConflict === "fail") return yield* nameTaken
        const name = isTaken && onConflict === "rename" ? yield* freeName(wanted, taken) : wanted
        const written = write(file, to, name, onConflict === "replace" ? undefined : "none")
        return yield* Effect.mapError(written, (error) =>
          error._tag === "Conflict" && error.code === "other_version" ? nameTaken : error
        )
      }).pipe(sql.withTransaction, inUserTurn(sql, caller.userId)),
    revert: (caller, id, ifMatch) => {
      const look = Effect.gen(function* () {
        const file = yield* foundFor(parts, caller, id, "write")
        return { file, current: yield* versions.currentOf(file.groupId) }
      })
      return holdingAlone(
        sql,
        caller.userId,
        look,
        ({ current }) => [current.bucketId],
        Effect.fnUntraced(function* ({ current, file }) {
          yield* checkIfMatch(ifMatch, etagOfFile(current))
          if (file.isCurrent) return file
          return yield* write(file, yield* directoryOf(parts, file), file.name, undefined)
        })
      )
    }
  }
}

const isCurrent = Conflict.of("The current version cannot be deleted", { code: "current_version" })

/** The bucket is held, so that a version goes neither amid a move to the trash nor amid its own return. */
const deletingOf = (parts: Parts): FileChanges["Service"]["deleteVersion"] => {
  const { notices, purge, sql, versions } = parts
  return (caller, id, versionId) => {
    const look = Effect.gen(function* () {
      const { groupId } = yield* foundFor(parts, caller, id, "write")
      const version = yield* versions.find(versionId)
      return version.groupId === groupId ? version : yield* missing
    })
    return holdingAlone(
      sql,
      caller.userId,
      look,
      ({ bucketId }) => [bucketId],
      Effect.fnUntraced(function* (version) {
        if (version.isCurrent) return yield* isCurrent
        yield* purge.versions([version.id])
        yield* notices.publish(treeChanged)
      })
    )
  }
}
