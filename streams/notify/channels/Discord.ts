import {
  type ChannelAnswer,
  type ChannelRequest,
  type ChatTarget,
  jsonRequest,
  type Notice
} from "./Channel.ts"
import type { ChannelSender, Kind } from "./Kind.ts"
import { addresses, chatConfirmation, type ChatLink, type ChatMessage, chatMessageOf } from "./NoticeText.ts"

/** Webhooks of Discord's channels. Source: Discord's "Execute Webhook", "Rate Limits" and its Markdown. */

/** UTF-16 units of a message's content. */
const contentUnitsMax = 2_000

/** No card is made of a link: crawlers would open the pages. */
const suppressEmbeds = 4

const zeroWidth = "\u200B"

/** Marks that mean something anywhere in a line, names of emojis, and those that begin a heading, quote, list or small print. */
const escapedPart = (text: string): string =>
  text
    .replace(/[\\*_~|`<[\]]/gu, "\\$&")
    .replace(/:(?=[\w~+-]+:)/gu, "\\:")
    .replace(/@(?=everyone|here)/giu, `@${zeroWidth}`)

const escapedLines = (text: string): string =>
  text.replace(/^([ \t]*)([#>+-])/gmu, "$1\\$2").replace(/^([ \t]*\d+)([.)])/gmu, "$1\\$2")

/**
 * Addresses are in angle brackets, which Discord does not show: it takes no escapes within them, and would take those behind one for a
 * part of it.
 */
const escaped = (text: string): string => {
  let [done, last] = ["", 0]
  for (const { 0: address, index } of text.matchAll(addresses)) {
    done += escapedPart(text.slice(last, index)) + `<${address.replace(/@(?=everyone|here)/giu, "%40")}>`
    last = index + address.length
  }
  return escapedLines(done + escapedPart(text.slice(last)))
}

/** Parentheses would end the address. */
const linked = ({ label, url }: ChatLink): string =>
  `[${escapedPart(label)}](<${url.replaceAll("(", "%28").replaceAll(")", "%29")}>)`

const contentOf = ({ heading, links, text }: ChatMessage): string =>
  [
    `**${escaped(heading)}**`,
    escaped(text),
    ...(links.length === 0 ? [] : [links.map(linked).join(" · ")])
  ].join("\n")

const bodyOf = (message: ChatMessage): Buffer =>
  Buffer.from(
    JSON.stringify({
      content: contentOf(message),
      allowed_mentions: { parse: [] },
      flags: suppressEmbeds
    })
  )

/** `wait`: otherwise a message that is not saved is answered 2xx. */
const posted = ({ url }: ChatTarget, message: ChatMessage): ChannelRequest => {
  const address = new URL(url)
  address.searchParams.set("wait", "true")
  return jsonRequest(address.href, bodyOf(message))
}

const discordRequest = (
  target: ChatTarget,
  notice: Notice,
  { adjustments = {} }: Pick<ChannelSender, "adjustments">
): ChannelRequest =>
  posted(
    target,
    chatMessageOf(notice, {
      isSmaller: adjustments.isSmaller,
      textOf: contentOf,
      textUnitsMax: contentUnitsMax,
      bodyOf
    })
  )

/** `{"message": "Unknown Webhook", "code": 10015}`: the number alone, since the words may be anybody's. */
const reasonOf = (body: string): string | undefined => {
  const [, code] = /"code"\s*:\s*([1-9]\d{0,6})\b/u.exec(body) ?? []
  return code === undefined ? undefined : `code ${code}`
}

/** Seconds with decimals, or undefined. */
const secondsOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,9}(?:\.\d{1,9})?$/u.test(text) ? Number(text) : undefined

/**
 * `retry_after` of a 429, which is more exact than `Retry-After`; and after any answer that leaves no request in a window,
 * the rest of that.
 */
const pauseOf = ({ body, header, status }: ChannelAnswer): number | undefined => {
  const told =
    status === 429 && body !== undefined && body.length <= 4_096 ? Buffer.from(body).toString("latin1") : ""
  const [, asked] = /"retry_after"\s*:\s*(\d+(?:\.\d+)?)/u.exec(told) ?? []
  const seconds =
    secondsOf(asked) ??
    (header("x-ratelimit-remaining") === "0" ? secondsOf(header("x-ratelimit-reset-after")) : undefined)
  return seconds === undefined ? undefined : seconds * 1_000
}

export const discord: Kind<ChatTarget> = {
  service: "Discord",
  gone: [404],
  reasonOf,
  pauseOf,
  hostOf: ({ url }) => new URL(url).host,
  gate: "webhook",
  request: discordRequest,
  confirmation: (target, { url }) => posted(target, chatConfirmation(url))
}
