import { Clock, Effect, Result } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, type Problem, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import { SendMailApi } from "#schemas/mail/SendMailApi.ts"
import { type KeyedExchange, type KeyedRoute, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { headerOf } from "#src/front/RawRoute.ts"
import { isJson } from "#src/http/JsonBody.ts"
import { isForThread, readInThread } from "#src/http/ReadInThread.ts"
import { type Reserve, wholeBody } from "#src/http/WholeBody.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { type ReadMail, readMailJson } from "#streams/mail/MailJson.ts"
import type { MailFields } from "#streams/mail/MailFields.ts"
import { composingLimits } from "../composing/MailComposer.ts"
import { Mail } from "./Mail.ts"

const module = new URL("./MailThread.ts", import.meta.url)

const notJson = UnsupportedMediaType.of("Content-Type must be application/json")

/** Reads the JSON of a mail: short ones at once, those of more than 256 KiB or of many values in a thread. */
const makeReader = Effect.gen(function* () {
  const workers = yield* Workers
  const { limits } = yield* AppConfig
  return (owner: string, bytes: Uint8Array<ArrayBuffer>): Effect.Effect<MailFields, Problem> =>
    Effect.gen(function* () {
      const nowMillis = yield* Clock.currentTimeMillis
      const isLong = bytes.length > composingLimits.inPlaceBytes || isForThread(bytes, limits)
      const read: ReadMail = isLong
        ? // MailThread.ts is this module's other half.
          ((yield* readInThread(workers, limits, { owner, module, bytes, more: { nowMillis } })) as ReadMail)
        : Result.match(readMailJson(bytes, nowMillis), {
            onSuccess: (fields) => ({ fields }),
            onFailure: (fault) => ({ fault })
          })
      if ("fault" in read) return yield* invalidField(read.fault.field, read.fault.text)
      return read.fields
    })
})

/** Sends by HTTP, served beside the Effect pipeline: bodies are long. Source: contract/mail#sending. */
export const sendMailRoutes = Effect.gen(function* () {
  const mail = yield* Mail
  const read = yield* makeReader
  const { limits } = yield* AppConfig
  const shares = new FairShares(limits.mailBodiesBytes)
  const maxBodyBytes = limits.mailBodyBytes
  const tooLarge = `body: at most ${maxBodyBytes} bytes`

  const answer = Effect.fnUntraced(function* (exchange: KeyedExchange, caller: Principal, reserve: Reserve) {
    const { body, request } = exchange
    const contentType = request.header("content-type")
    if (!isJson(contentType === "" ? undefined : contentType)) return yield* notJson
    const bytes = yield* wholeBody(body, { maxBodyBytes, tooLarge, reserve })
    if (bytes === undefined) return
    const fields = yield* read(caller.ownerId, bytes)
    const idempotencyKey = headerOf(request.headers, "idempotency-key")
    const { id, isReplay } = yield* mail.send({ caller, fields, idempotencyKey })
    const headers = [["Content-Type", "application/json"] as const]
    exchange.send(
      200,
      isReplay ? [...headers, ["Idempotent-Replay", "true"] as const] : headers,
      JSON.stringify({ success: true, message_id: id })
    )
  })

  const handle: KeyedRoute["handle"] = (exchange, caller) =>
    Effect.suspend(() => {
      const { ownerId } = caller
      let heldBytes = 0
      const reserve: Reserve = (bytes) => {
        const isTaken = shares.take(ownerId, bytes)
        if (isTaken) heldBytes += bytes
        return isTaken
      }
      return Effect.ensuring(
        answer(exchange, caller, reserve),
        Effect.sync(() => shares.release(ownerId, heldBytes))
      )
    })
  const route: KeyedRoute = { maxBodyBytes, isShared: true, handle }
  return yield* keyedRoutes(SendMailApi, { sendMail: route, sendMailShort: route })
})
