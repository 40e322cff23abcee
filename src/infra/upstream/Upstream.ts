import { Readable } from "node:stream"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { type Dispatcher, Pool } from "undici"
import { AppConfig } from "#src/Config.ts"
import { SecretFilter } from "./SecretFilter.ts"
import { isInPieces, lengthOf, type OutgoingBody, type OutgoingPieces, slicesOf } from "./OutgoingBody.ts"
import { UpstreamAddress } from "./UpstreamAddress.ts"

/** There was no answer, or only a part of one. `wasReached` is false where not even a connection came about. */
export class UpstreamUnreachable extends Schema.TaggedError<UpstreamUnreachable>()("UpstreamUnreachable", {
  problem: Schema.String
}) {
  override get message(): string {
    return `the upstream is unreachable: ${this.problem}`
  }
}

/** Hears one answer, piece by piece. After `failed` or `ended` nothing follows. */
export interface UpstreamListener {
  /** header names are in lower case; of several lines with one name the first counts */
  readonly head: (status: number, header: (name: string) => string | undefined) => void
  /** the bytes may be kept */
  readonly data: (bytes: Buffer) => void
  readonly ended: () => void
  readonly failed: (error: UpstreamUnreachable) => void
}

/** A request under way. */
export interface UpstreamCall {
  /** It has a connection, and the upstream may be at work on it. */
  readonly isSent: boolean
  /** Closes the connection; the listener hears nothing more. */
  abort(): void
  pause(): void
  resume(): void
}

/**
 * Calls to the upstream over kept connections. It sets no time limits of its own but that of connecting: how long to wait
 * for what is the caller's business.
 */
export class Upstream extends Context.Service<
  Upstream,
  {
    readonly url: string
    /** A whole answer as text, of at most `maxBytes`. */
    readonly get: (
      path: string,
      options: { readonly maxBytes: number; readonly timeoutMillis: number }
    ) => Effect.Effect<{ readonly status: number; readonly text: string }, UpstreamUnreachable>
    /** A JSON body. The listener is called later, never from within. */
    readonly post: (path: string, body: OutgoingBody, listener: UpstreamListener) => UpstreamCall
  }
