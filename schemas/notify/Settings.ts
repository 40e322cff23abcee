import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { openStruct } from "../core/OpenStruct.ts"
import { Conflict, Gone, NotFound, RateLimited, Unauthorized } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { deliveryChange, deliverySettings } from "./DeliverySettings.ts"
import { ProjectId } from "./Project.ts"
import {
  ChannelId,
  ChannelKind,
  ChannelState,
  ProjectDelivery,
  SubscriberId,
  WebhookKind
} from "./Subscriber.ts"
import { SubscriberAuthorization } from "./SubscriberToken.ts"

/** Subscribers' own side. Source: contract/notify#subscribers. */

const Name = line(1, 100)
const ChannelName = Schema.optionalKey(
  Name.annotate({ description: "Of the browser or the webhook", examples: ["Firefox on Linux"] })
)
const TimeZone = line(1, 64).annotate({ description: "IANA time zone", examples: ["Europe/Berlin"] })

/** As `PushSubscription.toJSON()`: what else browsers write there is ignored. */
const Push = openStruct({
  endpoint: Schema.String.annotate({ description: "https, at most 2,048 characters" }),
  keys: openStruct({
    p256dh: Schema.String.annotate({ description: "A point of P-256: 65 bytes in base64url" }),
    auth: Schema.String.annotate({ description: "16 bytes in base64url" })
  }),
  name: ChannelName
}).annotate({
  identifier: "PushSubscription",
  description: "A browser's subscription, of `PushSubscription.toJSON()`"
})

const Webhook = Schema.Struct({
  url: Schema.String.annotate({
    description: "https, at most 2,048 characters",
    examples: ["https://hooks.example.net/notifications"]
  }),
  kind: Schema.optionalKey(WebhookKind),
  name: ChannelName
}).annotate({
  identifier: "NewWebhook",
  description:
    "A program or a team's chat. It gets messages in its own form, once the link that is posted there was confirmed"
})

const addresses = { push: Schema.optionalKey(Push), webhook: Schema.optionalKey(Webhook) }

export const NewChannel = Schema.Struct(addresses).annotate({
  identifier: "NewChannel",
  description: "One of `push` and `webhook`"
})
export type NewChannel = typeof NewChannel.Type

const Joining = Schema.Struct({
  name: Schema.optionalKey(Name.annotate({ description: "The project's owner sees it" })),
  timezone: TimeZone,
  ...deliveryChange,
  ...addresses
}).annotate({
  identifier: "Joining",
  description: "One of `push` and `webhook`; with the token of a subscriber, neither will do"
})
export type Joining = typeof Joining.Type

const Channel = Schema.Struct({
  id: ChannelId,
  kind: ChannelKind,
  name: Schema.String,
  state: ChannelState,
  host: Schema.String.annotate({
    description: "Of the webhook, or of the browser's push service",
    examples: ["updates.push.services.mozilla.com"]
  }),
  createdAt: TimestampOfDate
}).annotate({ identifier: "Channel" })
export type Channel = typeof Channel.Type

const Secret = Schema.String.annotate({
  description: "Signs what a `webhook` gets (`whsec_`): shown now and never again. Chats have none",
  examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="]
})

const MadeChannel = Schema.Struct({ ...Channel.fields, secret: Schema.optionalKey(Secret) }).annotate({
  identifier: "MadeChannel"
})
export type MadeChannel = typeof MadeChannel.Type

const SettingsUrl = Schema.String.annotate({
  description: "The settings page; the part after `#` is the subscriber's token",
  examples: ["https://signalbox.example.net/n/me#sbt_7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2"]
})

const Joined = Schema.Struct({
  settingsUrl: SettingsUrl,
  channel: Schema.optionalKey(Channel),
  secret: Schema.optionalKey(Secret)
}).annotate({ identifier: "Joined" })
export type Joined = typeof Joined.Type

const SubscribedProject = Schema.Struct({
  id: ProjectId,
  name: Schema.String,
  description: Schema.String,
  delivery: ProjectDelivery,
  joinedAt: TimestampOfDate
}).annotate({ identifier: "SubscribedProject" })

const Settings = Schema.Struct({
  id: SubscriberId,
  name: Schema.String,
  timezone: Schema.String,
  ...deliverySettings,
  projects: Schema.Array(SubscribedProject),
  channels: Schema.Array(Channel),
  pushKey: Schema.String.annotate({
    description: "The `applicationServerKey` with which browsers subscribe",
    examples: ["BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"]
  }),
  createdAt: TimestampOfDate
}).annotate({ identifier: "Settings", description: "A subscriber, as they see themselves" })
export type Settings = typeof Settings.Type

const SettingsChange = Schema.Struct({
  name: Schema.optionalKey(Name),
  timezone: Schema.optionalKey(TimeZone),
  ...deliveryChange
}).annotate({ identifier: "SettingsChange" })
export type SettingsChange = typeof SettingsChange.Type

