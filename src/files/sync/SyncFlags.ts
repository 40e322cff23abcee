import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import type { SyncFlagChange, SyncFlags as ShownFlags } from "#schemas/files/Sync.ts"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import type { PlacedFlag } from "#streams/files/sync/NearestFlag.ts"
import { Devices } from "../devices/Devices.ts"
import { directoryNotFound, Tree } from "../tree/Tree.ts"
import { fileNotFound, Versions } from "../tree/Versions.ts"

/** A flag of what is not in the trash, nor in the Inbox. */
export interface Flag extends PlacedFlag {
  readonly bucketName: string
}

/** Says what is synchronised. Source: contract/files#synchronisation. */
export class SyncFlags extends Context.Service<
  SyncFlags,
  {
    /** exclusions too, in no order */
    readonly of: (userId: string) => Effect.Effect<ReadonlyArray<Flag>, SqlError>
    readonly shown: (userId: string) => Effect.Effect<ShownFlags, SqlError>
    readonly set: (
      userId: string,
      change: SyncFlagChange
    ) => Effect.Effect<void, BadRequest | NotFound | Conflict | SqlError>
  }
>()("signalbox/files/SyncFlags") {
  static readonly layer = Layer.effect(
    SyncFlags,
    Effect.suspend(() => make)
  )
}

/** A file or directory, as far as its flag goes by it. */
interface Resource {
  readonly type: "file" | "directory"
  readonly id: string
  readonly bucketId: string
  readonly path: string
}

const neverSynced = () => invalidField("resourceId", "what is in the Inbox is never synchronised")

/** Finds what a flag is to be of: a hidden directory of a device, and what is in it, is not there. */
const makeFinding = Effect.gen(function* () {
  const sql = yield* SqlClient
  const tree = yield* Tree
  const versions = yield* Versions
  const found = Effect.fnUntraced(function* (userId: string, { resourceId, resourceType }: SyncFlagChange) {
    if (resourceType === "directory") return yield* tree.directory(userId, resourceId)
    // A version's id is none of a file.
    if (!resourceId.startsWith("fg_")) return yield* fileNotFound
    const file = yield* versions.currentOf(resourceId)
    return file.userId === userId ? file : yield* fileNotFound
  })
  return Effect.fnUntraced(function* (userId: string, change: SyncFlagChange) {
    const { bucketId, path } = yield* found(userId, change)
    const [bucket] = yield* sql<{ kind: string }>`SELECT kind FROM directories WHERE id = ${bucketId}`
    if (bucket?.kind === "inbox") return yield* neverSynced()
    if (bucket?.kind === "device")
      return yield* change.resourceType === "directory" ? directoryNotFound : fileNotFound
    return { type: change.resourceType, id: change.resourceId, bucketId, path } satisfies Resource
  })
})

/** The devices that a flag means; none where it means all. */
const makeTargets = Effect.gen(function* () {
  const devices = yield* Devices
  return Effect.fnUntraced(function* (userId: string, { deviceIds = [], scope }: SyncFlagChange) {
    if (scope !== "selected") return []
    if (deviceIds.length === 0)
      return yield* invalidField("deviceIds", "expected at least one of one's own devices")
    const known = yield* devices.known(userId, deviceIds)
    const index = deviceIds.findIndex((id) => !known.has(id))
    if (index >= 0) return yield* invalidField(`deviceIds[${index}]`, "expected one of one's own devices")
    return [...new Set(deviceIds)]
  })
})

