import * as Context from "effect/Context"
import type { ErrorEncoder } from "./FrontAnswer.ts"
import type { Headers } from "./HeaderBlock.ts"
import type { HotReply, HotRequest, HotRoute } from "./HotRoute.ts"

/** The head of a request to a raw route. All of it stays valid. */
export interface RawRequest extends HotRequest {
  /** as it was sent, undecoded */
  readonly path: string
  /** the undecoded text of each `:name` of the route's path, and under `*` of its end */
  readonly params: Readonly<Record<string, string>>
  /** name (lower case), value, name, value..., in the order in which they came, repeated ones too */
  readonly headers: ReadonlyArray<string>
  /** any header, by its lower-case name: the first of that name; "" when absent */
  header(name: string): string
}

/**
 * Why there are no more bytes: the body is whole; its client has left; it came more slowly than
 * `minUploadBytesPerSecond`, and the answer will end the connection; it is longer than the route's `maxBodyBytes`.
 */
export type BodyEnd = "complete" | "gone" | "slow" | "tooLong"

/** A body that comes only as fast as it is asked for: while no pull is waiting, the client is. */
export interface RawBody {
  /** Content-Length, 0 without a body; undefined where nothing but its end tells how long it is */
  readonly declaredBytes: number | undefined
  /**
   * The next bytes, which are valid until the next pull, or the body's end, as often as asked. One pull at a time.
   */
  pull(): Promise<Uint8Array | BodyEnd>
}

/** A part of an open file: from the byte `from` to the byte before `to`. */
export interface FileRange {
  readonly fd: number
  readonly from: number
  readonly to: number
}

/** Bytes that are read, or made, as an answer needs them: from the byte `from` to the byte before `to`, of any place. */
export interface ByteSource {
  readonly from: number
  readonly to: number
  /**
   * Puts bytes from the byte `at` on into `into`, as many as fit and are at hand, at least one; bytes that were read before may be
   * asked for again. Calls back with their count, or with why there are none, never before it returns. One read at a time.
   */
  read(into: Buffer, at: number, done: (error: Error | null, count: number) => void): void
  /** Called once, when nothing is being read. */
  close(): void
}

/** The end of an answer out of a file or source: `sentBytes` of its body were handed to the socket, all of them or not. */
export type FileSent = (sentBytes: number, isWhole: boolean) => void

export interface RawReply extends HotReply {
  /**
   * The whole answer out of a file, instead of `send`, with its Content-Length; to HEAD the head alone. From the call on
   * the descriptor is the front's, which closes it once, also where nothing can be sent any more. Where the file is
   * shorter than said, or cannot be read, that is reported, and the connection ends amid the answer. A client that takes
   * nothing for `stalledStreamMillis` is dropped.
   */
  sendFile(status: number, headers: Headers, file: FileRange, sent?: FileSent): void
  /** The same of bytes that come from anywhere; the source is the front's from the call on, as the descriptor is. */
  sendSource(status: number, headers: Headers, source: ByteSource, sent?: FileSent): void
  /** Before `send`: the answer says that its connection is not used again. */
  lastOfConnection(): void
  /** Ends the connection, so that an answer that was begun cannot pass for a whole one. It counts as an abort. */
  cut(): void
}

/**
 * An endpoint beside the Effect pipeline whose path may have parameters and whose body is pulled. Exact paths of hot
 * routes go before raw ones, these before ordinary endpoints; of two raw paths the more particular one counts.
 */
export interface RawRoute {
  /** upper case; GET answers HEAD too, unless another route of the path does. "*" for any, OPTIONS included */
  readonly methods: ReadonlyArray<string> | "*"
  /** as `/direct/:token`, one segment that is not empty, or `/s3/*`, any rest, an empty one too. Case counts */
  readonly path: string
  readonly cors: HotRoute["cors"]
  /** the value of `Allow` on the path, where it is not the methods of its routes and OPTIONS */
  readonly allow?: string
  /** ordinary endpoints serve the other methods of the path, answer 405 and OPTIONS, and have to know this one */
  readonly isShared?: boolean
  readonly errors?: ErrorEncoder
  /** a body that says that it is longer is answered 413 before the handler is called, another ends as `tooLong` */
  readonly maxBodyBytes: number
  /**
   * Called when the head is there, before any of the body. A throw, at once or later, is answered 500. An answer that is
   * given before the body has come waits until the rest was thrown away (`lingerBytes`, `lingerMillis`); where more would
   * come, `send` ends the connection, the other answers do so unsent.
   */
  handle(request: RawRequest, body: RawBody, reply: RawReply): void | Promise<void>
}

/** The first value of a name; undefined where there is none. `headers` as in `RawRequest`. */
export const headerOf = (headers: RawRequest["headers"], name: string): string | undefined => {
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index] === name) return headers[index + 1]
  }
  return undefined
}

/** As `headerOf`; "" where there is none. */
export const firstOf = (headers: RawRequest["headers"], name: string): string => headerOf(headers, name) ?? ""

/** Every raw route of this process, read by the front when it begins to serve. */
export const RawRouteList = Context.Reference<ReadonlyArray<RawRoute>>("signalbox/front/RawRouteList", {
  defaultValue: () => []
})
