import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, invalidField, NotFound } from "#schemas/core/Problem.ts"
import { bucketName, entryName, pathBytes, utf8Bytes } from "#schemas/files/Names.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Limits } from "#src/Limits.ts"
import { nameTaken } from "./FreeNames.ts"

/** A directory that is not in the trash. */
export interface Directory {
  readonly id: string
  readonly userId: string
  /** its own id, of a bucket */
  readonly bucketId: string
  readonly bucketName: string
  /** null: a bucket */
  readonly parentId: string | null
  readonly name: string
  /** within the bucket, with a slash at its end; '' of the bucket itself */
  readonly path: string
  /** `inbox`: the user's inbox; `device`: what was sent to a machine, which lists do not show */
  readonly kind: "plain" | "inbox" | "device"
  /** of the bucket: days for which versions are kept that are not current; null: for ever */
  readonly versionDays: number | null
  /** of the bucket */
  readonly requiredReplicas: number | null
  readonly createdAt: Date
  readonly modifiedAt: Date
  /** the transaction that last wrote it, as decimal digits */
  readonly changed: string
}

/** The topic of notices for those who have files in memory: a file was renamed, moved, trashed or deleted. */
export const treeChanged = "files:tree"

/** The columns of a `Directory`, of `directories d` with its bucket `b`. */
export const directoryColumns = `d.id, d.user_id AS "userId", d.bucket_id AS "bucketId", b.name AS "bucketName",
  d.parent_id AS "parentId", d.name, d.path, d.kind, b.version_days AS "versionDays",
  b.required_replicas AS "requiredReplicas", d.created_at AS "createdAt", d.modified_at AS "modifiedAt",
  d.changed::text AS changed`

/** Anything else is no id of a directory, and may be no text that a store takes. */
export const isDirectoryId = (id: string): boolean => /^dir_[0-9A-Za-z]{22}$/.test(id)

export const directoryNotFound = NotFound.of("Directory not found", {
  code: "directory_not_found",
  param: "directoryId"
})

/** It was moved to the trash while something was put into it. */
export const directoryGone = Conflict.of("The directory was deleted meanwhile", { code: "directory_gone" })

/** Directories of each user. */
export class Tree extends Context.Service<
  Tree,
  {
    readonly directory: (userId: string, id: string) => Effect.Effect<Directory, NotFound | SqlError>
    readonly bucket: (userId: string, name: string) => Effect.Effect<Directory | undefined, SqlError>
    /**
     * The directory at the end of these names below `base`, or below the root, where the first one is a bucket. What is
     * missing is made, in the caller's transaction. `field`: the part of the request that errors name; `path` where absent.
     */
    readonly ensure: (
      userId: string,
      base: Directory | undefined,
      names: ReadonlyArray<string>,
      field?: string
    ) => Effect.Effect<Directory, BadRequest | Conflict | SqlError>
    /** The same for one name, which has to be free. */
    readonly create: (
      userId: string,
      base: Directory | undefined,
      name: string
    ) => Effect.Effect<Directory, BadRequest | Conflict | SqlError>
    /** The bucket of what was sent to a machine, which no list shows; made where it is missing. */
    readonly deviceDirectory: (
      userId: string,
      deviceId: string
    ) => Effect.Effect<Directory, BadRequest | Conflict | SqlError>
  }
>()("signalbox/files/Tree") {
  static readonly layer = Layer.effect(
    Tree,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      return Tree.of({ ...findingOf(sql), ...ensuringOf(sql, limits) })
    })
  )
}

const selected = (sql: SqlClient) =>
  sql.literal(`SELECT ${directoryColumns} FROM directories d JOIN directories b ON b.id = d.bucket_id
    WHERE d.trash_id IS NULL`)

const findingOf = (sql: SqlClient): Pick<Tree["Service"], "directory" | "bucket"> => ({
  directory: (userId, id) =>
    Effect.flatMap(sql<Directory>`${selected(sql)} AND d.id = ${id} AND d.user_id = ${userId}`, ([found]) =>
      found === undefined ? Effect.fail(directoryNotFound) : Effect.succeed(found)
    ),
  bucket: (userId, name) =>
    Effect.map(
      sql<Directory>`${selected(sql)} AND d.user_id = ${userId} AND coalesce(d.parent_id, '') = ''
        AND d.name = ${name}`,
      ([found]) => found
    )
})

