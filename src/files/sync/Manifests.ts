import { createHash } from "node:crypto"
import { Context, Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Conflict, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { DeviceRow } from "#schemas/files/Device.ts"
import type { ManifestDirectory, ManifestFile } from "#schemas/files/Sync.ts"
import { AppConfig } from "#src/Config.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { GrowingShare } from "#src/infra/shares/GrowingShare.ts"
import { makeTurns } from "#src/infra/shares/Turns.ts"
import type { Limits } from "#src/Limits.ts"
import { isMeant, NearestFlags, type PlacedFlag } from "#streams/files/sync/NearestFlag.ts"
import type { Reach } from "../access/Reach.ts"
import { bucketOfDevice } from "../tree/Tree.ts"
import { SyncFlags } from "./SyncFlags.ts"

/** All that a device is to have, as it goes out. */
export interface Manifest {
  /** stands for the lists: the same while they are */
  readonly etag: string
  /** JSON, in pieces */
  readonly pieces: ReadonlyArray<Uint8Array>
}

/** Reads manifests. Source: contract/files#synchronisation. */
export class Manifests extends Context.Service<
  Manifests,
  {
    /** `device` undefined: of no device in particular. It takes memory until the scope ends. */
    readonly read: (
      userId: string,
      device: DeviceRow | undefined,
      reach: Reach
    ) => Effect.Effect<Manifest, Conflict | ServiceUnavailable | SqlError, Scope.Scope>
  }
>()("signalbox/files/Manifests") {
  static readonly layer = Layer.effect(
    Manifests,
    Effect.suspend(() => make)
  )
}

const busy = ServiceUnavailable.of("Too many large manifests are being read; try again later")

interface DirectoryRow {
  readonly id: string
  readonly name: string
  readonly parentId: string | null
  readonly path: string
}

interface FileRow extends Omit<ManifestFile, "ownerId" | "permission" | "modifiedAt"> {
  readonly bucketId: string
  readonly path: string
  readonly modifiedAt: Date
}

/** A part of a bucket: the paths from one on, up to another where there is one. */
interface Range {
  readonly bucketId: string
  readonly from: string
  readonly to: string | null
}

/** All that is below a directory: in byte order, `a/b0` is the first path behind those that begin with `a/b/`. */
const rangeOf = ({ bucketId, path }: Pick<PlacedFlag, "bucketId" | "path">): Range => ({
  bucketId,
  from: path,
  to: path === "" ? null : `${path.slice(0, -1)}0`
})

const fileColumns = `g.id AS "versionGroupId", v.id AS "currentFileId", v.version,
  encode(v.sha256, 'hex') AS "fileHash", v.size::float8 AS "fileSize", v.mime_type AS "mimeType",
  g.name AS "originalName", g.directory_id AS "directoryId", v.is_encrypted AS "isEncrypted",
  v.encryption_key_id AS "encryptionKeyId", v.modified_at AS "modifiedAt", g.bucket_id AS "bucketId", g.path`

/** Pages of what is below a directory, by its path; `after`: the last path of the page before. */
const pagesOf = (sql: SqlClient, atOnce: number) => {
  const current =
    sql.literal(`SELECT ${fileColumns} FROM file_groups g JOIN file_versions v ON v.id = g.current_id
    WHERE g.trash_id IS NULL`)
  return {
    directories: ({ bucketId, from, to }: Range, after: string | undefined) => sql<DirectoryRow>`
      SELECT id, name, parent_id AS "parentId", path FROM directories WHERE trash_id IS NULL
        AND bucket_id = ${bucketId} AND ${after === undefined ? sql`path >= ${from}` : sql`path > ${after}`}
        AND ${to === null ? sql`true` : sql`path < ${to}`} ORDER BY path LIMIT ${atOnce}`,
    files: ({ bucketId, from, to }: Range, after: string | undefined) => sql<FileRow>`${current}
      AND g.bucket_id = ${bucketId} AND g.path > ${after ?? from}
      AND ${to === null ? sql`true` : sql`g.path < ${to}`} ORDER BY g.path LIMIT ${atOnce}`,
    /** the hidden directory of a device; memory may not know yet that there is one */
    sentTo: (deviceId: string) =>
      Effect.map(
        sql<{ id: string | null }>`SELECT directory_id AS id FROM devices WHERE id = ${deviceId}`,
        ([device]) => device?.id ?? null
      ),
    named: (ids: ReadonlyArray<string>) =>
      sql<FileRow>`${current} AND g.id = ANY(${ids}::text[]) ORDER BY g.bucket_id, g.path`
  }
}

/** Gathers entries as JSON, in pieces of a page each. */
class EntryList {
  readonly pieces: Array<Uint8Array> = []
  count = 0
  bytes = 0
  add(entries: ReadonlyArray<object>): void {
    if (entries.length === 0) return
    const text = entries.map((entry) => JSON.stringify(entry)).join(",")
    const piece = Buffer.from(this.count === 0 ? text : `,${text}`)
    this.pieces.push(piece)
    this.bytes += piece.length
    this.count += entries.length
  }
}

/** A request for a manifest, and the flags that decide on it. */
interface Asked {
  readonly userId: string
  readonly device: DeviceRow | undefined
  readonly reach: Reach
  readonly flags: NearestFlags
}

const shownDirectory =
  ({ userId }: Asked) =>
  ({ id, name, parentId }: DirectoryRow): ManifestDirectory => ({
    id,
    name,
    parentId,
    ownerId: userId,
    permission: "owner",
    encryptionEnabled: false
  })

const shownFile =
  ({ userId }: Asked, directoryId?: null) =>
  (row: FileRow): ManifestFile => ({
    versionGroupId: row.versionGroupId,
    currentFileId: row.currentFileId,
    version: row.version,
    fileHash: row.fileHash,
    fileSize: row.fileSize,
    mimeType: row.mimeType,
    originalName: row.originalName,
    directoryId: directoryId === null ? null : row.directoryId,
    isEncrypted: row.isEncrypted,
    encryptionKeyId: row.encryptionKeyId,
    ownerId: userId,
    permission: "owner",
    modifiedAt: row.modifiedAt.toISOString()
  })

const made = (directories: EntryList, files: EntryList, generatedAt: Date, cursor: string): Manifest => {
  const hash = createHash("sha256")
  for (const piece of directories.pieces) hash.update(piece)
  hash.update("\n")
  for (const piece of files.pieces) hash.update(piece)
  const end = { generatedAt: generatedAt.toISOString(), cursor }
  return {
    etag: `"${hash.digest("base64url").slice(0, 22)}"`,
    pieces: [
      Buffer.from('{"directories":['),
      ...directories.pieces,
      Buffer.from('],"files":['),
      ...files.pieces,
      Buffer.from(`],${JSON.stringify(end).slice(1)}`)
    ]
  }
}

/** The state that one snapshot shows: what ends later has a transaction id from `xmin` on. */
const cursorOf = (xmin: string, at: Date): string =>
  Buffer.from(`1.${xmin}.${Math.floor(at.getTime() / 1_000)}`).toString("base64url")

/** Reads the lists of a manifest, in the caller's transaction. */
const readingOf = (sql: SqlClient, { manifestEntries, walkEntriesAtOnce: atOnce }: Limits) => {
  const pages = pagesOf(sql, atOnce)

  /** Runs through the pages of a range. */
  const through = Effect.fnUntraced(function* <Row extends { readonly path: string }>(
    page: (after: string | undefined) => Effect.Effect<ReadonlyArray<Row>, SqlError>,
    take: (rows: ReadonlyArray<Row>) => Effect.Effect<void, Conflict | ServiceUnavailable>
  ) {
    let after: string | undefined
    while (true) {
      const rows: ReadonlyArray<Row> = yield* page(after)
      yield* take(rows)
      if (rows.length < atOnce) return
      after = rows.at(-1)?.path
    }
  })

  return Effect.fnUntraced(function* (asked: Asked, memory: GrowingShare) {
    const { device, flags, reach } = asked
    const [directories, files] = [new EntryList(), new EntryList()]
    const checkRoom = Effect.suspend((): Effect.Effect<void, Conflict | ServiceUnavailable> => {
      if (directories.count + files.count > manifestEntries) return tooMany(manifestEntries)
      return memory.grow(directories.bytes + files.bytes) ? Effect.void : Effect.fail(busy)
    })
    const takeFiles = (rows: ReadonlyArray<FileRow>, directoryId?: null) => {
      files.add(rows.map(shownFile(asked, directoryId)))
      return checkRoom
    }
    const takeMeantFiles = (rows: ReadonlyArray<FileRow>) =>
      takeFiles(
        rows.filter(({ bucketId, path, versionGroupId }) =>
          isMeant(flags.ofFile(versionGroupId, bucketId, path), device?.id)
        )
      )
    for (const flag of flags.outermost()) {
      const range = rangeOf(flag)
      yield* through<DirectoryRow>(
        (after) => pages.directories(range, after),
        (rows) => {
          const meant = rows.filter(({ path }) => isMeant(flags.ofDirectory(flag.bucketId, path), device?.id))
          directories.add(meant.map(shownDirectory(asked)))
          return checkRoom
        }
      )
      yield* through<FileRow>((after) => pages.files(range, after), takeMeantFiles)
    }
    // Flagged files below a flagged directory are there already.
    const alone = flags.files().filter((flag) => !flags.isBelowFlagged(flag) && isMeant(flag, device?.id))
    for (let at = 0; at < alone.length; at += atOnce)
      yield* takeFiles(yield* pages.named(alone.slice(at, at + atOnce).map(({ id }) => id)))
    const sentTo =
      device !== undefined && reach.mayRead(bucketOfDevice(device.id)) ? yield* pages.sentTo(device.id) : null
    if (sentTo !== null) {
      const sent = rangeOf({ bucketId: sentTo, path: "" })
      yield* through<FileRow>(
        (after) => pages.files(sent, after),
        (rows) => takeFiles(rows, null)
      )
    }
    return { directories, files }
  })
}

const tooMany = (manifestEntries: number) =>
  Effect.fail(
    Conflict.of(`More than ${manifestEntries} directories and files are synchronised; flag fewer`, {
      code: "too_many_entries"
    })
  )

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  const syncFlags = yield* SyncFlags
  const shares = new FairShares(limits.manifestsBytes)
  const inTurn = yield* makeTurns({
    atOnce: limits.manifestsAtOnce,
    underWay: limits.manifestsUnderWay,
    millis: limits.manifestMillis,
    busy
  })
  const readLists = readingOf(sql, limits)

  const read = Effect.fn("Manifests.read")(function* (
    memory: GrowingShare,
    userId: string,
    device: DeviceRow | undefined,
    reach: Reach
  ) {
    // All statements see the same state.
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
    const [snapshot] = yield* sql<{ xmin: string; at: Date }>`
      SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin, now() AS at`
    const { at, xmin } = snapshot ?? (yield* Effect.die(new Error("Postgres tells no snapshot")))
    const all = yield* syncFlags.of(userId)
    const flags = new NearestFlags(all.filter(({ bucketName }) => reach.mayRead(bucketName)))
    const { directories, files } = yield* readLists({ userId, device, reach, flags }, memory)
    return made(directories, files, at, cursorOf(xmin, at))
  }, sql.withTransaction)

  return Manifests.of({
    read: Effect.fnUntraced(function* (userId, device, reach) {
      const memory = yield* Effect.acquireRelease(
        Effect.sync(() => new GrowingShare(shares, userId)),
        (held) => Effect.sync(() => held.release())
      )
      return yield* inTurn(read(memory, userId, device, reach))
    })
  })
})
