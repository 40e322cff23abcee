import { Effect, Layer, Metric, Predicate, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { type Headers, listed } from "#src/front/HeaderBlock.ts"
import type { ByteSource, FileRange, FileSent, RawBody, RawReply, RawRoute } from "#src/front/RawRoute.ts"
import type { HotStream } from "#src/front/HotRoute.ts"

/** The ways by which bytes come and go, by the paths of their routes. */
const protocols: Readonly<Record<string, string>> = {
  "/api/cli/upload": "form",
  "/api/upload": "form",
  "/api/send": "form",
  "/api/upload/:bucket/*": "raw",
  "/api/uploads": "resumable",
  "/api/uploads/:id": "resumable",
  "/api/files/:id": "download",
  "/api/download/:dirId": "archive",
  "/direct/:token": "link"
}

type Labels = Readonly<Record<string, string>>

/** With labels of its own: a metric works out once which series these mean, `Metric.withAttributes` does at each update. */
const counter = (name: string, description: string, attributes: Labels = {}) =>
  Metric.counter(`signalbox_files_${name}_total`, { description, incremental: true, attributes })

const received = (labels: Labels) =>
  counter("received_bytes", "Bytes of bodies with shared files, by protocol", labels)
const sent = (labels: Labels) =>
  counter("sent_bytes", "Bytes of shared files that were handed to sockets, by protocol", labels)
const uploads = (labels: Labels) =>
  counter("uploads", "Requests with shared files, by protocol and outcome: finished, refused, cut", labels)
const links = counter("link_uses", "Downloads by share links, each counted once")

/** A download by a link has begun. */
export const linkUsed: Effect.Effect<void> = Metric.update(links, 1)

/** Counters of the requests of one route. */
interface Counts {
  readonly receivedBytes: (bytes: number) => void
  readonly sentBytes: (bytes: number) => void
  readonly finished: () => void
  readonly refused: () => void
  readonly cut: () => void
}

const bringsFile = (status: number, headers: Headers, protocol: string): boolean =>
  status < 300 &&
  (protocol !== "resumable" || listed(headers).some(([name]) => name.toLowerCase() === "upload-file-id"))

class CountedReply implements RawReply {
  readonly #reply: RawReply
  readonly #counts: Counts
  /** receives what an answer without a file says */
  readonly #answered: (status: number, headers: Headers) => void

  constructor(reply: RawReply, counts: Counts, answered: (status: number, headers: Headers) => void) {
    this.#reply = reply
    this.#counts = counts
    this.#answered = answered
  }

  get aborted(): boolean {
    return this.#reply.aborted
  }

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    this.#answered(status, headers)
    // Errors are text; short files are sent from memory.
    if (body instanceof Uint8Array) this.#counts.sentBytes(body.length)
    this.#reply.send(status, headers, body)
  }

  sendFile(status: number, headers: Headers, file: FileRange, done?: FileSent): void {
    this.#reply.sendFile(status, headers, file, this.#counted(done))
  }

  sendSource(status: number, headers: Headers, source: ByteSource, done?: FileSent): void {
    this.#reply.sendSource(status, headers, source, this.#counted(done))
  }

  stream(status: number, headers: Headers): HotStream {
    return this.#reply.stream(status, headers)
  }

  onAbort(listener: () => void): void {
    this.#reply.onAbort(listener)
  }

  lastOfConnection(): void {
    this.#reply.lastOfConnection()
  }

  cut(): void {
    this.#reply.cut()
  }

  #counted(done: FileSent | undefined): FileSent {
    return (bytes, isWhole) => {
      this.#counts.sentBytes(bytes)
      done?.(bytes, isWhole)
    }
  }
}

/** Tells what came of a request that brings bytes: its answer, or that its client has left. */
const countedBody = (body: RawBody, counts: Counts): RawBody => {
  let isCut = false
  return {
    declaredBytes: body.declaredBytes,
    pull: async () => {
      const piece = await body.pull()
      if (!Predicate.isString(piece)) counts.receivedBytes(piece.length)
      else if (piece === "gone" && !isCut) {
        isCut = true
        counts.cut()
      }
      return piece
    }
  }
}

const uploading = new Set(["POST", "PUT", "PATCH"])

/** The same routes, whose bytes and outcomes are on `/metrics`. Source: contract/files#metrics. */
export const counted = <E, R>(
  routes: Effect.Effect<ReadonlyArray<RawRoute>, E, R>
): Effect.Effect<ReadonlyArray<RawRoute>, E, R> =>
  Effect.map(Effect.all([routes, Effect.context<never>()]), ([list, context]) => {
    const countsOf = (protocol: string): Counts => {
      const of = (series: Metric.Counter<number>) => (more: number) => series.updateUnsafe(more, context)
      const ended = (outcome: string) => {
        const count = of(uploads({ protocol, outcome }))
        return () => count(1)
      }
      return {
        receivedBytes: of(received({ protocol })),
        sentBytes: of(sent({ protocol })),
        finished: ended("finished"),
        refused: ended("refused"),
        cut: ended("cut")
      }
    }
    return list.map((route) => {
      const protocol = protocols[route.path]
      if (protocol === undefined) return route
      const counts = countsOf(protocol)
      const isUpload = ["form", "raw", "resumable"].includes(protocol) && uploading.has(String(route.methods))
      const answered = (status: number, headers: Headers): void => {
        if (!isUpload) return
        if (bringsFile(status, headers, protocol)) counts.finished()
        else if (status >= 400) counts.refused()
      }
      return {
        ...route,
        handle: (request, body, reply) => {
          // The front sends no body to HEAD.
          if (request.method === "HEAD") return route.handle(request, body, reply)
          const countedReply = new CountedReply(reply, counts, answered)
          return route.handle(request, isUpload ? countedBody(body, counts) : body, countedReply)
        }
      }
    })
  })

/** Resumable uploads of all processes on `/metrics`. */
export const openUploads = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const { limits } = yield* AppConfig
    let open = 0
    const count = sql<{
      open: number
    }>`SELECT count(*)::float8 AS open FROM uploads WHERE done_at IS NULL`.pipe(
      Effect.map(([row]) => void (open = row?.open ?? 0)),
      Effect.catch((error) => Effect.logDebug("open uploads were not counted", error))
    )
    yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.uploadsCountedEveryMillis)))
    yield* SampledMetrics.register([
      ["signalbox_files_uploads_open", "Resumable uploads that are not complete", () => open]
    ])
  })
)