const ChannelChange = Schema.Struct({
  name: Schema.optionalKey(Name),
  state: Schema.optionalKey(
    Schema.Literals(["active", "off"]).annotate({
      description: "`active`: one that was failing begins anew"
    })
  ),
  push: Schema.optionalKey(
    Push.annotate({ description: "The browser's new subscription, in place of the old one" })
  )
}).annotate({ identifier: "ChannelChange" })
export type ChannelChange = typeof ChannelChange.Type

const ProjectChoice = Schema.Struct({
  delivery: ProjectDelivery
}).annotate({ identifier: "ProjectChoice" })
export type ProjectChoice = typeof ProjectChoice.Type

const Tested = Schema.Struct({
  delivered: Schema.Boolean,
  error: Schema.NullOr(Schema.String).annotate({
    description: "What the service said, where it did not take it"
  })
}).annotate({
  identifier: "TestedChannel",
  description: "Whether the channel's service took the notification"
})
export type Tested = typeof Tested.Type

const deleted = (identifier: string, description: string) =>
  Schema.Struct({ deleted: Schema.Literal(true) }).annotate({ identifier, description })

const Link = Schema.Struct({ settingsUrl: SettingsUrl }).annotate({ identifier: "SettingsLink" })

/** Joining a project, by its link. Source: contract/notify#subscribers. */
export class JoiningApi extends HttpApiGroup.make("joining")
  .add(
    HttpApiEndpoint.post("joinProject", "/join/:token", {
      params: {
        token: Schema.String.annotate({ description: "Of the join link, the part behind `/n/join/`" })
      },
      payload: Joining,
      success: Joined.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Gone.plain, Conflict.plain, RateLimited.plain, Unauthorized.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Subscribe to a project")
      .annotate(
        OpenApi.Description,
        "Without a key. With `Authorization: Bearer sbt_…`, or from a browser that is subscribed, the project is added to " +
          "that subscriber, whose settings stay. 20 an hour from one address; a project has at most 10,000 subscribers, a subscriber 20 " +
          "channels (409). A link that was replaced is 404, one to a closed project 410."
      )
  )
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Joining", description: "How people subscribe to projects." }))
  .prefix("/api/v1") {}

const channel = { params: { id: PathId }, error: NotFound.plain }

/** The settings of the subscriber whose token the request has. Source: contract/notify#subscribers. */
export class SettingsApi extends HttpApiGroup.make("settings")
  .add(
    HttpApiEndpoint.get("readSettings", "/subscriber", { success: Settings }).annotate(
      OpenApi.Summary,
      "Read a subscriber's settings"
    ),
    HttpApiEndpoint.patch("updateSettings", "/subscriber", { payload: SettingsChange, success: Settings })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a subscriber's settings"),
    HttpApiEndpoint.delete("leave", "/subscriber", {
      success: deleted("Left", "Its addresses are deleted, and what waits is not sent")
    }).annotate(OpenApi.Summary, "Leave all projects"),
    HttpApiEndpoint.post("renewSettingsLink", "/subscriber/link", { success: Link }).annotate(
      OpenApi.Summary,
      "Replace a subscriber's token; the old one works nowhere from then on"
    ),
    HttpApiEndpoint.put("updateSubscription", "/subscriber/projects/:id", {
      params: { id: PathId },
      payload: ProjectChoice,
      success: SubscribedProject,
      error: NotFound.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Choose when a project's messages come, or mute it"),
    HttpApiEndpoint.delete("leaveProject", "/subscriber/projects/:id", {
      params: { id: PathId },
      success: deleted("LeftProject", "No message of the project from now on"),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Leave a project"),
    HttpApiEndpoint.post("addChannel", "/subscriber/channels", {
      payload: NewChannel,
      success: MadeChannel.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Add a browser or a webhook")
      .annotate(OpenApi.Description, "A subscriber has at most 20 channels (409)."),
    HttpApiEndpoint.patch("updateChannel", "/subscriber/channels/:id", {
      ...channel,
      payload: ChannelChange,
      success: Channel,
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a channel, or turn it on or off"),
    HttpApiEndpoint.delete("removeChannel", "/subscriber/channels/:id", {
      ...channel,
      success: deleted("RemovedChannel", "Its address is deleted, and what waits is not sent")
    }).annotate(OpenApi.Summary, "Remove a channel"),
    HttpApiEndpoint.post("testChannel", "/subscriber/channels/:id/test", {
      ...channel,
      success: Tested,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotate(OpenApi.Summary, "Send a test to a channel, and tell how it went")
      .annotate(OpenApi.Description, "60 an hour from one address.")
  )
  .middleware(SubscriberAuthorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Settings of subscribers",
      description: "Projects and channels of a subscriber, who has no account here but a token."
    })
  )
  .prefix("/api/v1") {}