>()("signalbox/infra/Upstream") {
  static readonly layer: Layer.Layer<Upstream, never, UpstreamAddress | AppConfig> = Layer.effect(
    Upstream,
    Effect.gen(function* () {
      const { apiKey, url } = yield* UpstreamAddress
      const { limits } = yield* AppConfig
      const root = new URL(url)
      const pool = yield* Effect.acquireRelease(
        Effect.sync(
          () =>
            new Pool(root.origin, {
              connections: limits.upstreamConnections + spareConnections,
              connect: { timeout: limits.upstreamConnectMillis },
              headersTimeout: 0,
              bodyTimeout: 0,
              // A connection of HTTP/2 that is dead would be asked by a hundred calls at a time, for minutes: without those
              // timeouts undici does not look after it. With HTTP/1.1 a call that is given up ends its own.
              allowH2: false
            })
        ),
        (open) => Effect.promise(() => open.destroy())
      )
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "user-agent": "signalbox",
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${Redacted.value(apiKey)}` })
      }
      const prefix = root.pathname.replace(/\/$/, "")
      const start = (method: "GET" | "POST", path: string, body: OutgoingBody | null) =>
        body !== null && isInPieces(body)
          ? piecesOf({ method, path: prefix + path, headers }, body)
          : ({ method, path: prefix + path, headers, body } satisfies Dispatcher.DispatchOptions)
      const secret = apiKey === undefined ? undefined : Redacted.value(apiKey)
      const asker: Asker = (options, listener) => new Call(pool, options, listener, new SecretFilter(secret))
      return Upstream.of({
        url,
        post: (path, body, listener) => asker(start("POST", path, body), listener),
        get: (path, options) => wholeText(asker, start("GET", path, null), options)
      })
    })
  )
}

/** Makes a request. The listener is called later, never from within. */
type Asker = (options: Dispatcher.DispatchOptions, listener: UpstreamListener) => UpstreamCall
const piecesOf = (
  options: Dispatcher.DispatchOptions & { readonly headers: Readonly<Record<string, string>> },
  body: OutgoingPieces
): Dispatcher.DispatchOptions => ({
  ...options,
  headers: { ...options.headers, "content-length": String(lengthOf(body)) },
  body: Readable.from(slicesOf(body), { objectMode: false, highWaterMark: 1 })
})

/** For the list of models, which is fetched beside the calls. */
const spareConnections = 4

/** One request in the shape that undici drives: handler of the answer and handle of the caller in one object. */
class Call implements Dispatcher.DispatchHandler, UpstreamCall {
  readonly #listener: UpstreamListener
  readonly #filter: SecretFilter
  #controller: Dispatcher.DispatchController | undefined
  #isDispatched = false
  #isOver = false
  #isPaused = false

  constructor(
    pool: Pool,
    options: Dispatcher.DispatchOptions,
    listener: UpstreamListener,
    filter: SecretFilter
  ) {
    this.#listener = listener
    this.#filter = filter
    pool.dispatch(options, this)
    this.#isDispatched = true
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#controller?.abort(aborted)
  }

  get isSent(): boolean {
    return this.#controller !== undefined
  }

  pause(): void {
    this.#isPaused = true
    this.#controller?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isOver) controller.abort(aborted)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | Array<string> | undefined>>
  ): void {
    if (this.#isOver || status < 200) return
    this.#listener.head(status, (name) => {
      const value = headers[name]
      return typeof value === "object" ? value[0] : value
    })
    if (this.#isPaused) this.#controller?.pause()
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return
    const told = this.#filter.push(chunk)
    if (told.length > 0) this.#listener.data(told)
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    const rest = this.#filter.rest()
    if (rest.length > 0) this.#listener.data(rest)
    // The listener may have had enough of it.
    if (this.#isOver) return
    this.#isOver = true
    this.#listener.ended()
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return
    // A closed pool refuses at once, when this call has no receiver yet.
    if (!this.#isDispatched) return queueMicrotask(() => this.onResponseError(controller, error))
    this.#isOver = true
    this.#listener.failed(new UpstreamUnreachable({ problem: problemOf(error) }))
  }
}

const aborted = new Error("given up by the caller")

/** Name and code say more than the message where a host has several addresses: then the message is empty. */
export const problemOf = (error: Error & { readonly code?: unknown }): string => {
  const code = typeof error.code === "string" ? error.code : ""
  return [code, error.message].filter((part) => part !== "").join(": ") || error.name
}

const wholeText = (
  asker: Asker,
  options: Dispatcher.DispatchOptions,
  { maxBytes, timeoutMillis }: { readonly maxBytes: number; readonly timeoutMillis: number }
): Effect.Effect<{ readonly status: number; readonly text: string }, UpstreamUnreachable> =>
  Effect.callback<{ readonly status: number; readonly text: string }, UpstreamUnreachable>((resume) => {
    let status = 0
    let bytes = 0
    const pieces: Array<Buffer> = []
    const fail = (problem: string) => resume(Effect.fail(new UpstreamUnreachable({ problem })))
    const call: UpstreamCall = asker(options, {
      head: (answered) => {
        status = answered
      },
      data: (piece) => {
        bytes += piece.length
        if (bytes <= maxBytes) return void pieces.push(piece)
        call.abort()
        fail(`an answer of more than ${maxBytes} bytes`)
      },
      ended: () => resume(Effect.succeed({ status, text: Buffer.concat(pieces).toString("utf8") })),
      failed: (error) => resume(Effect.fail(error))
    })
    return Effect.sync(() => call.abort())
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMillis,
      orElse: () =>
        Effect.fail(new UpstreamUnreachable({ problem: `no whole answer in ${timeoutMillis} ms` }))
    })
  )
