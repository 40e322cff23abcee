import type { ErrorEncoder } from "./FrontAnswer.ts"
import type { Headers } from "./HeaderBlock.ts"
import * as Context from "effect/Context"

/** The request as a hot handler sees it. All of it is copied before the handler runs and stays valid. */
export interface HotRequest {
  /** upper case */
  readonly method: string
  /** exactly the route's path */
  readonly path: string
  /** the query behind the `?`, undecoded; "" when there is none */
  readonly query: string
  /** one of the route's declared header names (lower-case); "" when absent */
  header(name: string): string
  /** the client's address in text, behind trusted proxies the one they forwarded */
  readonly remoteAddress: string
  /** a trusted proxy handed the request over: headers that proxies set may be believed */
  readonly isProxied: boolean
}

export interface HotReply {
  /** the client is gone: nothing can be sent any more */
  readonly aborted: boolean
  /**
   * The whole answer, once, synchronously or later; a no-op after an abort. Content-Length, Date and the CORS headers
   * are the front's. Header values that could end the line are not written.
   */
  send(status: number, headers: Headers, body?: string | Uint8Array): void
  /**
   * Begins an answer whose body comes piece by piece, instead of `send`; the head is written with the first piece. After
   * an abort or another answer a stream that takes everything and sends nothing. A client that takes nothing for
   * `stalledStreamMillis` while something waits for it is dropped.
   */
  stream(status: number, headers: Headers): HotStream
  /** Called once, when the client goes away before the answer is complete; at once if it has gone already. */
  onAbort(listener: () => void): void
}

/** The body of a streamed answer. Pieces written in one turn leave together. After an abort every call is a no-op. */
export interface HotStream {
  /**
   * Answers false if the client does not keep up: the piece is kept, and `onDrain` is called when to go on. Bytes must
   * not change afterwards.
   */
  write(piece: string | Uint8Array): boolean
  /** Called each time after a `write` answered false and the socket has taken everything. One listener. */
  onDrain(listener: () => void): void
  /** The last piece, if any, and the end of the answer. */
  end(piece?: string | Uint8Array): void
  /** bytes that were given and have not left for the socket; up to 16 KB of small pieces may go unseen until the next */
  readonly bufferedBytes: number
}

/**
 * The owner that an arriving body counts for: a user's share of `hotBodiesBytes`, or the share of the client's address
 * where its sender is not known; or the answer that it gets unread.
 */
export type BodyAdmission =
  | { readonly _tag: "Known"; readonly userId: string }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Refused"; readonly answer: (reply: HotReply) => void }

/**
 * An endpoint that is served beside the Effect pipeline: a plain function called once the body is complete. Routes are
 * written against this interface only, so uWebSockets.js and Node's server both serve them.
 */
export interface HotRoute {
  readonly method: "GET" | "POST"
  /** matched exactly and case-sensitively; `/collect/`, `//collect`, `/Collect` and `/c%6Fllect` are other paths (404) */
  readonly path: string
  /** a longer body is answered 413 before the handler is called */
  readonly maxBodyBytes: number
  /** header names (lower-case) copied before the handler runs */
  readonly headers: ReadonlyArray<string>
  /** "open" lets every origin read the answer, "configured" only the front's `corsOrigins`. The front answers OPTIONS */
  readonly cors: "open" | "configured"
  /** the form of the answers that the front gives in the route's place (400, 405, 408, 413, 500, 503) */
  readonly errors?: ErrorEncoder
  /**
   * Asked once for a body that does not come in one piece, before any of it is kept. Without it every such body counts
   * for its address.
   */
  readonly admit?: (request: HotRequest) => BodyAdmission
  /** `body` is only valid until the handler returns: copy what must outlive it. A throw is answered 500 */
  handle(request: HotRequest, body: Uint8Array, reply: HotReply): void
}

/** The common part of all routes, hot or raw, of one path. */
export interface HotPath {
  readonly cors: HotRoute["cors"]
  readonly errors?: HotRoute["errors"]
  readonly isSocket?: boolean
}

/** Every hot route of this process, collected by the layers and read by the front when it starts to serve. */
export class HotRoutes extends Context.Service<HotRoutes, ReadonlyArray<HotRoute>>()(
  "signalbox/front/HotRoutes"
) {}
