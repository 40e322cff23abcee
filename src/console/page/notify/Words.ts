import type { Delivery, Message } from "#schemas/notify/Message.ts"
import type { SubscriberList } from "#schemas/notify/Subscriber.ts"
import type { View } from "../view/View.ts"

/** The list of the projects. */
export const notifyView: View = { room: "notify", params: {} }

export const projectView = (id: string): View => ({ ...notifyView, params: { project: id } })

type ProjectDelivery = SubscriberList["subscribers"][number]["delivery"]

const kinds: Readonly<Record<Delivery["kind"], string>> = {
  push: "browser",
  webhook: "webhook",
  telegram: "Telegram",
  slack: "Slack",
  discord: "Discord"
}

export const kindOf = ({ kind }: Pick<Delivery, "kind">): string => kinds[kind]

type Light = "up" | "pulsing" | "degraded" | "down" | ""

const lights: Readonly<Record<Delivery["status"], Light>> = {
  waiting: "pulsing",
  held: "degraded",
  delivered: "up",
  dead: "down",
  dropped: ""
}

export const lightOf = ({ status }: Pick<Delivery, "status">): Light => lights[status]

/** The heading of a message, as its readers see it. */
export const headingOf = ({ app, title }: Pick<Message, "app" | "title">): string => title ?? app

/** Grey where there is nobody to get it. */
export const lightOfMessage = ({ recipients, status }: Pick<Message, "recipients" | "status">): Light =>
  status === "delivering" ? "pulsing" : recipients === 0 ? "" : "up"

/** How far a message is, for its row in the log. */
export const progressOf = ({
  queuedForDigest,
  recipients,
  status
}: Pick<Message, "queuedForDigest" | "recipients" | "status">): string => {
  if (recipients === 0) return "nobody to get it"
  const people = recipients === 1 ? "1 subscriber" : `${recipients} subscribers`
  if (queuedForDigest === 0) return status === "delivering" ? `on its way to ${people}` : people
  const those = queuedForDigest === recipients ? "" : ` for ${queuedForDigest}`
  return status === "delivering" ? `on its way to ${people}, held${those}` : `${people}, was held${those}`
}

/** The choice of a subscriber for the project; of those who have made none its owner does not know their settings. */
export const choiceOf = (delivery: ProjectDelivery): string | undefined => choices[delivery]

const choices: Readonly<Record<ProjectDelivery, string | undefined>> = {
  inherit: undefined,
  instant: "at once",
  hourly: "every hour",
  daily: "once a day",
  muted: "muted"
}