const statements = (sql: SqlClient) => ({
  of: (userId: string) => sql<Flag>`
    SELECT f.resource_type AS type, f.resource_id AS id, b.id AS "bucketId", b.name AS "bucketName",
      coalesce(d.path, g.path) AS path, f.enabled, f.scope, f.device_ids AS "deviceIds"
    FROM sync_flags f
    LEFT JOIN directories d ON f.resource_type = 'directory' AND d.id = f.resource_id AND d.trash_id IS NULL
    LEFT JOIN file_groups g ON f.resource_type = 'file' AND g.id = f.resource_id AND g.trash_id IS NULL
    JOIN directories b ON b.id = coalesce(d.bucket_id, g.bucket_id) AND b.kind = 'plain'
    WHERE f.user_id = ${userId} ORDER BY f.created_at, f.resource_id`,

  put: (
    userId: string,
    { id, type }: Resource,
    enabled: boolean,
    scope: string,
    deviceIds: ReadonlyArray<string>
  ) =>
    sql`INSERT INTO sync_flags (user_id, resource_type, resource_id, enabled, scope, device_ids)
      VALUES (${userId}, ${type}, ${id}, ${enabled}, ${scope}, ${deviceIds}::text[])
      ON CONFLICT (user_id, resource_type, resource_id) DO UPDATE
        SET enabled = excluded.enabled, scope = excluded.scope, device_ids = excluded.device_ids`,

  drop: (userId: string, { id, type }: Resource) =>
    sql`DELETE FROM sync_flags WHERE user_id = ${userId} AND resource_type = ${type} AND resource_id = ${id}`,

  /** Whether the nearest flag above would have it synchronised. */
  isBelowFlag: (userId: string, { bucketId, id, path }: Resource) =>
    Effect.map(
      sql<{ enabled: boolean }>`SELECT f.enabled FROM sync_flags f JOIN directories d ON d.id = f.resource_id
        WHERE f.user_id = ${userId} AND f.resource_type = 'directory' AND d.trash_id IS NULL
          AND d.bucket_id = ${bucketId} AND d.id <> ${id} AND starts_with(${path}, d.path)
        ORDER BY length(d.path) DESC LIMIT 1`,
      ([nearest]) => nearest?.enabled === true
    ),

  /** Exclusions below a directory that has lost its flag: those that no flag between is above of mean nothing any more. */
  dropExclusionsBelow: (userId: string, { bucketId, path }: Resource) => sql`
    WITH below AS (
      SELECT f.resource_type, f.resource_id, f.enabled, coalesce(d.path, g.path) AS path FROM sync_flags f
      LEFT JOIN directories d ON f.resource_type = 'directory' AND d.id = f.resource_id AND d.bucket_id = ${bucketId}
      LEFT JOIN file_groups g ON f.resource_type = 'file' AND g.id = f.resource_id AND g.bucket_id = ${bucketId}
      WHERE f.user_id = ${userId} AND starts_with(coalesce(d.path, g.path), ${path})
        AND coalesce(d.path, g.path) <> ${path})
    DELETE FROM sync_flags f USING below x
    WHERE f.user_id = ${userId} AND f.resource_type = x.resource_type AND f.resource_id = x.resource_id
      AND NOT x.enabled AND NOT EXISTS (SELECT FROM below e
        WHERE e.enabled AND e.resource_type = 'directory' AND starts_with(x.path, e.path))`
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  const find = yield* makeFinding
  const targetsOf = yield* makeTargets
  const flags = statements(sql)

  const put = Effect.fnUntraced(function* (
    userId: string,
    resource: Resource,
    { deviceIds = [], enabled, scope = "all" }: Partial<SyncFlagChange>
  ) {
    const [others] = yield* sql<{ flags: number }>`SELECT count(*)::int AS flags FROM sync_flags
      WHERE user_id = ${userId} AND resource_id <> ${resource.id}`
    if ((others?.flags ?? 0) >= limits.syncFlagsPerUser)
      return yield* Conflict.of(`A user has at most ${limits.syncFlagsPerUser} flags of synchronisation`, {
        code: "too_many_flags"
      })
    yield* flags.put(userId, resource, enabled === true, scope, deviceIds)
  })

  const takeAway = Effect.fnUntraced(function* (userId: string, resource: Resource) {
    if (yield* flags.isBelowFlag(userId, resource)) yield* put(userId, resource, { enabled: false })
    else yield* flags.drop(userId, resource)
    if (resource.type === "directory") yield* flags.dropExclusionsBelow(userId, resource)
  })

  const set = Effect.fn("SyncFlags.set")(function* (userId: string, change: SyncFlagChange) {
    const { enabled = true, scope } = change
    const resource = yield* find(userId, change)
    // Another flag that is set for the same user waits here, and counts this one.
    yield* sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    if (!enabled) return yield* takeAway(userId, resource)
    const deviceIds = yield* targetsOf(userId, change)
    yield* put(userId, resource, { enabled, deviceIds, ...(scope !== undefined && { scope }) })
  }, sql.withTransaction)

  return SyncFlags.of({
    of: flags.of,
    shown: (userId) =>
      Effect.map(flags.of(userId), (all) => {
        const resource = ({ id, type }: Flag) => ({ resourceType: type, resourceId: id })
        return {
          subscriptions: all
            .filter(({ enabled }) => enabled)
            .map((flag) => ({
              ...resource(flag),
              enabled: true as const,
              scope: flag.scope,
              deviceIds: flag.deviceIds
            })),
          excluded: all.filter(({ enabled }) => !enabled).map(resource)
        }
      }),
    set
  })
})

/** Deletes the flags of files and directories that are deleted for good. */
export const sweep = Effect.flatMap(
  SqlClient,
  (sql) => sql`DELETE FROM sync_flags f
    WHERE NOT EXISTS (SELECT FROM directories WHERE id = f.resource_id)
      AND NOT EXISTS (SELECT FROM file_groups WHERE id = f.resource_id)`
)

export const sweeping = Sweeps.layer({ name: "sync-flags", every: "sweepEveryMillis", run: sweep })
