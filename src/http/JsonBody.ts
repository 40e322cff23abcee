import { isUtf8 } from "node:buffer"
import { ByteSize, Cause, Effect, Layer, Result } from "effect"
import type { Types } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { JsonBody, OpenAiJsonBody } from "#schemas/core/JsonBody.ts"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { type JsonFault, jsonFaultOf, mayBeUnfit } from "#schemas/core/JsonFitness.ts"
import {
  type BadRequest,
  invalidField,
  PayloadTooLarge,
  UnsupportedMediaType
} from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"

/** Why a body was refused before its schema saw it. Thrown through the decoder, which knows no failures of ours. */
class BodyRefused {
  readonly reason: "tooLarge" | JsonFault
  constructor(reason: BodyRefused["reason"]) {
    this.reason = reason
  }
}

const guardBody =
  (maxBytes: number) => (httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!isJson(request.headers["content-type"])) {
        return yield* UnsupportedMediaType.of("Content-Type must be application/json")
      }
      return yield* httpEffect.pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, withGuardedText(request, maxBytes)),
        Effect.catchCause((cause): Effect.Effect<never, Types.unhandled | BadRequest | PayloadTooLarge> => {
          const refused = cause.reasons
            .filter(Cause.isDieReason)
            .find(({ defect }) => defect instanceof BodyRefused)
          return refused?.defect instanceof BodyRefused
            ? Effect.fail(answerOf(refused.defect, maxBytes))
            : Effect.failCause(cause)
        })
      )
    })

const answerOf = ({ reason }: BodyRefused, maxBytes: number) =>
  reason === "tooLarge"
    ? PayloadTooLarge.of(`body: at most ${maxBytes} bytes`)
    : invalidField(reason.field === "" ? "body" : reason.field, reason.text)

/** No Content-Type at all is taken for JSON, as most command-line calls mean it. */
export const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || /^application\/json\s*(?:;|$)/i.test(contentType)

/** The request, but that its text is read within the limits. The body is still read only when the decoder asks. */
const withGuardedText = (
  request: HttpServerRequest.HttpServerRequest,
  maxBytes: number
): HttpServerRequest.HttpServerRequest => {
  const text =
    Number(request.headers["content-length"]) > maxBytes
      ? Effect.die(new BodyRefused("tooLarge"))
      : Effect.flatMap(bytesOf(request, maxBytes), (bytes) =>
          Result.match(checkedText(bytes), { onSuccess: Effect.succeed, onFailure: Effect.die })
        )
  return Object.create(request, { text: { value: text } })
}

const bytesOf = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.map((buffer) => new Uint8Array(buffer)),
    Effect.catchIf(isTooLarge, () => Effect.die(new BodyRefused("tooLarge")))
  )

const isTooLarge = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/** The body's text, if it is UTF-8, not too deep, and nothing in it is beyond what Postgres can keep. */
const checkedText = (bytes: Uint8Array): Result.Result<string, BodyRefused> => {
  const refuse = (field: string, text: string) => Result.fail(new BodyRefused({ field, text }))
  if (depthOf(bytes) > jsonDepthMax) return refuse("", `nested deeper than ${jsonDepthMax}`)
  if (!isUtf8(bytes)) return refuse("", "expected UTF-8")
  const text = new TextDecoder().decode(bytes)
  const fault = mayBeUnfit(text) ? faultIn(text) : undefined
  return fault === undefined ? Result.succeed(text) : Result.fail(new BodyRefused(fault))
}

const faultIn = (text: string): JsonFault | undefined => {
  // The decoder refuses text that is no JSON.
  const json = Result.try((): unknown => JSON.parse(text))
  return Result.isFailure(json) ? undefined : jsonFaultOf(json.success, { isNulRefused: true })
}

const guard = Effect.map(AppConfig, ({ limits }) => guardBody(limits.jsonBodyBytes))

/** `JsonBody` in both forms. */
export const layer = Layer.merge(Layer.effect(JsonBody, guard), Layer.effect(OpenAiJsonBody, guard))
