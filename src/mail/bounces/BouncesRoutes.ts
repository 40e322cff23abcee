import { Effect, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { invalidField, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import { reportBodyMax } from "#schemas/mail/Bounce.ts"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import { readBounce } from "#streams/mail/BounceJson.ts"
import { bodyOf } from "#src/http/BodyOf.ts"
import { isJson } from "#src/http/JsonBody.ts"
import { storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { Bounces } from "./Bounces.ts"

const isMessage = (contentType: string | undefined): boolean =>
  /^message\/rfc822\s*(?:;|$)/i.test(contentType ?? "")

export const layer = HttpApiBuilder.group(
  MailRoomApi,
  "mailBounces",
  Effect.fnUntraced(function* (handlers) {
    const bounces = yield* Bounces
    return handlers.handleRaw("reportBounce", ({ request }) =>
      Effect.gen(function* () {
        const { ownerId } = yield* CurrentKey
        const contentType = request.headers["content-type"]
        const isReport = isMessage(contentType)
        if (!isReport && !isJson(contentType))
          return yield* UnsupportedMediaType.of("Content-Type must be application/json or message/rfc822")
        const bytes = yield* bodyOf(request, reportBodyMax)
        if (isReport) return { bounces: yield* storeAwayAbandoned(bounces.reported(ownerId, bytes)) }
        const fields = readBounce(bytes)
        if (Result.isFailure(fields)) return yield* invalidField(fields.failure.field, fields.failure.text)
        return { bounces: [yield* storeAwayAbandoned(bounces.told(ownerId, fields.success))] }
      })
    )
  })
)
