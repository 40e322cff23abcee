import { Context, Effect, Layer, Predicate, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import type { Attachment } from "#schemas/notify/Attachment.ts"
import {
  type BadRequest,
  invalidField,
  NotImplemented,
  PayloadTooLarge,
  ServiceUnavailable,
  StorageFull
} from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { fileType } from "#src/http/FileType.ts"
import type { BlobSource, BlobTooLarge } from "#src/infra/blobs/BlobFiles.ts"
import type { Blob, QuotaReached } from "#src/infra/blobs/BlobIndex.ts"
import * as BlobSweeps from "#src/infra/blobs/BlobSweeps.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { DiskFull } from "#src/infra/blobs/Disk.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { AttachmentBlobs } from "./AttachmentBlobs.ts"

const nameLengthMax = 255
/** A longer ending is no extension. */
const extensionLengthMax = 20

/** Where a name ends and its extension begins; a dot at the beginning hides a file, and is no extension. */
const dotOf = (name: string): number => {
  const dot = name.lastIndexOf(".")
  return dot > 0 && name.length - dot <= extensionLengthMax ? dot : name.length
}

/**
 * A name of `A-Z a-z 0-9 . _ -` alone: each other code point becomes `_`. A longer one than 255 loses characters before its
 * extension. Source: contract/notify#attachments
 *
 * @param sent as it came; undefined or empty: `file`
 */
const attachmentName = (sent: string | undefined): string => {
  if (sent === undefined || sent === "") return "file"
  const name = sent.replace(/[^A-Za-z0-9._-]/gsu, "_")
  // Names of directories.
  if (name === "." || name === "..") return "file"
  if (name.length <= nameLengthMax) return name
  const extension = name.slice(dotOf(name))
  return name.slice(0, nameLengthMax - extension.length) + extension
}

/** A file that is to be kept, whichever way it came. */
export interface NewAttachment {
  readonly ownerId: string
  /** the project key that it came with */
  readonly keyId: string
  /** as sent; absent or empty: `file` */
  readonly filename: string | undefined
  /** as sent; where it says nothing, the name's extension decides */
  readonly contentType: string | undefined
  /** the part of the request that an error names */
  readonly field: string
  /** the most that it may have, where that is less than `MAX_ATTACHMENT_SIZE` */
  readonly maxBytes: number
  /** its length, where it is known before: as much counts in the quota while it comes, else all that may come */
  readonly declaredBytes?: number | undefined
}

export interface AttachmentRow extends Omit<Attachment, "expiresAt"> {
  readonly expiresAt: Date
}

/** A file of a message. */
export interface MessageFile extends AttachmentRow {
  /** its bytes are not kept any more */
  readonly isExpired: boolean
  /** the directory of its blob */
  readonly store: string
}

type PutFault = NotImplemented | PayloadTooLarge | ServiceUnavailable | StorageFull

/**
 * Files of messages. One that was uploaded is unused for a day, then used by the messages of one send, and goes after 30
 * days or with them; its bytes are a blob, and go after that. Source: contract/notify#attachments
 */
export class Attachments extends Context.Service<
  Attachments,
  {
    /** there is no place for files: `put` fails */
    readonly isOff: boolean
    /** Keeps a file, unused. Where it fails nothing is left. */
    readonly put: <E>(
      file: NewAttachment,
      content: BlobSource<E>
    ) => Effect.Effect<AttachmentRow, E | PutFault>
    /**
     * Messages get these files, in this order, in the transaction that makes the messages: a file that another send gets at
     * the same time is awaited, and then not unused.
     */
    readonly claim: (
      ownerId: string,
      ids: ReadonlyArray<string>,
      messageIds: ReadonlyArray<string>
    ) => Effect.Effect<void, BadRequest | SqlError>
    /** Removes files that were put for a send that failed. What cannot be removed now goes after a day. */
    readonly discard: (ids: ReadonlyArray<string>) => Effect.Effect<void>
    /** of a message, in their order */
    readonly ofMessage: (messageId: string) => Effect.Effect<ReadonlyArray<MessageFile>, SqlError>
    /** a descriptor of the bytes, which is the caller's to close; or the bytes, of a short file */
    readonly open: (file: MessageFile) => Effect.Effect<number | Buffer, ServiceUnavailable>
    /** Removes what has expired; answers how many. */
    readonly sweep: Effect.Effect<number, SqlError>
    /** bytes that are kept, of all owners */
    readonly keptBytes: Effect.Effect<number, SqlError>
  }
>()("signalbox/notify/Attachments") {
  static readonly layer = Layer.effect(
    Attachments,
    Effect.suspend(() => make)
  )
}

/** The name of a file's reference to its blob. */
const refOf = (id: string): string => `attachment ${id}`

const off = NotImplemented.of("This server has no storage for attachments")

/** Several machines have files of their own where they share no directory. */
const elsewhere = ServiceUnavailable.of(
  "The file's bytes are not on this server's disk; another server has them"
)

/** The columns of an `AttachmentRow`. */
const columns = `a.id, a.filename, a.content_type AS "contentType", a.size::float8 AS size,
  encode(a.sha256, 'hex') AS sha256, a.expires_at AS "expiresAt"`

const make = Effect.gen(function* () {
  const parts = {
    sql: yield* SqlClient,
    blobs: yield* AttachmentBlobs,
    shared: yield* BlobStore,
    config: yield* AppConfig
  }
  const removing = removingOf(parts)
  return Attachments.of({
    isOff: parts.blobs.target === undefined,
    put: putting(parts),
    claim: claiming(parts),
    ...removing,
    ...reading(parts)
  })
})

interface Parts {
  readonly sql: SqlClient
  readonly blobs: AttachmentBlobs["Service"]
  readonly shared: BlobStore["Service"]
  readonly config: AppConfig["Service"]
}

const ahead = (sql: SqlClient, millis: number): Fragment =>
  sql`now() + ${millis}::float8 * interval '1 millisecond'`

const putting = ({ blobs: { target }, config, sql }: Parts): Attachments["Service"]["put"] => {
  const { attachmentQuotaBytes: quotaBytes, limits, maxAttachmentBytes } = config
  const insert = (id: string, blob: Blob, store: string, file: NewAttachment) => {
    const filename = attachmentName(file.filename)
    return Effect.map(
      sql<AttachmentRow>`INSERT INTO attachments AS a (id, user_id, key_id, filename, content_type, size, store, sha256,
          expires_at)
        VALUES (${id}, ${file.ownerId}, ${file.keyId}, ${filename}, ${fileType(file.contentType ?? "", filename)},
          ${blob.sizeBytes}, ${store}, decode(${blob.sha256}, 'hex'), ${ahead(sql, limits.unusedAttachmentMillis)})
        RETURNING ${sql.literal(columns)}`,
      (rows) => rows.find(() => true)
    )
  }
  return <E>(file: NewAttachment, content: BlobSource<E>): Effect.Effect<AttachmentRow, E | PutFault> =>
    Effect.gen(function* () {
      if (target === undefined) return yield* off
      const allowedBytes = Math.min(file.maxBytes, maxAttachmentBytes)
      const tooLarge = PayloadTooLarge.of(`${file.field}: at most ${allowedBytes} bytes`)
      if ((file.declaredBytes ?? 0) > allowedBytes) return yield* tooLarge
      const id = newId("att")
      const owner = { userId: file.ownerId, pool: "attachments", source: "attachment" } as const
      const maxBytes = file.declaredBytes ?? allowedBytes
      const stored = target.put({ ...owner, maxBytes, quotaBytes }, content, (blob) =>
        Effect.andThen(
          target.refer(refOf(id), blob, { ...owner, expiresAt: null }),
          insert(id, blob, target.id, file)
        )
      )
      const row = yield* Effect.mapError(stored, (fault) => {
        if (isFault(fault, "BlobTooLarge")) return tooLarge
        if (isFault(fault, "DiskFull"))
          return StorageFull.of("The disk is full; the attachment was not stored")
        if (isFault(fault, "QuotaReached"))
          return StorageFull.of(`Quota of ${quotaBytes} bytes for attachments reached`)
        return fault as Exclude<typeof fault, StoreFault>
      })
      // INSERT … RETURNING has a row.
      return row ?? (yield* Effect.die(new Error("an attachment was not stored")))
    })
}

type StoreFault = BlobTooLarge | DiskFull | QuotaReached

const isFault = (fault: unknown, tag: StoreFault["_tag"]): boolean => Predicate.isTagged(fault, tag)

const claiming = ({ config, sql }: Parts): Attachments["Service"]["claim"] => {
  const { limits, messageDays } = config
  const keptMillis = Math.min(limits.attachmentKeptMillis, messageDays * 86_400_000)
  return Effect.fn("Attachments.claim")(function* (ownerId, ids, messageIds) {
    // In the order of ids, so that two sends with the same files do not wait for each other.
    const found = yield* sql<{ id: string }>`SELECT id FROM attachments
      WHERE id = ANY(${ids}::text[]) AND user_id = ${ownerId} AND state = 'unused' AND expires_at > now()
      ORDER BY id FOR UPDATE`
    const unused = new Set(found.map(({ id }) => id))
    for (const [index, id] of ids.entries()) {
      const field = `attachments[${index}]`
      if (!unused.has(id)) return yield* invalidField(field, "no unused upload of this account")
      if (ids.indexOf(id) < index) return yield* invalidField(field, "given twice")
    }
    yield* sql`UPDATE attachments SET state = 'used', expires_at = ${ahead(sql, keptMillis)}
      WHERE id = ANY(${ids}::text[])`
    yield* sql`INSERT INTO message_attachments (message_id, place, attachment_id)
      SELECT m.id, f.place, f.id FROM unnest(${messageIds}::text[]) AS m(id),
        unnest(${ids}::text[]) WITH ORDINALITY AS f(id, place)`
  })
}

const removingOf = ({ config, shared, sql }: Parts) => {
  const atOnce = config.limits.attachmentsAtOnce
  // One in a transaction: each locks its blob and the owner's sum, and two of them could wait for each other.
  const remove = (id: string, state: "unused" | "deleted") =>
    sql.withTransaction(
      Effect.gen(function* () {
        const gone = yield* sql`DELETE FROM attachments WHERE id = ${id} AND state = ${state} RETURNING 1`
        if (gone.length > 0) yield* shared.release(refOf(id))
      })
    )
  const expire = (id: string) =>
    sql.withTransaction(
      Effect.gen(function* () {
        const gone = yield* sql`UPDATE attachments SET state = 'expired'
          WHERE id = ${id} AND state = 'used' AND expires_at <= now() RETURNING 1`
        if (gone.length > 0) yield* shared.release(refOf(id))
      })
    )
  return {
    discard: (ids: ReadonlyArray<string>): Effect.Effect<void> =>
      Effect.forEach(ids, (id) => remove(id, "unused"), { discard: true }).pipe(
        storeAway,
        Effect.catch((error) => Effect.logDebug("Files of a failed send go later", error))
      ),
    sweep: Effect.gen(function* () {
      for (let removed = 0; ;) {
        const rows = yield* sql<{
          id: string
          state: "unused" | "used" | "deleted"
        }>`SELECT id, state FROM attachments WHERE state <> 'expired' AND expires_at <= now()
          ORDER BY expires_at LIMIT ${atOnce}`
        for (const { id, state } of rows) yield* state === "used" ? expire(id) : remove(id, state)
        removed += rows.length
        if (rows.length < atOnce) return removed
      }
    })
  }
}

const reading = ({ blobs, config, sql }: Parts) => ({
  ofMessage: (messageId: string) =>
    sql<MessageFile>`SELECT ${sql.literal(columns)}, a.store, a.expires_at <= now() AS "isExpired"
      FROM message_attachments m JOIN attachments a ON a.id = m.attachment_id
      WHERE m.message_id = ${messageId} ORDER BY m.place`,
  open: ({ sha256, size, store }: MessageFile): Effect.Effect<number | Buffer, ServiceUnavailable> =>
    Effect.suspend((): Effect.Effect<number | Buffer, ServiceUnavailable> => {
      const found = blobs.of(store)
      if (found === undefined) return elsewhere
      const blob = { sha256, sizeBytes: size }
      return size === 0 || size > config.limits.shortFileBytes ? found.open(blob) : found.read(blob)
    }),
  keptBytes: Effect.map(
    sql<{ bytes: number }>`SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM blob_usage
      WHERE pool = 'attachments'`,
    ([row]) => row?.bytes ?? 0
  )
})

/** Attachments that have expired go; a directory of their own is looked after as that of all rooms is. */
export const upkeep = Layer.unwrap(
  Effect.gen(function* () {
    const { sweep } = yield* Attachments
    const { own } = yield* AttachmentBlobs
    return Layer.mergeAll(
      Sweeps.layer({ name: "attachments", every: "attachmentSweepEveryMillis", run: sweep }),
      Layer.effectDiscard(Effect.suspend(() => shown)),
      own === undefined
        ? Layer.empty
        : BlobSweeps.layerOf(own, { component: "attachments", labels: { directory: "attachments" } })
    )
  })
)

const shown = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const { keptBytes } = yield* Attachments
  let bytes = 0
  const count = Effect.map(keptBytes, (counted) => void (bytes = counted)).pipe(
    Effect.catch((error) => Effect.logDebug("attachments were not counted", error))
  )
  yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.attachmentCountsMillis)))
  yield* SampledMetrics.register([
    ["signalbox_notify_attachment_bytes", "Bytes of attachments that are kept, of all owners", () => bytes]
  ])
})
