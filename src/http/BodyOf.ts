import { ByteSize, Effect } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { BadRequest, PayloadTooLarge } from "#schemas/core/Problem.ts"

/** The bytes of a body that is not JSON: more than `maxBytes` are 413, a body that breaks off is 400. */
export const bodyOf = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.map((buffer) => new Uint8Array(buffer)),
    Effect.catchTag("HttpServerError", (error): Effect.Effect<never, PayloadTooLarge | BadRequest> =>
      error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
        ? Effect.fail(PayloadTooLarge.of(`body: at most ${maxBytes} bytes`))
        : Effect.fail(BadRequest.of("body: it was cut off"))
    )
  )