/** How many directories there are from the bucket to this one, both included. */
export const levelsOf = ({ path }: { readonly path: string }): number => path.split("/").length

/** Fails where a directory of this path within its bucket would be too deep, or the path too long. */
export const checkPath = (
  path: string,
  { directoryLevels }: Pick<Limits, "directoryLevels">,
  field: string
): Effect.Effect<void, BadRequest> => {
  if (levelsOf({ path }) > directoryLevels)
    return Effect.fail(invalidField(field, `at most ${directoryLevels} directories below each other`))
  return checkLength(path, field)
}

/** Fails where the path of a directory or file within its bucket is too long. */
export const checkLength = (path: string, field: string): Effect.Effect<void, BadRequest> =>
  utf8Bytes(path) > pathBytes
    ? Effect.fail(invalidField(field, `a path within a bucket has at most ${pathBytes} bytes`))
    : Effect.void

/** The bucket that every user has for what was sent to no machine. */
export const inboxName = "Inbox"

interface Ensured {
  readonly field?: string
  /** fails where it is there */
  readonly isNew?: boolean
  /** of the bucket */
  readonly kind?: Directory["kind"]
}

/** The bucket of what was sent to a device. No other bucket has this name, nor any scope: it has a space. */
export const bucketOfDevice = (deviceId: string): string => `device ${deviceId}`

const ensuringOf = (
  sql: SqlClient,
  limits: Limits
): Pick<Tree["Service"], "create" | "ensure" | "deviceDirectory"> => {
  const { directory } = findingOf(sql)
  const existing = (userId: string, base: Directory | undefined, bucket: string, path: string) =>
    base === undefined
      ? sql<Directory>`SELECT ${sql.literal(directoryColumns)} FROM directories b
          JOIN directories d ON d.bucket_id = b.id AND d.path = ${path} AND d.trash_id IS NULL
          WHERE b.user_id = ${userId} AND coalesce(b.parent_id, '') = '' AND b.name = ${bucket}
            AND b.trash_id IS NULL`
      : sql<Directory>`${selected(sql)} AND d.bucket_id = ${base.bucketId} AND d.path = ${path}
          AND d.user_id = ${userId}`
  /** `names` were checked. */
  const ensure = Effect.fnUntraced(function* (
    userId: string,
    base: Directory | undefined,
    names: ReadonlyArray<string>,
    { field = "path", isNew = false, kind }: Ensured
  ) {
    const [bucket = ""] = names
    const below = base === undefined ? names.slice(1) : names
    const path = `${base?.path ?? ""}${below.map((name) => `${name}/`).join("")}`
    yield* checkPath(path, limits, field)
    const [found] = yield* existing(userId, base, bucket, path)
    if (found !== undefined) return yield* isNew ? nameTaken : Effect.succeed(found)
    const ids = names.map(() => newId("dir"))
    const [made] = yield* sql<{
      id: string
    }>`SELECT file_ensure(${userId}, ${base?.id ?? null}, ${names}::text[],
      ${ids}::text[], ${kind ?? (bucket === inboxName ? "inbox" : "plain")}, ${limits.directoriesPerUser}) AS id`
    const id = made?.id ?? "gone"
    if (id === "gone") return yield* directoryGone
    if (id === "full")
      return yield* Conflict.of(`A user has at most ${limits.directoriesPerUser} directories`, {
        code: "too_many_directories"
      })
    // Another request may have made it a moment ago.
    if (isNew && !ids.includes(id)) return yield* nameTaken
    return yield* Effect.catchTag(directory(userId, id), "NotFound", () => Effect.fail(directoryGone))
  })
  const checked = Effect.fnUntraced(function* (
    userId: string,
    base: Directory | undefined,
    sent: ReadonlyArray<string>,
    { field = "path", ...how }: Ensured
  ) {
    const names = yield* Effect.forEach(sent, (name, index) =>
      base === undefined && index === 0 ? bucketName(field, name) : entryName(field, name)
    )
    return yield* ensure(userId, base, names, { field, ...how })
  })
  return {
    create: (userId, base, name) => checked(userId, base, [name], { field: "name", isNew: true }),
    ensure: (userId, base, names, field = "path") => checked(userId, base, names, { field }),
    deviceDirectory: (userId, deviceId) =>
      ensure(userId, undefined, [bucketOfDevice(deviceId)], { field: "deviceId", kind: "device" })
  }
}
