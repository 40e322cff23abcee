import { Predicate } from "effect"
import type {
  Adjustments,
  ChannelAnswer,
  ChannelRequest,
  Notice,
  TelegramTarget,
  Verdict
} from "./Channel.ts"
import { jsonRequest } from "./Channel.ts"
import type { ChannelSender, Kind } from "./Kind.ts"
import { type ChatLink, type ChatMessage, chatMessageOf } from "./NoticeText.ts"
import { pauseMillisMax } from "./RetryAfter.ts"

/**
 * Chats of Telegram, by a bot. Text goes out with `entities`, never in a parse mode, so that nothing in it is markup. Source:
 * core.telegram.org/bots/api#sendmessage and /bots/faq.
 */

/** UTF-16 units of a message's text, as people see it. */
const textUnitsMax = 4_096

/** Messages to one chat, which Telegram wants no closer than this. */
const paceMillis = 1_000

/** Telegram refuses a button whose host has no dot, such as localhost. */
const isButton = ({ url }: ChatLink): boolean => new URL(url).hostname.includes(".")

/** `@name` would call that person, or that bot, in a group. Mail addresses and parts of addresses on the web are none. */
const mention = /(?<![\w./@-])@(?=[a-z]\w{3})/giu

/** A press on `/stop` would send it to the bot, one on `/name@bot` to that bot. Other words behind a slash are mostly paths. */
const command = /(?<![\w/])\/(?=(?:start|stop|settings|help)(?![\w/])|\w{1,64}@[a-z])/giu

const uncalled = (text: string): string => text.replace(mention, "@\u200B").replace(command, "/\u200B")

interface SentMessage {
  readonly text: string
  readonly entities?: ReadonlyArray<{
    readonly type: "bold"
    readonly offset: number
    readonly length: number
  }>
  readonly reply_markup?: {
    readonly inline_keyboard: ReadonlyArray<ReadonlyArray<{ readonly text: string; readonly url: string }>>
  }
}

/** @param isPlain without marks and buttons, all links in the text */
const written = (message: ChatMessage, isPlain: boolean): SentMessage => {
  const { links } = message
  const [heading, text] = [uncalled(message.heading), uncalled(message.text)]
  const buttons = isPlain ? [] : links.filter(isButton)
  const lines = links.filter((link) => !buttons.includes(link)).map(({ url }) => `\n${url}`)
  return {
    text: `${heading}\n${text}${lines.length === 0 ? "" : `\n${lines.join("")}`}`,
    ...(!isPlain && { entities: [{ type: "bold", offset: 0, length: heading.length }] }),
    ...(buttons.length > 0 && {
      reply_markup: { inline_keyboard: buttons.map(({ label, url }) => [{ text: label, url }]) }
    })
  }
}

const bodyOf = (
  { chatId }: TelegramTarget,
  { isPlain = false }: Adjustments,
  message: ChatMessage,
  isSilent: boolean
): Buffer =>
  Buffer.from(
    JSON.stringify({
      chat_id: chatId,
      ...written(message, isPlain),
      // No cards of links: crawlers would open the pages.
      link_preview_options: { is_disabled: true },
      ...(isSilent && { disable_notification: true })
    })
  )

/** The body of `sendMessage`. Its address has the bot's token, and is its carrier's. */
const telegramRequest = (
  target: TelegramTarget,
  notice: Notice,
  { adjustments = {} }: Pick<ChannelSender, "adjustments">
): ChannelRequest => {
  const isSilent = notice.priority === "low"
  const message = chatMessageOf(notice, {
    isSmaller: adjustments.isSmaller,
    textOf: (one) => written(one, adjustments.isPlain === true).text,
    textUnitsMax,
    bodyOf: (one) => bodyOf(target, adjustments, one, isSilent)
  })
  return jsonRequest("sendMessage", bodyOf(target, adjustments, message, isSilent))
}

/** Words of Telegram's for a refusal. Others may have an address in them that a sender wrote. */
const reasons = [
  "bot was blocked by the user",
  "user is deactivated",
  "bot can't initiate conversation with a user",
  "bot was kicked",
  "bot is not a member",
  "group chat was deleted",
  "group chat was deactivated",
  "group chat was upgraded to a supergroup chat",
  "chat not found",
  "user not found",
  "not enough rights",
  "message is too long",
  "message text is empty",
  "can't parse entities",
  "inline keyboard button"
] as const

/** The chat is no more: beside all that is 403. */
const gone: ReadonlySet<string> = new Set(["chat not found", "user not found", "group chat was deactivated"])

const markup = /entit|keyboard|button|markup/iu

interface Told {
  readonly description: string
  readonly retryAfterSeconds: number | undefined
  readonly migratedTo: number | undefined
}

const numberIn = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : undefined

const told = ({ body }: ChannelAnswer): Told => {
  const { description, parameters } = objectIn(body)
  const { migrate_to_chat_id: to, retry_after: seconds } = Predicate.isReadonlyObject(parameters)
    ? parameters
    : {}
  return {
    description: typeof description === "string" ? description : "",
    retryAfterSeconds: numberIn(seconds),
    migratedTo: numberIn(to)
  }
}

const objectIn = (body: Uint8Array | undefined): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(Buffer.from(body ?? new Uint8Array()).toString())
    return Predicate.isReadonlyObject(value) ? value : {}
  } catch {
    // A proxy on the way may answer in words of its own.
    return {}
  }
}

/** Answers that mean something of their own; undefined: as the status says. Source: core.telegram.org/bots/api#responseparameters. */
const verdictOf = (answer: ChannelAnswer, { isPlain = false }: Adjustments): Verdict | undefined => {
  const { status } = answer
  const { description, migratedTo, retryAfterSeconds } = told(answer)
  const reason = reasons.find((one) => description.includes(one))
  const error = `Telegram answered ${status}${reason === undefined ? "" : ` (${reason})`}`
  if (status === 401 || status === 404)
    return { _tag: "Again", error: `Telegram refuses the bot's token (${status})`, isOwnFault: true }
  if (status === 429 && retryAfterSeconds !== undefined && retryAfterSeconds > 0)
    return { _tag: "Again", error, afterMillis: Math.min(retryAfterSeconds * 1_000, pauseMillisMax) }
  if (status === 403) return { _tag: "Gone", error }
  if (status !== 400) return undefined
  if (migratedTo !== undefined) return { _tag: "Moved", error, chatId: migratedTo }
  if (reason !== undefined && gone.has(reason)) return { _tag: "Gone", error }
  return markup.test(description) && !isPlain ? { _tag: "Plain", error } : { _tag: "Dead", error }
}

/** People and groups of Telegram, by this server's bot. */
export const telegram: Kind<TelegramTarget> = {
  service: "Telegram",
  gone: [],
  verdictOf,
  pauseOf: ({ status }) => (status >= 200 && status < 300 ? paceMillis : undefined),
  hostOf: () => "telegram.org",
  gate: "telegram",
  request: telegramRequest,
  confirmation: undefined
}
