import { ByteSize, Cause, Effect, Layer, Result } from "effect"
import type { Types } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { JsonBody, NestedJsonBody, jsonBodyBytesMax, jsonDepthMax } from "#schemas/core/JsonBody.ts"
import { flat, nested } from "./Family.ts"

/** Why a body was refused before its schema saw it. Thrown through the decoder, which knows no failures of ours. */
class BodyRefused {
  readonly reason: "tooLarge" | "notUtf8" | "tooDeep"
  constructor(reason: BodyRefused["reason"]) {
    this.reason = reason
  }
}

interface Answers<B, L, U> {
  badRequest(field: string, text: string): B
  tooLarge(text: string): L
  unsupported(text: string): U
}

const guardBody =
  <B, L, U>(family: Answers<B, L, U>) =>
  (httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!isJson(request.headers["content-type"])) {
        return yield* Effect.fail(family.unsupported("Content-Type must be application/json"))
      }
      return yield* httpEffect.pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, withGuardedText(request)),
        Effect.catchCause((cause): Effect.Effect<never, Types.unhandled | B | L> => {
          const refused = cause.reasons
            .filter(Cause.isDieReason)
            .find(({ defect }) => defect instanceof BodyRefused)
          return refused?.defect instanceof BodyRefused
            ? Effect.fail(answerOf(family, refused.defect))
            : Effect.failCause(cause)
        })
      )
    })

const answerOf = <B, L, U>(family: Answers<B, L, U>, { reason }: BodyRefused): B | L => {
  if (reason === "tooLarge") return family.tooLarge(`body: at most ${jsonBodyBytesMax} bytes`)
  if (reason === "notUtf8") return family.badRequest("body", "expected UTF-8")
  return family.badRequest("body", `nested deeper than ${jsonDepthMax}`)
}

/** No Content-Type at all is taken for JSON, as most command-line calls mean it. */
const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)

/** The request, but that its text is read within the limits. The body is still read only when the decoder asks. */
const withGuardedText = (
  request: HttpServerRequest.HttpServerRequest
): HttpServerRequest.HttpServerRequest => {
  const text =
    Number(request.headers["content-length"]) > jsonBodyBytesMax
      ? Effect.die(new BodyRefused("tooLarge"))
      : Effect.flatMap(bytesOf(request), (bytes) =>
          Result.match(checkedText(bytes), { onSuccess: Effect.succeed, onFailure: Effect.die })
        )
  return Object.create(request, { text: { value: text } })
}

const bytesOf = (request: HttpServerRequest.HttpServerRequest) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(jsonBodyBytesMax)),
    Effect.map((buffer) => new Uint8Array(buffer)),
    Effect.catchIf(isTooLarge, () => Effect.die(new BodyRefused("tooLarge")))
  )

const isTooLarge = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/** The body's text, if it is UTF-8 and not too deep. Exported for its property test. */
export const checkedText = (bytes: Uint8Array): Result.Result<string, BodyRefused> => {
  if (depthOf(bytes) > jsonDepthMax) return Result.fail(new BodyRefused("tooDeep"))
  return Result.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => new BodyRefused("notUtf8")
  })
}

const [quote, backslash, openBrace, openBracket, closeBrace, closeBracket] = [
  0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d
]

/** Brackets open at once, outside strings. Brackets are ASCII, so bytes will do: UTF-8 has them nowhere else. */
const depthOf = (bytes: Uint8Array): number => {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === backslash) index++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === openBrace || byte === openBracket) deepest = Math.max(deepest, ++depth)
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return deepest
}

/** `JsonBody` of both families. */
export const layer = Layer.mergeAll(
  Layer.succeed(JsonBody, guardBody(flat)),
  Layer.succeed(NestedJsonBody, guardBody(nested))
)
