import { Effect, Result } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { type Problem, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import { SendApi } from "#schemas/notify/SendApi.ts"
import { type KeyedExchange, type KeyedRoute, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { headerOf } from "#src/front/RawRoute.ts"
import { isJson } from "#src/http/JsonBody.ts"
import { isMultipart } from "#src/http/MultipartBody.ts"
import { type Reserve, wholeBody } from "#src/http/WholeBody.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { SendFields } from "#streams/notify/SendFields.ts"
import { type Gone, readForm } from "./FormReading.ts"
import { faulty, makeSendReader } from "./SendReading.ts"
import { type ArrivingFiles, makeSubmit, sentAnswer } from "./Submission.ts"

const neither = UnsupportedMediaType.of("Content-Type must be application/json or multipart/form-data")

/** Reads a request that sends, whatever its form. */
const makeReading = Effect.gen(function* () {
  const read = yield* makeSendReader
  const { limits, maxAttachmentBytes: maxFileBytes } = yield* AppConfig
  const maxBodyBytes = limits.messageBodyBytes
  const tooLarge = `body: at most ${maxBodyBytes} bytes`

  return Effect.fnUntraced(function* (
    { body, request }: KeyedExchange,
    owner: string,
    files: ArrivingFiles,
    reserve: Reserve
  ) {
    const contentType = request.header("content-type")
    if (isMultipart(contentType)) {
      const form = yield* readForm(body, contentType, files, {
        maxBodyBytes,
        maxFileBytes,
        tooLarge,
        reserve
      })
      return "bytes" in form
        ? yield* read(owner, form)
        : yield* Effect.fromResult(Result.mapError(form, faulty))
    }
    if (!isJson(contentType === "" ? undefined : contentType)) return yield* neither
    const bytes = yield* wholeBody(body, { maxBodyBytes, tooLarge, reserve })
    if (bytes === undefined) return yield* Effect.fail<Gone>("gone")
    return yield* read(owner, { bytes, around: undefined })
  })
})

/** Sends by REST, served beside the Effect pipeline: files come as fast as they are stored. Source: contract/notify#sending. */
export const sendRoutes = Effect.gen(function* () {
  const submit = yield* makeSubmit
  const reading = yield* makeReading
  const { limits } = yield* AppConfig
  const shares = new FairShares(limits.messageBodiesBytes)

  const submitted = (exchange: KeyedExchange, caller: Principal) =>
    Effect.suspend(() => {
      const { ownerId } = caller
      let heldBytes = 0
      const reserve: Reserve = (bytes) => {
        const isTaken = shares.take(ownerId, bytes)
        if (isTaken) heldBytes += bytes
        return isTaken
      }
      const { request } = exchange
      const submission = { caller, request, idempotencyKey: headerOf(request.headers, "idempotency-key") }
      const gather = (files: ArrivingFiles): Effect.Effect<SendFields, Problem | Gone> =>
        reading(exchange, ownerId, files, reserve)
      return submit(submission, gather).pipe(
        Effect.ensuring(Effect.sync(() => shares.release(ownerId, heldBytes)))
      )
    })

  const handle: KeyedRoute["handle"] = (exchange, caller) =>
    submitted(exchange, caller).pipe(
      Effect.map((made) => {
        const { body, headers, status } = sentAnswer(made)
        exchange.send(status, [["Content-Type", "application/json"], ...headers], body)
      }),
      Effect.catch((fault) => (fault === "gone" ? Effect.void : Effect.fail(fault)))
    )
  // A form's limits are those of its parts.
  return yield* keyedRoutes(SendApi, {
    sendMessage: { maxBodyBytes: Number.MAX_SAFE_INTEGER, isShared: true, handle }
  })
})
