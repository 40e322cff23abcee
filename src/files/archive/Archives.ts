import { close } from "node:fs"
import { Context, Effect, Layer, Predicate, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { NotFound, ServiceUnavailable, UnprocessableContent } from "#schemas/core/Problem.ts"
import type { ArchivePlan, BlobPart } from "#streams/files/archive/ArchivePlan.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { FileSent } from "#src/front/RawRoute.ts"
import { byteAnswer } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { GrowingShare } from "#src/infra/shares/GrowingShare.ts"
import { Walk } from "../tree/Walk.ts"
import { type ArchivePlace, makePlans, unreadable } from "./ArchivePlans.ts"
import { ArchiveSource } from "./ArchiveSource.ts"

interface SendOptions {
  /** more headers of the answer, or others in the place of its own, by their lower-case names */
  readonly headers?: Readonly<Record<string, string>>
  readonly sent?: FileSent
}

/** An archive of which everything is known but the bytes of its files. */
export interface PlannedArchive {
  readonly filename: string
  readonly sizeBytes: number
  readonly entries: number
  /** strong, with its quotes */
  readonly etag: string
  /** Answers a GET or HEAD with it: the whole, one range, 304 or 416. Fails where its first bytes cannot be read. */
  readonly send: (exchange: KeyedExchange, options?: SendOptions) => Effect.Effect<void, ServiceUnavailable>
}

/** Archives of directories, made as they are sent. Source: contract/files#archives. */
export class Archives extends Context.Service<
  Archives,
  {
    /**
     * A snapshot of what a directory has. It takes memory until the scope ends, or what was sent of it by then. Fails
     * where it has too many entries, or bytes that are known to be damaged, or is not there any more.
     */
    readonly plan: (
      place: ArchivePlace
    ) => Effect.Effect<PlannedArchive, NotFound | ServiceUnavailable | UnprocessableContent, Scope.Scope>
  }
>()("signalbox/files/Archives") {
  static readonly layer = Layer.effect(
    Archives,
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const { limits } = yield* AppConfig
      const planOf = yield* makePlans({ sql: yield* SqlClient, walk: yield* Walk, blobs, limits })
      const run = Effect.runForkWith(yield* Effect.context<never>())
      // The blob is looked at, so that its damage is known; a short one may live in its row.
      const look = (blob: Blob): Effect.Effect<number | Buffer, ServiceUnavailable> =>
        blob.sizeBytes > limits.shortFileBytes ? blobs.open(blob) : blobs.read(blob)
      const noteDamage = (blob: Blob): void =>
        void run(
          Effect.match(look(blob), {
            onFailure: () => undefined,
            onSuccess: (found) => {
              if (Predicate.isNumber(found)) close(found, () => undefined)
            }
          })
        )
      return Archives.of({
        plan: Effect.fnUntraced(function* (place) {
          const { memory, name, plan } = yield* planOf(place)
          const filename = `${name}.tgz`
          const { digest, entries, sizeBytes } = plan
          const etag = `"${digest}"`
          const send = sending({ plan, filename, etag, memory, blobs, noteDamage })
          return { filename, sizeBytes, entries, etag, send }
        })
      })
    })
  )
}

interface Sendable {
  readonly plan: ArchivePlan
  readonly filename: string
  readonly etag: string
  readonly memory: GrowingShare
  readonly blobs: BlobStore["Service"]
  readonly noteDamage: (blob: Blob) => void
}

/** The most that is read before the head of an answer goes out. */
const firstBytes = 64 * 1024

/** Whether the first bytes can be read: what is missing among them can still be told. They are read again when they are sent. */
const canBegin = (source: ArchiveSource): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    source.read(Buffer.allocUnsafe(firstBytes), source.from, (error) => {
      if (error !== null) source.close()
      resume(Effect.succeed(error === null))
    })
  })

const sending =
  ({ blobs, etag, filename, memory, noteDamage, plan }: Sendable): PlannedArchive["send"] =>
  (exchange, { headers: own, sent } = {}) =>
    Effect.gen(function* () {
      const { request } = exchange
      const { headers, range, status } = byteAnswer(
        { method: request.method, header: (name) => request.header(name) },
        {
          sizeBytes: plan.sizeBytes,
          contentType: "application/x-gzip",
          etag,
          headers: {
            "content-disposition": contentDisposition("attachment", filename),
            "cache-control": "private, no-cache",
            "cross-origin-resource-policy": "same-origin",
            ...own
          }
        }
      )
      if (range === undefined) {
        const told = Object.entries(headers).filter(([name]) => name !== "content-type")
        return exchange.send(status, told)
      }
      let broken: BlobPart | undefined
      memory.hold()
      const source = new ArchiveSource(plan, range, blobs.parts(), {
        onTrouble: (part) => {
          broken = part
          noteDamage(part)
        },
        onClose: () => memory.release()
      })
      if (request.method !== "HEAD" && !(yield* canBegin(source)))
        return yield* unreadable(broken?.path ?? "The archive")
      exchange.sendSource(status, Object.entries(headers), source, sent)
    })
