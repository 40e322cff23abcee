import { Argument, type Command, Flag } from "effect/cli"
import { id, many, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import type { Delivery } from "#schemas/notify/Message.ts"

const message = id("Id of the message (msg_…)")
const page = {
  before: optional(Flag.String("before"), "`next` of another page"),
  limit: optional(Flag.Int("limit"), "1 to 100; default: 20")
}

const deliveriesTable = (deliveries: ReadonlyArray<Delivery>): string =>
  tableOf(
    ["id", "subscriber", "kind", "status", "digest", "attempts", "nextAttemptAt", "lastError"],
    deliveries.map(({ subscriber, ...rest }) => ({ ...rest, subscriber: subscriber.name ?? subscriber.id }))
  )

const messages = noun("messages", "List, show and delete sent messages", [
  verb(
    "list",
    "List sent messages, newest first",
    {
      ...page,
      project: optional(Flag.String("project"), "Of this project alone, by id or slug"),
      app: optional(Flag.String("app"), "Of this sender alone"),
      status: optional(Flag.Literals("status", ["delivering", "done"]), "Whether deliveries wait")
    },
    (client, query) => client.messages.listMessages({ query }),
    ({ messages }) =>
      tableOf(
        ["id", "project", "app", "message", "recipients", "queuedForDigest", "status", "createdAt"],
        messages.map((one) => ({ ...one, project: one.project.slug }))
      )
  ),
  verb(
    "show",
    "Show how far a message is",
    message,
    (client, params) => client.messages.readMessage({ params }),
    ({ deliveries, ...one }) =>
      [
        `${one.title ?? one.app}: ${one.message ?? ""}`,
        ...(one.viewUrl === undefined ? [] : [one.viewUrl]),
        tableOf(Object.keys(deliveries), [deliveries])
      ].join("\n")
  ),
  verb(
    "deliveries",
    "List the deliveries of a message",
    { ...message, ...page },
    (client, { id, ...query }) => client.messages.listMessageDeliveries({ params: { id }, query }),
    ({ deliveries }) => deliveriesTable(deliveries)
  ),
  verb(
    "dead",
    "List deliveries that were given up, newest first",
    page,
    (client, query) => client.messages.listDeadDeliveries({ query }),
    ({ deliveries }) => deliveriesTable(deliveries)
  ),
  verb(
    "redrive",
    "Have deliveries that were given up wait again; one of the flags says which",
    {
      ids: many("id", "This delivery (dlv_…); say it again for more"),
      message: optional(Flag.String("message"), "Those of this message"),
      project: optional(Flag.String("project"), "Those of messages to this project, by id or slug"),
      channel: optional(Flag.String("channel"), "Those to this channel")
    },
    (client, payload) => client.deliveries.redriveDeliveries({ payload }),
    ({ redriven }) => `${redriven} wait again`
  ),
  verb(
    "delete",
    "Delete a message: its page is gone, and deliveries that wait are not sent",
    message,
    (client, params) => client.messages.deleteMessage({ params }),
    (_, { id }) => `Deleted ${id}`
  )
])

const project = id("Id or slug of the project")

const subscribers = noun("subscribers", "List, add and remove subscribers of a project", [
  verb(
    "list",
    "List a project's subscribers, the latest first",
    project,
    (client, params) => client.subscribers.listSubscribers({ params, query: {} }),
    ({ subscribers }) =>
      tableOf(
        ["id", "name", "channels", "delivery", "joinedAt"],
        subscribers.map((one) => ({
          ...one,
          channels: one.channels.map(({ kind, state }) => `${kind} ${state}`).join(", ")
        }))
      )
  ),
  verb(
    "add",
    "Subscribe a team's chat or a program, by a webhook of one's own",
    {
      ...project,
      name: Argument.String("name").pipe(Argument.withDescription("Name to show")),
      url: Argument.String("url").pipe(Argument.withDescription("Address of the webhook, https")),
      kind: optional(
        Flag.Literals("kind", ["webhook", "slack", "discord"]),
        "slack also for Mattermost and Rocket.Chat; default: that of the address"
      )
    },
    (client, { id, ...payload }) => client.subscribers.addSubscriber({ params: { id }, payload }),
    ({ channels, name, secret }) =>
      [
        `${name} gets messages from now on (${channels.map(({ kind }) => kind).join(", ")})`,
        ...(secret === undefined ? [] : [`Secret, shown now and never again: ${secret}`])
      ].join("\n")
  ),
  verb(
    "remove",
    "Remove a subscriber from a project",
    {
      ...project,
      subscriberId: Argument.String("subscriber").pipe(
        Argument.withDescription("Id of the subscriber (sbr_…)")
      )
    },
    (client, params) => client.subscribers.removeSubscriber({ params }),
    () => "Removed"
  )
])

export const messageCommands: ReadonlyArray<Command.Command.Any> = [messages, subscribers]
