import { Predicate } from "effect"
import { cleanText } from "../bodies/CleanText.ts"

/** A chat in which the bot was written to. */
export interface UpdateChat {
  /** at most 52 bits, negative of groups */
  readonly id: number
  readonly isGroup: boolean
  /** the title of a group, the first name of a person: one line of at most 100 characters, which may be "" */
  readonly title: string
}

/** An update of the Bot API, as a bot that notifies understands it. Source: core.telegram.org/bots/api#update. */
export type UpdateEvent =
  | {
      readonly _tag: "Command"
      readonly chat: UpdateChat
      /** in lower case, without the slash; "" where the text begins with none */
      readonly name: string
      /** the username behind `@`, in lower case */
      readonly addressee: string | undefined
      /** the rest of the text, trimmed */
      readonly argument: string
    }
  | { readonly _tag: "Migrated"; readonly from: number; readonly to: number }
  /** The bot was let in, or put out: blocked by a person, or removed from a group. */
  | { readonly _tag: "Member"; readonly chat: UpdateChat; readonly isIn: boolean }
  | { readonly _tag: "Other" }

export interface Update {
  readonly id: number
  readonly event: UpdateEvent
}

const other: UpdateEvent = { _tag: "Other" }
const titleMax = 100
const argumentMax = 200

const idOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : undefined

/** One line without what no row can hold or what turns the order of text. */
const titleOf = (value: unknown): string =>
  typeof value === "string"
    ? cleanText(value.toWellFormed()).replace(/\s+/gu, " ").trim().slice(0, titleMax).toWellFormed()
    : ""

const chatOf = (value: unknown): UpdateChat | undefined => {
  if (!Predicate.isReadonlyObject(value)) return undefined
  const { first_name: name, id, title, type } = value
  const chatId = idOf(id)
  if (chatId === undefined || (type !== "private" && type !== "group" && type !== "supergroup"))
    return undefined
  return { id: chatId, isGroup: type !== "private", title: titleOf(title ?? name) }
}

const command = /^\/(\w{1,32})(?:@(\w{1,64}))?(?:\s+([^]*))?$/u

const messageEvent = (message: Readonly<Record<string, unknown>>): UpdateEvent => {
  const chat = chatOf(message["chat"])
  if (chat === undefined) return other
  const [to, from] = [idOf(message["migrate_to_chat_id"]), idOf(message["migrate_from_chat_id"])]
  if (to !== undefined) return { _tag: "Migrated", from: chat.id, to }
  if (from !== undefined) return { _tag: "Migrated", from, to: chat.id }
  const { from: author, text } = message
  const isBot = Predicate.isReadonlyObject(author) && author["is_bot"] === true
  if (typeof text !== "string" || isBot) return other
  const [, name = "", addressee, argument = ""] = command.exec(text) ?? []
  return {
    _tag: "Command",
    chat,
    name: name.toLowerCase(),
    addressee: addressee?.toLowerCase(),
    argument: argument.slice(0, argumentMax).trim()
  }
}

const memberEvent = (change: Readonly<Record<string, unknown>>): UpdateEvent => {
  const chat = chatOf(change["chat"])
  const member = change["new_chat_member"]
  const { is_member: isMember, status } = Predicate.isReadonlyObject(member) ? member : {}
  if (chat === undefined || typeof status !== "string") return other
  const isIn =
    ["member", "administrator", "creator"].includes(status) || (status === "restricted" && isMember === true)
  return { _tag: "Member", chat, isIn }
}

const eventOf = ({ message, my_chat_member: member }: Readonly<Record<string, unknown>>): UpdateEvent => {
  if (Predicate.isReadonlyObject(message)) return messageEvent(message)
  return Predicate.isReadonlyObject(member) ? memberEvent(member) : other
}

/** Those of an answer to `getUpdates`; undefined: it is none. What is not understood is `Other`, so that it is passed over. */
export const updatesOf = (json: unknown): ReadonlyArray<Update> | undefined => {
  const result = Predicate.isReadonlyObject(json) && json["ok"] === true ? json["result"] : undefined
  if (!Array.isArray(result)) return undefined
  return result.flatMap((update: unknown) => {
    const id = Predicate.isReadonlyObject(update) ? idOf(update["update_id"]) : undefined
    return id === undefined || !Predicate.isReadonlyObject(update) ? [] : [{ id, event: eventOf(update) }]
  })
}
