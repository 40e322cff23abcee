import type { Delivery, Message } from "#schemas/notify/Message.ts"
import type { View } from "../view/View.ts"

/** The list of the projects. */
export const notifyView: View = { room: "notify", params: {} }

export const projectView = (id: string): View => ({ ...notifyView, params: { project: id } })

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
export const progressOf = ({ recipients, status }: Pick<Message, "recipients" | "status">): string => {
  if (recipients === 0) return "nobody to get it"
  const people = recipients === 1 ? "1 subscriber" : `${recipients} subscribers`
  return status === "delivering" ? `on its way to ${people}` : people
}
