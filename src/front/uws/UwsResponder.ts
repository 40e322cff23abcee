import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { causeResponse, type HttpServerError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Readable } from "node:stream"
import type { Exchange } from "./Exchange.ts"
import { failed, forStatus, jsonType } from "../FrontAnswer.ts"
import { headOf, type ResponseHead } from "./ResponseHead.ts"
import { UwsServerRequest } from "./UwsServerRequest.ts"

/** Above this an answer is handed to the socket in steps, as uWebSockets.js would keep a second copy of the rest. */
const wholeBytes = 256 * 1024

const upgradedResponse = Response.empty({ status: 101 })

/** Writes what the app answered; the second half of `HttpEffect.toHandled`. */
export const respond = (
  request: HttpServerRequest,
  response: Response.HttpServerResponse
): Effect.Effect<unknown, HttpServerError> => {
  if (!(request instanceof UwsServerRequest)) return Effect.die(new Error("A request of another server"))
  const { exchange, upgrade } = request.source
  if (upgrade?.isUpgraded === true) return Effect.succeed(upgradedResponse)
  // Nothing can reach a client that has left.
  if (exchange.isGone) return cancel(response)
  try {
    return write(request, exchange, response, headOf(response))
  } catch (defect) {
    return Effect.andThen(cancel(response), fail(exchange, Cause.die(defect)))
  }
}

const write = (
  request: UwsServerRequest,
  exchange: Exchange,
  response: Response.HttpServerResponse,
  head: ResponseHead
): Effect.Effect<unknown, HttpServerError> => {
  const { body } = response
  const isHead = request.method === "HEAD"
  // A 205 says with its length that it has none; a 204 must not (RFC 9110 8.6).
  if (response.status === 205 && !isHead) return Effect.andThen(cancel(response), exchange.answer(head, ""))
  if (Response.omitsBody(response, isHead)) {
    const contentLength = response.status === 204 || response.status === 205 ? undefined : head.contentLength
    return Effect.andThen(cancel(response), exchange.answer({ ...head, contentLength }, undefined))
  }
  switch (body._tag) {
    case "Empty":
      return exchange.answer(head, "")
    case "Uint8Array":
      if (body.contentLength <= wholeBytes) return exchange.answer(head, body.text ?? body.body)
      return pieces(exchange, head, Stream.succeed(body.body), body.contentLength)
    case "Stream":
      return pieces(exchange, head, body.stream, lengthOf(head))
    case "FormData": {
      const form = new globalThis.Response(body.formData)
      const contentType = form.headers.get("content-type") ?? "multipart/form-data"
      return pieces(
        exchange,
        { ...head, headers: [...head.headers, "content-type", contentType] },
        webStream(form)
      )
    }
    case "Raw":
      return raw(exchange, head, body.body)
  }
}

const raw = (
  exchange: Exchange,
  head: ResponseHead,
  body: unknown
): Effect.Effect<unknown, HttpServerError> => {
  if (typeof body === "string" || body instanceof Uint8Array) return exchange.answer(head, body)
  if (body instanceof Readable) {
    const stream = NodeStream.fromReadable<Uint8Array, unknown>({
      evaluate: () => body,
      onError: (cause) => cause
    })
    return pieces(exchange, head, stream, lengthOf(head))
  }
  const web =
    body instanceof globalThis.Response ? body : isBodyInit(body) ? new globalThis.Response(body) : undefined
  if (web === undefined) return fail(exchange, Cause.die(new TypeError("Unsupported raw response body")))
  return pieces(exchange, head, webStream(web), lengthOf(head))
}

const pieces = (
  exchange: Exchange,
  head: ResponseHead,
  stream: Stream.Stream<Uint8Array, unknown>,
  totalBytes?: number
): Effect.Effect<unknown, HttpServerError> => {
  // A length of 0 is an answer that is over before it begins.
  if (totalBytes === 0) return exchange.answer(head, "")
  exchange.start(head, totalBytes)
  return stream.pipe(
    Stream.orDie,
    Stream.runForEachArray((chunks) => exchange.push(chunks.length > 1 ? Buffer.concat(chunks) : chunks[0])),
    Effect.andThen(Effect.suspend(() => exchange.end())),
    Effect.interruptible,
    Effect.catchCause((cause) => fail(exchange, cause))
  )
}

/** An answer that was begun is cut off, so that it cannot pass for a whole one; otherwise the cause decides the answer. */
const fail = (exchange: Exchange, cause: Cause.Cause<never>): Effect.Effect<never> =>
  Effect.flatMap(causeResponse(cause), ([response, reported]) => {
    if (exchange.isStarted) {
      exchange.reset()
      return Effect.failCause(reported)
    }
    const { status, body } = forStatus(response.status) ?? failed
    const head = headOf(Response.empty({ status, headers: [jsonType] }))
    return Effect.andThen(exchange.answer(head, body), Effect.failCause(reported))
  })

/** Closes files that were opened for an unread body. */
const cancel = (response: Response.HttpServerResponse): Effect.Effect<void> => {
  const body = response.body._tag === "Raw" ? response.body.body : undefined
  return body instanceof Readable ? Effect.sync(() => void body.destroy()) : Effect.void
}

const lengthOf = (head: ResponseHead): number | undefined =>
  head.contentLength === undefined ? undefined : Number(head.contentLength)

const webStream = (response: globalThis.Response): Stream.Stream<Uint8Array, unknown> => {
  const { body } = response
  if (body === null) return Stream.empty
  return Stream.fromReadableStream<Uint8Array, unknown>({ evaluate: () => body, onError: (cause) => cause })
}

const isBodyInit = (body: unknown): body is ConstructorParameters<typeof globalThis.Response>[0] =>
  body instanceof ArrayBuffer ||
  ArrayBuffer.isView(body) ||
  body instanceof Blob ||
  body instanceof FormData ||
  body instanceof URLSearchParams ||
  body instanceof ReadableStream
