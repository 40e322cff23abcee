import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BadRequest, Conflict, NotFound } from "#schemas/core/Problem.ts"
import { type DeviceChange, DeviceRow, type NewDevice, syncRootDefault } from "#schemas/files/Device.ts"
import { Keys } from "#src/accounts/Keys.ts"
import { AppConfig } from "#src/Config.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import type { Directory } from "../tree/Tree.ts"
import { DeviceDirectories } from "./DeviceDirectories.ts"

/** Registers devices, and knows when they were seen. Source: contract/files#devices. */
export class Devices extends Context.Service<
  Devices,
  {
    /** oldest first */
    readonly list: (userId: string) => Effect.Effect<ReadonlyArray<DeviceRow>, SqlError>
    /** `keyId`: the key that it gets by logging in */
    readonly create: (
      userId: string,
      device: NewDevice,
      keyId: string | null
    ) => Effect.Effect<DeviceRow, Conflict | SqlError>
    readonly find: (userId: string, id: string) => Effect.Effect<DeviceRow, NotFound | SqlError>
    readonly update: (
      userId: string,
      id: string,
      change: DeviceChange
    ) => Effect.Effect<DeviceRow, NotFound | SqlError>
    /** The key that it got by logging in goes with it, the last one of the last administrator excepted. */
    readonly remove: (userId: string, id: string) => Effect.Effect<void, NotFound | Conflict | SqlError>
    /** As `find`, for a request that comes from the device; that is written down beside the request. */
    readonly seen: (userId: string, id: string) => Effect.Effect<DeviceRow, NotFound | SqlError>
    /**
     * In the caller's transaction, where the device goes before all else that is locked: the hidden directory of what is
     * sent to it, made where it is missing.
     */
    readonly directoryOf: (
      userId: string,
      id: string
    ) => Effect.Effect<
      { readonly device: DeviceRow; readonly directory: Directory },
      NotFound | BadRequest | Conflict | SqlError
    >
    /** those of `ids` that the user has */
    readonly known: (
      userId: string,
      ids: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlySet<string>, SqlError>
  }
>()("signalbox/files/Devices") {
  static readonly layer = Layer.effect(
    Devices,
    Effect.suspend(() => make)
  )
}

type DeviceTable = CachedTable.CachedTable<typeof DeviceRow>

/** Writes down that devices were seen: once a minute at most, and beside the requests, which do not wait for it. */
const makeNoting = Effect.fnUntraced(function* (directory: DeviceTable) {
  const { limits } = yield* AppConfig
  const scope = yield* Effect.scope
  /** by the ids of devices whose sight is being written, or was not: when the write began */
  const tried = new Map<string, number>()
  const write = (id: string, now: number) =>
    directory.update(id, undefined, { lastSeenAt: new Date(now) }).pipe(
      Effect.andThen(Effect.sync(() => tried.delete(id))),
      Effect.catchTag("NotFound", () => Effect.sync(() => tried.delete(id))),
      Effect.catch((error) => Effect.logWarning("that a device was seen was not written down", error))
    )
  return Effect.fnUntraced(function* ({ id, lastSeenAt }: DeviceRow) {
    const now = yield* Clock.currentTimeMillis
    const since = Math.max(lastSeenAt.getTime(), tried.get(id) ?? -Infinity)
    if (now - since < limits.deviceSeenMillis) return
    tried.set(id, now)
    yield* Effect.forkIn(write(id, now), scope)
  })
})

/** The key of a device ends, flags do not name it any more, and what was sent to it goes to the trash. */
const makeLettingGo = Effect.gen(function* () {
  const sql = yield* SqlClient
  const keys = yield* Keys
  const directories = yield* DeviceDirectories
  return Effect.fnUntraced(function* (device: DeviceRow) {
    const { id, key_id: keyId, user_id: userId } = device
    yield* directories.letGo(device)
    yield* sql`UPDATE sync_flags SET device_ids = array_remove(device_ids, ${id})
      WHERE user_id = ${userId} AND ${id} = ANY (device_ids)`
    if (keyId === null) return
    // Its owner may have revoked it before.
    yield* Effect.catchTag(keys.revoke(keyId, userId), "NotFound", () => Effect.void)
  })
})

const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const directories = yield* DeviceDirectories
  const letGo = yield* makeLettingGo
  const directory = yield* CachedTable.make({
    name: "devices",
    title: "Device",
    model: DeviceRow,
    ids: "dev",
    indexes: {},
    gone: "revoked_at"
  })
  const note = yield* makeNoting(directory)
  const { columns, live, rows } = directory

  const idsOf = (owner: string, ids: ReadonlyArray<string>) =>
    sql<{
      id: string
    }>`SELECT id FROM devices WHERE user_id = ${owner} AND ${live} AND id = ANY(${ids}::text[])`

  /** Another process may have made it a moment ago, so Postgres is asked for what memory does not know. */
  const find: Devices["Service"]["find"] = Effect.fnUntraced(function* (userId, id) {
    const known =
      directory.get(id) ??
      (yield* directory.first(sql`SELECT ${columns} FROM devices WHERE id = ${id} AND ${live}`))
    return known?.user_id === userId ? known : yield* notFound("Device")
  })

  const hold = Effect.fnUntraced(function* (userId: string, id: string) {
    yield* sql`SELECT id FROM devices WHERE id = ${id} AND user_id = ${userId} FOR NO KEY UPDATE`
    return yield* directory.read(id, userId)
  })

  return Devices.of({
    list: (userId) =>
      rows(sql`SELECT ${columns} FROM devices WHERE user_id = ${userId} AND ${live} ORDER BY created_at, id`),
    create: Effect.fn("Devices.create")(function* (userId, { syncRoot = syncRootDefault, ...rest }, keyId) {
      const lastSeenAt = new Date(yield* Clock.currentTimeMillis)
      const row = { ...rest, syncRoot, lastSeenAt, key_id: keyId, directory_id: null }
      return yield* directory.insertFor(userId, row, limits.devicesPerUser)
    }),
    find,
    update: (userId, id, change) => directory.update(id, userId, change),
    remove: (userId, id) =>
      Effect.asVoid(directory.remove(id, userId, Effect.flatMap(hold(userId, id), letGo))),
    directoryOf: Effect.fnUntraced(function* (userId, id) {
      const device = yield* hold(userId, id)
      const place = yield* directories.of(userId, id)
      if (device.directory_id === place.id) return { device, directory: place }
      return {
        device: yield* directory.update(id, userId, { directory_id: place.id }),
        directory: place
      }
    }),
    seen: (userId, id) => Effect.tap(find(userId, id), note),
    known: (userId, ids) => Effect.map(idsOf(userId, ids), (found) => new Set(found.map(({ id }) => id)))
  })
})
