import { cleanText } from "../bodies/CleanText.ts"
import type { DigestItem, Notice } from "../channels/Channel.ts"
import { cutForJson } from "../channels/JsonFit.ts"
import { addresses, headingOf, textOf } from "../channels/NoticeText.ts"

/** Messages that a digest tells itself; its page has the others. */
export const toldItems = 5

/** Bytes of a message's text, and of its heading, in a digest. */
const itemBytesMax = 300
const headingBytesMax = 120

/** On one line: the next one is another message's. Chats make links of addresses, and half of one leads elsewhere. */
const oneLine = (text: string, bytesMax: number): string =>
  cutForJson(cleanText(text).replace(/\s+/gu, " ").trim(), bytesMax, addresses)

const lineOf = (item: DigestItem): string =>
  `${oneLine(item.project.name, headingBytesMax)} · ${oneLine(headingOf(item), headingBytesMax)}: ${oneLine(textOf(item), itemBytesMax)}`

/** A digest as channels are told of it: `7 messages`, a line for each of the first ones, and its page. */
export const digestNotice = (digest: {
  /** `dig_…` */
  readonly id: string
  readonly pageUrl: string
  /** how many messages it has; at least two */
  readonly count: number
  /** the first ones, in their order */
  readonly items: ReadonlyArray<DigestItem>
  readonly createdAtMillis: number
}): Omit<Notice, "deliveryId" | "expiresAtMillis" | "settingsUrl"> => {
  const { count, createdAtMillis, id, pageUrl } = digest
  const items = digest.items.slice(0, toldItems)
  const rest = count - items.length
  return {
    messageId: id,
    project: { slug: "", name: "" },
    app: "Digest",
    title: `${count} messages`,
    message: [...items.map(lineOf), ...(rest > 0 ? [`and ${rest} more`] : [])].join("\n"),
    pageUrl,
    hasView: true,
    priority: items.every(({ priority }) => priority === "low") ? "low" : "normal",
    hasPaperclip: false,
    digest: { count, items },
    createdAtMillis
  }
}
