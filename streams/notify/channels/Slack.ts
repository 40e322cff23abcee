import {
  type ChannelAnswer,
  type ChannelRequest,
  type ChatTarget,
  jsonRequest,
  type Notice
} from "./Channel.ts"
import type { ChannelSender, Kind } from "./Kind.ts"
import { addresses, chatConfirmation, type ChatLink, type ChatMessage, chatMessageOf } from "./NoticeText.ts"

/**
 * Webhooks of Slack, and of services that take the same JSON. Slack shows `blocks`, whose text has no markup; the others know `text`
 * alone, and have Markdown of their own in it. Source: Slack's "Incoming webhooks", "Formatting text" and "Rate limits";
 * Mattermost's "Incoming webhooks"; the grammar of Rocket.Chat's messages.
 */

/** UTF-16 units of a message's `text`. */
const textUnitsMax = 3_000

/** Slack asks for one message a second at most. */
const paceMillis = 1_000

const isSlack = ({ url }: ChatTarget): boolean => /^hooks\.slack(?:-gov)?\.com$/u.test(new URL(url).hostname)

const zeroWidth = "\u200B"

/** Slack's own: all that it finds in a text is in angle brackets, or is a mark that `mrkdwn: false` turns off. */
const slackEscaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const slackLinked = ({ label, url }: ChatLink): string =>
  `<${slackEscaped(url).replaceAll("|", "%7C")}|${slackEscaped(label)}>`

/** Marks that no other character keeps from their effect in every service: Rocket.Chat knows no escapes. */
const lookAlikes: Readonly<Record<string, string>> = { "*": "∗", "`": "ˋ", "~": "∼", _: "ˍ" }

/** Underscores within a word of ASCII, which mean nothing in any service, and are in many names. */
const harmless = /_(?<=(?:^|[\s(])(?:[A-Za-z0-9]+_){1,20})(?=[A-Za-z0-9])/gmu

/**
 * For Markdown of several kinds: a zero-width space takes the meaning of marks that have it together with what is beside them,
 * look-alikes take the place of the others.
 */
const plainPart = (text: string): string =>
  text
    .replace(harmless, "\u0000")
    .replace(/[*`~_]/gu, (mark) => lookAlikes[mark] ?? mark)
    .replaceAll("\u0000", "_")
    .replace(/(?:(?<![A-Za-z0-9])@|[<#$&!|\]\\])(?!\s)|:(?=[\w+.-]+:)/gu, `$&${zeroWidth}`)

/** Links of Slack's, and the beginning of a heading, quote, list, table, rule, or code by its indentation. */
const plainLines = (text: string): string =>
  text
    .replace(/(<[^\n<|>]+)\|/gu, "$1∣")
    .replace(/^(?=[ \t]*(?:[#>|:=+-]|\d+[.)]))/gmu, zeroWidth)
    .replace(/^[ \t]+/gmu, (space) => space.replaceAll("\t", "    ").replaceAll(" ", "\u00A0"))

const plainOf = (text: string): string => {
  let [done, last] = ["", 0]
  for (const { 0: address, index } of text.matchAll(addresses)) {
    done += plainPart(text.slice(last, index)) + address.replace(/@(?=channel|here|all|everyone)/giu, "%40")
    last = index + address.length
  }
  return plainLines(done + plainPart(text.slice(last)))
}

/** Marks behind an address would be a part of it. */
const plainHeading = (heading: string): string =>
  heading.includes("://") ? plainOf(heading) : `**${plainOf(heading)}**`

const markdownLinked = ({ label, url }: ChatLink): string =>
  `[${plainPart(label)}](${url.replaceAll("(", "%28").replaceAll(")", "%29")})`

const textOf = (target: ChatTarget, { heading, links, text }: ChatMessage): string => {
  const [escaped, titled, linked] = isSlack(target)
    ? ([slackEscaped, slackEscaped(heading), slackLinked] as const)
    : ([plainOf, plainHeading(heading), markdownLinked] as const)
  return [titled, escaped(text), ...(links.length === 0 ? [] : [links.map(linked).join(" · ")])].join("\n")
}

/** Slack's rich text: its elements are shown as they are. */
const blocksOf = ({ heading, links, text }: ChatMessage) => [
  {
    type: "rich_text",
    elements: [
      {
        type: "rich_text_section",
        elements: [
          { type: "text", text: heading, style: { bold: true } },
          { type: "text", text: `\n${text}` },
          ...links.flatMap(({ label, url }, n) => [
            { type: "text", text: n === 0 ? "\n" : " · " },
            { type: "link", url, text: label }
          ])
        ]
      }
    ]
  }
]

const bodyOf = (target: ChatTarget, message: ChatMessage): Buffer =>
  Buffer.from(
    JSON.stringify({
      text: textOf(target, message),
      mrkdwn: false,
      blocks: blocksOf(message),
      // No cards of links: crawlers would open the pages.
      unfurl_links: false,
      unfurl_media: false
    })
  )

const posted = (target: ChatTarget, message: ChatMessage): ChannelRequest =>
  jsonRequest(target.url, bodyOf(target, message))

const slackRequest = (
  target: ChatTarget,
  notice: Notice,
  { adjustments = {} }: Pick<ChannelSender, "adjustments">
): ChannelRequest =>
  posted(
    target,
    chatMessageOf(notice, {
      isSmaller: adjustments.isSmaller,
      textOf: (message) => textOf(target, message),
      textUnitsMax,
      bodyOf: (message) => bodyOf(target, message)
    })
  )

/** Slack's words for a refusal, which are the whole of its answer. */
const reasons: ReadonlySet<string> = new Set([
  "action_prohibited",
  "channel_is_archived",
  "channel_not_found",
  "invalid_blocks",
  "invalid_payload",
  "invalid_token",
  "no_active_hooks",
  "no_service",
  "no_service_id",
  "no_team",
  "no_text",
  "posting_to_general_channel_denied",
  "team_disabled",
  "too_many_attachments",
  "user_not_found"
])

const reasonOf = (body: string): string | undefined => {
  const word = body.trim()
  return reasons.has(word) ? word : undefined
}

const pauseOf = ({ status }: ChannelAnswer): number | undefined =>
  status >= 200 && status < 300 ? paceMillis : undefined

/** Slack, and services that take its webhooks. */
export const slack: Kind<ChatTarget> = {
  service: "the chat",
  gone: [404, 410],
  reasonOf,
  pauseOf,
  hostOf: ({ url }) => new URL(url).host,
  gate: "webhook",
  request: slackRequest,
  confirmation: (target, { url }) => posted(target, chatConfirmation(url))
}
