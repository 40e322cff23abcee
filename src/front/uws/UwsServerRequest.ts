import * as Effect from "effect/Effect"
import * as Cookies from "effect/http/Cookies"
import type * as Headers from "effect/http/Headers"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import { HttpServerError, RequestParseError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Multipart from "effect/http/Multipart"
import * as UrlParams from "effect/http/UrlParams"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import type { ClientAddress } from "../ClientAddress.ts"
import type { Exchange } from "./Exchange.ts"
import type { BodyFailure } from "./RequestBody.ts"
import type { Upgrade } from "./UwsSocket.ts"

/** The facts of a request at its arrival; shared by the views that `modify` makes. */
export interface Origin {
  readonly exchange: Exchange
  readonly method: string
  readonly url: string
  readonly upgrade: Upgrade | undefined
  /** undefined where no proxy is trusted */
  readonly clientAddress: ClientAddress | undefined
}

/** The parts that `modify` may replace; absent where the request is as it came. */
interface View {
  readonly url: string
  readonly headers: Headers.Headers
  readonly remoteAddress?: Option.Option<string> | undefined
  readonly peerAddress?: Option.Option<string> | undefined
  readonly protocol?: "http" | "https" | undefined
}

const noBytes = new Uint8Array(0)
const formDecoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** As `TextDecoder` does it: UTF-8 without the byte order mark. */
const textOf = (bytes: Uint8Array): string => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

export class UwsServerRequest extends Inspectable.Class implements HttpServerRequest.HttpServerRequest {
  readonly [HttpServerRequest.TypeId]: typeof HttpServerRequest.TypeId = HttpServerRequest.TypeId
  readonly [HttpIncomingMessage.TypeId]: typeof HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly source: Origin
  private readonly view: View
  private cachedCookies: Readonly<Record<string, string>> | undefined
  private cachedMultipart: HttpServerRequest.HttpServerRequest["multipart"] | undefined

  constructor(source: Origin, view: View) {
    super()
    this.source = source
    this.view = view
  }

  get method(): string {
    return this.source.method
  }

  get url(): string {
    return this.view.url
  }

  get originalUrl(): string {
    const host = this.view.headers["host"]
    return host === undefined ? this.source.url : `http://${host}${this.source.url}`
  }

  get headers(): Headers.Headers {
    return this.view.headers
  }

  get remoteAddress(): Option.Option<string> {
    if (this.view.remoteAddress !== undefined) return this.view.remoteAddress
    const { exchange, clientAddress } = this.source
    const peer = exchange.peerAddress
    if (clientAddress === undefined || peer === "") return this.peerAddress
    return Option.some(clientAddress(() => peer, this.headers["x-forwarded-for"] ?? ""))
  }

  get peerAddress(): Option.Option<string> {
    const peer = this.source.exchange.peerAddress
    return this.view.peerAddress ?? (peer === "" ? Option.none() : Option.some(peer))
  }

  get protocol(): "http" | "https" | undefined {
    return this.view.protocol
  }

  modify(options: Parameters<HttpServerRequest.HttpServerRequest["modify"]>[0]): UwsServerRequest {
    const { view } = this
    return new UwsServerRequest(this.source, {
      url: options.url ?? view.url,
      headers: options.headers ?? view.headers,
      remoteAddress: options.remoteAddress ?? view.remoteAddress,
      peerAddress: options.peerAddress ?? view.peerAddress,
      protocol: options.protocol ?? view.protocol
    })
  }

  get cookies(): Readonly<Record<string, string>> {
    this.cachedCookies ??= Cookies.parseHeader(this.headers["cookie"] ?? "")
    return this.cachedCookies
  }

  get stream(): Stream.Stream<Uint8Array, HttpServerError> {
    const { body } = this.source.exchange
    if (body === undefined) return Stream.empty
    return Stream.mapError(Stream.fromPull(Effect.succeed(body.pull)), (failure) => this.bodyError(failure))
  }

  get arrayBuffer(): Effect.Effect<ArrayBuffer, HttpServerError> {
    // A copy: small bodies share Node's buffer pool.
    return Effect.map(this.bytes, (bytes) => Uint8Array.from(bytes).buffer)
  }

  get text(): Effect.Effect<string, HttpServerError> {
    return Effect.map(this.bytes, textOf)
  }

  get json(): Effect.Effect<Schema.Json, HttpServerError> {
    return Effect.flatMap(this.bytes, (bytes) =>
      this.parse((): Schema.Json => {
        const text = textOf(bytes)
        return text === "" ? null : JSON.parse(text)
      })
    )
  }

  get urlParamsBody(): Effect.Effect<UrlParams.UrlParams, HttpServerError> {
    return Effect.flatMap(this.bytes, (bytes) =>
      // A leading "?" is form data; URLSearchParams would drop it as a query prefix.
      this.parse(() =>
        UrlParams.fromInput(new URLSearchParams(formDecoder.decode(bytes).replace(/^\?/, "%3F")))
      )
    )
  }

  get multipart(): HttpServerRequest.HttpServerRequest["multipart"] {
    this.cachedMultipart ??= Effect.runSync(Effect.cached(Multipart.toPersisted(this.multipartStream)))
    return this.cachedMultipart
  }

  get multipartStream(): Stream.Stream<Multipart.Part, Multipart.MultipartError> {
    return Stream.pipeThroughChannel(
      Stream.mapError(this.stream, (cause) => Multipart.MultipartError.fromReason("InternalError", cause)),
      Multipart.makeChannel(this.headers)
    )
  }

  get upgrade(): Effect.Effect<Socket.Socket, HttpServerError> {
    return this.upgradeWith({})
  }

  upgradeWith(options: {
    readonly headers?: Headers.Input | undefined
  }): Effect.Effect<Socket.Socket, HttpServerError> {
    const { upgrade } = this.source
    if (upgrade === undefined)
      return Effect.fail(this.parseError({ description: "not an upgradeable request" }))
    if (options.headers !== undefined && Object.keys(options.headers).length > 0) {
      return Effect.fail(
        this.parseError({ description: "WebSocket upgrades do not support custom response headers" })
      )
    }
    return Effect.succeed(upgrade.socket)
  }

  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "HttpServerRequest",
      method: this.method,
      url: UrlParams.redactUrl(this.originalUrl)
    })
  }

  private get bytes(): Effect.Effect<Uint8Array, HttpServerError> {
    const { body } = this.source.exchange
    if (body === undefined) return Effect.succeed(noBytes)
    return Effect.withFiber((fiber) => {
      const limit = fiber.getRef(HttpIncomingMessage.MaxBodySize)
      const maxBytes = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
      return Effect.mapError(body.collect(maxBytes), (failure) => this.bodyError(failure))
    })
  }

  private parse<A>(evaluate: () => A): Effect.Effect<A, HttpServerError> {
    return Effect.try({ try: evaluate, catch: (cause) => this.parseError({ cause }) })
  }

  private bodyError(failure: BodyFailure): HttpServerError {
    return failure === "TooLarge"
      ? this.parseError({ reason: "BodyTooLarge" })
      : this.parseError({ description: "The client left before the body had ended" })
  }

  private parseError(details: {
    readonly reason?: "Parse" | "BodyTooLarge"
    readonly description?: string
    readonly cause?: unknown
  }): HttpServerError {
    return new HttpServerError({ reason: new RequestParseError({ request: this, ...details }) })
  }
}
