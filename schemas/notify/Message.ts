import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, Metered, type Metering, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { openStruct } from "../core/OpenStruct.ts"
import { BadRequest, Conflict, NotFound, PayloadTooLarge, UnsupportedMediaType } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { ProjectId } from "./Project.ts"

export const MessageId = idSchema("msg", "message")
export const DeliveryId = idSchema("dlv", "delivery")

/** The form of a body, as its sender names it. `auto`: as its text looks. Source: contract/notify#bodies */
export const BodyFormat = Schema.Literals(["auto", "text", "markdown", "json", "log"])
export type BodyFormat = typeof BodyFormat.Type

export const priorities = ["low", "normal", "high"] as const

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const textOf = (maxLength: number) =>
  Schema.String.check(
    Schema.isBetweenLength(1, maxLength, { expected: `text of 1 to ${maxLength} characters` })
  )
const ref = line(1, 64)

/** The body of a send as it is documented; `streams/notify/SendFields.ts` reads it. Source: contract/notify#sending. */
const NewMessage = openStruct({
  app: textOf(100).annotate({ description: "The sender, on one line: the heading", examples: ["backup.sh"] }),
  message: textOf(4_000).annotate({ description: "The text of the notification" }),
  title: optional(Schema.String.check(Schema.isMaxLength(200))).annotate({
    description: "The heading in place of `app`, on one line"
  }),
  url: optional(
    Schema.String.check(
      Schema.isMaxLength(2_048),
      Schema.isPattern(/^https?:\/\/[^\s]+$/u, { expected: "an http or https address" })
    )
  ).annotate({ description: "Opened on click", examples: ["https://example.com/builds/42"] }),
  project: optional(
    Schema.Union([ref, Schema.Array(ref).check(Schema.isMinLength(1), Schema.isMaxLength(100))])
  ).annotate({
    description: "Ids or slugs; absent: every project that the key covers"
  }),
  body: optional(
    Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown), Schema.Array(Schema.Unknown)])
  ).annotate({
    description: "Shown on the message's page: text, Markdown, a log or JSON; at most 1 MiB"
  }),
  bodyFormat: optional(BodyFormat).annotate({ description: "Default: `auto`" }),
  priority: optional(Schema.Literals(priorities)).annotate({ description: "Default: `normal`" }),
  attachments: optional(Schema.Array(Schema.String).check(Schema.isMaxLength(20))).annotate({
    description: "Ids of unused uploads of the same account"
  })
}).annotate({ identifier: "NewMessage" })

const ProjectRef = Schema.Struct({ id: ProjectId, slug: Schema.String, name: Schema.String })
const Link = Schema.optionalKey(Schema.String.annotate({ description: "Address of the message's page" }))
const count = (description: string) => Schema.Int.annotate({ description })

const SentMessage = Schema.Struct({
  id: MessageId,
  project: ProjectRef,
  recipients: count("Subscribers with an active channel who have not muted the project"),
  queuedForDigest: count("Those of them for whom it waits"),
  viewUrl: Link,
  attachments: Schema.optionalKey(Schema.Int)
})

/** The answer to a send. */
export const Sent = Schema.Struct({
  ok: Schema.Literal(true),
  recipients: count("The sum over `messages`"),
  messages: Schema.Array(SentMessage)
}).annotate({ identifier: "SentMessages", description: "It is accepted, and will be delivered" })
export type Sent = typeof Sent.Type

const messageFields = {
  id: MessageId,
  project: ProjectRef,
  app: Schema.String,
  message: Schema.optionalKey(Schema.String.annotate({ description: "Texts are for account keys alone" })),
  title: Schema.optionalKey(Schema.NullOr(Schema.String)),
  url: Schema.optionalKey(Schema.NullOr(Schema.String)),
  priority: Schema.Literals(priorities),
  bodyFormat: BodyFormat,
  bodyBytes: count("0: it has no body"),
  attachments: Schema.Int,
  recipients: Schema.Int,
  queuedForDigest: Schema.Int,
  status: Schema.Literals(["delivering", "done"]),
  viewUrl: Link,
  createdAt: Timestamp
}
const Message = Schema.Struct(messageFields).annotate({
  identifier: "Message",
  description: "A sent message"
})
export type Message = typeof Message.Type

const MessageDetail = Schema.Struct({
  ...messageFields,
  deliveries: Schema.Struct({
    waiting: Schema.Int,
    held: Schema.Int,
    delivered: Schema.Int,
    dead: Schema.Int,
    dropped: Schema.Int
  })
}).annotate({ identifier: "MessageDetail", description: "A sent message, and how far it is" })
export type MessageDetail = typeof MessageDetail.Type

