import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, type Metering, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { NotFound } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { bodyFormats, priorities } from "./SendTerms.ts"
import { MessageAttachment } from "./Attachment.ts"
import { ProjectId } from "./Project.ts"

export const MessageId = idSchema("msg", "message")
export const DeliveryId = idSchema("dlv", "delivery")
const DigestId = idSchema("dig", "digest")

/** The form of a body, as its sender names it. `auto`: as its text looks. Source: contract/notify#bodies */
export const BodyFormat = Schema.Literals(bodyFormats)
export type BodyFormat = typeof BodyFormat.Type

const ref = line(1, 64)

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
  queuedForDigest: count("Subscribers for whom it was held: for a digest, or until quiet hours end"),
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
  attachments: Schema.Array(MessageAttachment),
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
  digest: Schema.NullOr(DigestId).annotate({
    description: "It goes as part of this one; null: as a message of its own, or it is held still"
  }),
  attempts: Schema.Int,
  nextAttemptAt: Schema.NullOr(Timestamp).annotate({ description: "Of a held one: when its digest is due" }),
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
  .annotateMerge(OpenApi.annotations({ title: "Messages", description: "What became of notifications." }))
  .prefix("/api/v1") {}
