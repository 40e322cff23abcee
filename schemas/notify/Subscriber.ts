import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { pageQuery } from "../core/Page.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

export const SubscriberId = idSchema("sbr", "subscriber")
export const ChannelId = idSchema("chn", "channel")

export const ChannelKind = Schema.Literals(["push", "webhook", "telegram", "slack", "discord"])

/** Kinds of channels that have the address of a webhook. */
export const WebhookKind = Schema.Literals(["webhook", "slack", "discord"]).annotate({
  description:
    "`webhook`: a program that takes Standard Webhooks; `slack`: Slack, Mattermost, Rocket.Chat and the like; " +
    "absent: that of the address, which is `webhook` unless it is one of Slack's or Discord's own"
})

export const ChannelState = Schema.Literals(["unconfirmed", "active", "off", "failing", "gone"]).annotate({
  description:
    "`unconfirmed`: the link that was posted there was not opened; `failing`: ten messages in a row could not be " +
    "delivered; `gone`: its service said that it is no more. Only `active` ones get messages."
})

export const ProjectDelivery = Schema.Literals(["inherit", "instant", "hourly", "daily", "muted"]).annotate({
  description: "Of this project's messages; `inherit`: as their others; `muted`: none of them comes"
})

const Subscriber = Schema.Struct({
  id: SubscriberId,
  name: Schema.String,
  delivery: ProjectDelivery,
  channels: Schema.Array(
    Schema.Struct({
      id: ChannelId,
      kind: ChannelKind,
      state: ChannelState
    })
  ),
  joinedAt: Timestamp
}).annotate({ identifier: "Subscriber", description: "Its addresses are told to none but itself" })

export const subscribersLimitDefault = 100

const NewSubscriber = Schema.Struct({
  name: line(1, 100).annotate({ examples: ["Pager"] }),
  url: Schema.String.annotate({
    description: "https, at most 2,048 characters",
    examples: ["https://hooks.example.net/notifications"]
  }),
  kind: Schema.optionalKey(WebhookKind)
}).annotate({
  identifier: "NewSubscriber",
  description: "A program or a team's chat, by a webhook of the owner's, which needs no confirmation"
})
export type NewSubscriber = typeof NewSubscriber.Type

const AddedSubscriber = Schema.Struct({
  ...Subscriber.fields,
  secret: Schema.optionalKey(
    Schema.String.annotate({
      description: "Signs what a `webhook` gets (`whsec_`): shown now and never again. Chats have none",
      examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="]
    })
  )
}).annotate({ identifier: "AddedSubscriber" })
export type AddedSubscriber = typeof AddedSubscriber.Type

const Subscribers = Schema.Struct({
  subscribers: Schema.Array(Subscriber),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "SubscriberList", description: "The latest first" })
export type SubscriberList = typeof Subscribers.Type

const params = { id: PathId.annotate({ description: "Id or slug of the project" }) }

/** Subscribers of a project, for its owner. Source: contract/notify#subscribers. */
export class SubscribersApi extends HttpApiGroup.make("subscribers")
  .add(
    HttpApiEndpoint.get("listSubscribers", "/projects/:id/subscribers", {
      params,
      query: pageQuery({ limitDefault: subscribersLimitDefault, limitMax: 1_000 }),
      success: Subscribers,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "List a project's subscribers"),
    HttpApiEndpoint.post("addSubscriber", "/projects/:id/subscribers", {
      params,
      payload: NewSubscriber,
      success: AddedSubscriber.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Subscribe a webhook to a project")
      .annotate(OpenApi.Description, "A project has at most 10,000 subscribers (409)."),
    HttpApiEndpoint.delete("removeSubscriber", "/projects/:id/subscribers/:subscriberId", {
      params: { ...params, subscriberId: PathId },
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "RemovedSubscriber",
        description: "Later messages of the project do not reach it; it can join again"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Remove a subscriber from a project")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Subscribers", description: "Whom a project's notifications reach." })
  )
  .prefix("/api/v1") {}