const Delivery = Schema.Struct({
  id: DeliveryId,
  message: MessageId,
  subscriber: Schema.Struct({
    id: Schema.String,
    name: Schema.optionalKey(
      Schema.NullOr(Schema.String).annotate({ description: "For account keys; null: it has left" })
    )
  }),
  channel: Schema.String,
  kind: Schema.Literals(["push", "webhook", "telegram", "slack", "discord"]),
  status: Schema.Literals(["waiting", "held", "delivered", "dead", "dropped"]),
  attempts: Schema.Int,
  nextAttemptAt: Schema.NullOr(Timestamp),
  lastError: Schema.NullOr(Schema.String),
  repeated: Schema.Boolean.annotate({ description: "An attempt of unknown end was made again" }),
  endedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Delivery", description: "A message on its way to one channel of one subscriber" })
export type Delivery = typeof Delivery.Type

const next = Schema.NullOr(Schema.String).annotate({
  description: "`before` of the page after this one; null: there is none"
})
const DeliveryList = Schema.Struct({ deliveries: Schema.Array(Delivery), next }).annotate({
  identifier: "DeliveryList",
  description: "A page of deliveries"
})

const cursorExpected = "`next` of another page"
const Cursor = Schema.String.check(Schema.isPattern(/^[0-9A-Za-z_]{1,40}$/u, { expected: cursorExpected }))
export const listLimitDefault = 20
const paged = {
  before: Schema.optionalKey(Cursor.annotate({ description: cursorExpected })),
  limit: Schema.optionalKey(integer(1, 100).annotate({ description: "Page size", default: listLimitDefault }))
}

/** Sends of a project key: a fixed minute, so that no more than the limit pass in one. Its own limit goes by this name. */
export const sendsName = "Sends"
export const sends: Metering = {
  meter: { name: sendsName, per: "credential", shape: "window", limit: 120, seconds: 60 },
  cost: 1
}

const params = { id: PathId }

/** Messages and their deliveries. Source: contract/notify#sending. */
export class MessagesApi extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.post("sendMessage", "/messages", {
      payload: NewMessage,
      success: Sent.pipe(HttpApiSchema.status(201)),
      error: [
        BadRequest.plain,
        NotFound.plain,
        Conflict.plain,
        PayloadTooLarge.plain,
        UnsupportedMediaType.plain
      ]
    })
      .annotate(OpenToProjectKeys, "only")
      .annotate(Metered, sends)
      .annotate(OpenApi.Summary, "Send a notification to the subscribers of projects")
      .annotate(
        OpenApi.Description,
        "By a project key: 120 sends a minute, or its own limit. With `Idempotency-Key` (1 to 255 characters of ASCII, " +
          "24 h, per key) the same request is carried out once: a repetition has the same answer and " +
          "`Idempotent-Replay: true`, another request is 409. Body: 8 MiB."
      ),
    HttpApiEndpoint.post("sendTestMessage", "/projects/:id/test", {
      params: { id: PathId.annotate({ description: "Id or slug" }) },
      success: Sent.pipe(HttpApiSchema.status(201)),
      error: NotFound.plain
    })
      .annotate(OpenApi.Summary, "Send a test message to a project's subscribers")
      .annotate(OpenApi.Description, "A message like any other, but for the key: it has none."),
    HttpApiEndpoint.get("listMessages", "/messages", {
      query: {
        project: Schema.optionalKey(ref.annotate({ description: "Id or slug" })),
        app: Schema.optionalKey(line(1, 100).annotate({ description: "The sender" })),
        status: Schema.optionalKey(
          Schema.Literals(["delivering", "done"]).annotate({ description: "Whether deliveries wait" })
        ),
        ...paged
      },
      success: Schema.Struct({ messages: Schema.Array(Message), next }).annotate({
        identifier: "MessageList",
        description: "Newest first: the owner's, or, without texts, those that the project key sent"
      })
    })
      .annotate(OpenToProjectKeys, "also")
      .annotate(OpenApi.Summary, "List sent messages"),
    HttpApiEndpoint.get("readMessage", "/messages/:id", {
      params,
      success: MessageDetail,
      error: NotFound.plain
    })
      .annotate(OpenToProjectKeys, "also")
      .annotate(OpenApi.Summary, "Read a message and how far it is"),
    HttpApiEndpoint.get("listMessageDeliveries", "/messages/:id/deliveries", {
      params,
      query: paged,
      success: DeliveryList,
      error: NotFound.plain
    })
      .annotate(OpenToProjectKeys, "also")
      .annotate(OpenApi.Summary, "List the deliveries of a message"),
    HttpApiEndpoint.delete("deleteMessage", "/messages/:id", {
      params,
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "DeletedMessage",
        description: "Its page is gone, and what waits is not sent any more"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Delete a message"),
    HttpApiEndpoint.get("listDeadDeliveries", "/deliveries", {
      query: {
        status: Schema.optionalKey(
          Schema.Literal("dead").annotate({ description: "Those that were given up", default: "dead" })
        ),
        ...paged
      },
      success: DeliveryList
    }).annotate(OpenApi.Summary, "List deliveries that were given up, newest first")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Messages", description: "Notifications, and what became of them." })
  )
  .prefix("/api/v1") {}
