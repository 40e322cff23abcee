import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Gone, NotFound, NotImplemented, RateLimited, Unauthorized } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { SubscriberAuthorization } from "./SubscriberToken.ts"

/** Chats of Telegram join by codes. Source: contract/telegram#joining. */

const CodeId = idSchema("tgc", "code of Telegram")

const TelegramCode = Schema.Struct({
  id: CodeId,
  startUrl: Schema.String.annotate({
    description: "Opens a chat with the bot; the code in it joins that chat, once",
    examples: ["https://t.me/signalbox_bot?start=7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG"]
  }),
  groupUrl: Schema.String.annotate({
    description: "Lets a group be chosen, which joins by the same code",
    examples: ["https://t.me/signalbox_bot?startgroup=7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG"]
  }),
  expiresAt: TimestampOfDate
}).annotate({ identifier: "TelegramCode", description: "Good for 15 minutes" })
export type TelegramCode = typeof TelegramCode.Type

const TelegramJoining = Schema.Struct({
  name: Schema.optionalKey(line(1, 100).annotate({ description: "The project's owner sees it" })),
  timezone: line(1, 64).annotate({ description: "IANA time zone", examples: ["Europe/Berlin"] })
}).annotate({ identifier: "TelegramJoining" })

const CodeState = Schema.Struct({
  id: CodeId,
  state: Schema.Literals(["waiting", "used", "expired"])
}).annotate({ identifier: "TelegramCodeState" })

export class TelegramApi extends HttpApiGroup.make("telegram")
  .add(
    HttpApiEndpoint.post("joinByTelegram", "/join/:token/telegram", {
      params: {
        token: Schema.String.annotate({ description: "Of the join link, the part behind `/n/join/`" })
      },
      payload: TelegramJoining,
      success: TelegramCode.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Gone.plain, RateLimited.plain, Unauthorized.plain, NotImplemented.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a code by which a chat of Telegram subscribes to a project")
      .annotate(
        OpenApi.Description,
        "Without a key. With `Authorization: Bearer sbt_…` the chat and the project become that subscriber's. 60 an hour " +
          "from one address."
      ),
    HttpApiEndpoint.post("addTelegram", "/subscriber/telegram", {
      success: TelegramCode.pipe(HttpApiSchema.status(201)),
      error: [RateLimited.plain, NotImplemented.plain]
    })
      .middleware(SubscriberAuthorization)
      .annotate(OpenApi.Summary, "Make a code by which a chat of Telegram becomes a channel"),
    HttpApiEndpoint.get("readTelegramCode", "/telegram-codes/:id", {
      params: { id: PathId },
      success: CodeState,
      error: [NotFound.plain, RateLimited.plain]
    })
      .annotate(OpenApi.Summary, "Tell whether a code was used")
      .annotate(OpenApi.Description, "Without a key: its id does not join anything.")
  )
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Telegram", description: "How chats of Telegram become channels." })
  )
  .prefix("/api/v1") {}
