import MarkdownIt from "markdown-it"

/** A chat message as a reader of the service sees it. */
export interface ReadMessage {
  /** without marks, and without zero-width spaces */
  readonly shown: string
  /** those of people, channels and everybody, instants, emojis of a server's own */
  readonly mentions: ReadonlyArray<string>
  /** those whose label is not their address */
  readonly links: ReadonlyArray<readonly [label: string, url: string]>
  /** addresses that the service makes links of by itself */
  readonly bare: ReadonlyArray<string>
  /** such as "bold: backup"; a heading, a list and the like by their name */
  readonly styles: ReadonlyArray<string>
}

const withoutZeroWidth = (text: string): string => text.replaceAll("\u200B", "")

/** Stands for a character that has no meaning, in a text that is searched for those that have one. */
const inert = "\uE000"

interface Scanned {
  /** the shown characters, those without a meaning as `inert` */
  active: string
  shown: string
  readonly mentions: Array<string>
  readonly links: Array<readonly [string, string]>
  readonly bare: Array<string>
}

/** Discord's inline rules by which the characters behind them lose their own meaning, in the order of its client. */
const discordRules: ReadonlyArray<readonly [RegExp, (match: RegExpExecArray, to: Scanned) => void]> = [
  [/\\([^0-9A-Za-z\s])/uy, ([, mark = ""], to) => void ((to.active += inert), (to.shown += mark))],
  [
    /<(?:@[!&]?\d+|#\d+|a?:\w+:\d+|t:-?\d+(?::\w)?|\/[^:>]+:\d+|id:\w+)>/uy,
    ([all], to) => void to.mentions.push(all)
  ],
  [/@(?:everyone|here)/uy, ([all], to) => void to.mentions.push(all)],
  [
    /\[((?:[^\]\\]|\\.)*)\]\(\s*<?((?:\([^)]*\)|[^\s\\]|\\.)*?)>?(?:\s+['"][^]*?['"])?\s*\)/uy,
    ([, label = "", url = ""], to) => {
      const text = label.replace(/\\(.)/gu, "$1")
      to.links.push([text, url])
      to.active += inert.repeat(text.length)
      to.shown += text
    }
  ],
  ...[/<([^: >]+:\/[^ >]+)>/uy, /(https?:\/\/[^\s<]+[^<.,:;"'\]\s])/uy].map(
    (rule) =>
      [
        rule,
        ([, url = ""], to) => {
          to.bare.push(url)
          to.active += inert.repeat(url.length)
          to.shown += url
        }
      ] satisfies (typeof discordRules)[number]
  )
]

const discordStyles: ReadonlyArray<readonly [string, RegExp]> = [
  ["code", /`+[^]+?`+/u],
  ["bold", /\*\*[^]+?\*\*/u],
  ["underlined", /__[^]+?__/u],
  ["italic", /(?<!\*)\*[^\s*][^]*?\*|\b_[^]+?_\b|(?:^|\s)_[^]+?_/u],
  ["struck", /~~[^]+?~~/u],
  ["hidden", /\|\|[^]+?\|\|/u],
  ["emoji", /:[\w+~-]+:/u],
  ["heading", /^[ \t]*#{1,3}\s/mu],
  ["small", /^[ \t]*-#\s/mu],
  ["quote", /^[ \t]*>(?:>>)?\s/mu],
  ["list", /^[ \t]*(?:[-*+]|\d+[.)])\s/mu]
]

/** Discord's Markdown, as its client reads the `content` of a message. */
export const readDiscord = (content: string): ReadMessage => {
  const to: Scanned = { active: "", shown: "", mentions: [], links: [], bare: [] }
  for (let at = 0; at < content.length;) {
    const found = discordRules.find(([rule]) => {
      rule.lastIndex = at
      return rule.test(content)
    })
    if (found === undefined) {
      to.active += content[at]
      to.shown += content[at]
      at++
      continue
    }
    const [rule, read] = found
    rule.lastIndex = at
    const match = rule.exec(content)
    if (match === null) throw new Error("a rule matched and does not")
    read(match, to)
    at += match[0].length
  }
  // The heading is bold by marks of this server's: all the rest has to be without any.
  const [, heading = ""] = /^\*\*([^\n]*)\*\*(?:\n|$)/u.exec(to.active) ?? []
  const rest = to.active.replace(
    /^\*\*([^\n]*)\*\*/u,
    (_, inner: string) => inert.repeat(2) + inner + inert.repeat(2)
  )
  const shown = to.shown.replace(/^\*\*([^\n]*)\*\*/u, "$1")
  return {
    shown: withoutZeroWidth(shown),
    mentions: to.mentions,
    links: to.links,
    bare: to.bare,
    styles: [
      ...(heading === "" ? [] : [`bold: ${withoutZeroWidth(shown.slice(0, heading.length))}`]),
      ...discordStyles.flatMap(([name, style]) => (style.test(rest) ? [name] : []))
    ]
  }
}

const entities: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">" }

const decoded = (text: string): string => text.replace(/&(?:amp|lt|gt);/gu, (one) => entities[one] ?? one)

/** Slack's `text` where its marks are off: what is in angle brackets is a link or a mention, three entities are characters. */
export const readMrkdwn = (text: string): ReadMessage => {
  const [mentions, links, bare]: [Array<string>, Array<readonly [string, string]>, Array<string>] = [
    [],
    [],
    []
  ]
  const shown = text.replace(/<([^<>]*)>/gu, (_, inner: string) => {
    if (/^[!@#]/u.test(inner)) return (mentions.push(inner), "")
    const [url = "", label = url] = inner.split("|")
    if (url === label) bare.push(decoded(url))
    else links.push([decoded(label), decoded(url)])
    return label
  })
  return { shown: decoded(shown), mentions, links, bare, styles: [] }
}

interface RichText {
  readonly type: string
  readonly text?: string
  readonly url?: string
  readonly style?: Readonly<Record<string, boolean>>
  readonly elements?: ReadonlyArray<RichText>
}

/** Slack's rich text: its elements have no markup. */
export const readBlocks = (blocks: ReadonlyArray<RichText>): ReadMessage => {
  const read = {
    shown: "",
    mentions: [] as Array<string>,
    links: [] as Array<readonly [string, string]>,
    styles: [] as Array<string>
  }
  const visit = ({ elements, style, text, type, url }: RichText): void => {
    if (elements !== undefined) return elements.forEach(visit)
    if (text === undefined || text === "") throw new Error(`an element without text: ${type}`)
    if (type === "link") read.links.push([text, url ?? ""])
    else if (type !== "text") read.mentions.push(type)
    for (const name of Object.keys(style ?? {})) read.styles.push(`${name}: ${text}`)
    read.shown += text
  }
  blocks.forEach(visit)
  return { ...read, bare: [] }
}

const markdown = new MarkdownIt({ html: true, breaks: true, linkify: true })

const markdownStyles: Readonly<Record<string, string>> = { strong: "bold", em: "italic", s: "struck" }

/** Markdown, as services like Mattermost read the `text` of Slack's webhooks. */
export const readMarkdown = (text: string): ReadMessage => {
  const read = {
    shown: "",
    links: [] as Array<readonly [string, string]>,
    bare: [] as Array<string>,
    styles: [] as Array<string>
  }
  const open: Array<{ readonly name: string; readonly at: number; readonly url: string }> = []
  for (const block of markdown.parse(text, {})) {
    if (block.type === "paragraph_open" || block.type === "paragraph_close") continue
    if (block.type !== "inline") {
      read.styles.push(block.tag)
      continue
    }
    if (read.shown !== "") read.shown += "\n\n"
    for (const token of block.children ?? []) {
      const { content, info, markup, nesting, tag, type } = token
      if (nesting === 1)
        open.push({ name: tag, at: read.shown.length, url: String(token.attrGet("href") ?? "") })
      else if (nesting === -1) {
        const { at = 0, name = "", url = "" } = open.pop() ?? {}
        const inner = withoutZeroWidth(read.shown.slice(at))
        if (name !== "a") read.styles.push(`${markdownStyles[name] ?? name}: ${inner}`)
        else if (info === "auto" && markup === "linkify") read.bare.push(inner)
        else read.links.push([inner, url])
      } else if (type === "text" || type === "text_special") read.shown += content
      else if (type === "softbreak" || type === "hardbreak") read.shown += "\n"
      else read.styles.push(type)
    }
  }
  return { ...read, shown: withoutZeroWidth(read.shown), mentions: [] }
}

/** Rules of Mattermost and Rocket.Chat that are not Markdown's: each has to find nothing in a text. */
export const ownRules: ReadonlyArray<readonly [string, RegExp]> = [
  ["Slack's link or mention", /<(?:[!@#]|[^\s<>|]+\|)/u],
  ["mention", /(?<![A-Za-z0-9])@[\p{L}\p{N}._-]/u],
  ["channel or tag", /(?:^|[^\p{L}\p{N}])[~#]\p{L}/mu],
  ["bold", /\*[^\n*]+\*/u],
  ["italic", /(?<![A-Za-z0-9_])_[^\n_]+_(?![A-Za-z0-9])/u],
  ["struck", /~[^\n~]+~/u],
  ["code", /`/u],
  ["link", /\]\s?\(/u],
  ["hidden", /\|\|/u],
  ["heading, quote, list", /^[ \t]*(?:#{1,6}\s|>|(?:[-*+]|\d+[.)])\s)/mu],
  ["formula", /\$\$|\\[([]/u],
  ["emoji", /:[\w+.-]+:/u]
]

/** Telegram's `sendMessage`. */
export interface SentToTelegram {
  readonly chat_id: number
  readonly text: string
  readonly entities?: ReadonlyArray<{
    readonly type: string
    readonly offset: number
    readonly length: number
  }>
  readonly reply_markup?: {
    readonly inline_keyboard: ReadonlyArray<ReadonlyArray<{ readonly text: string; readonly url: string }>>
  }
  readonly disable_notification?: boolean
}

/** Telegram finds these in a text by itself: names of people and bots, and commands that the bot, or another one, would get. */
const telegramCalls: ReadonlyArray<RegExp> = [
  /(?<![\w./@-])@[a-z]\w{3,31}/giu,
  /(?<![\w/])\/(?:start|stop|settings|help)(?![\w/])/giu,
  /(?<![\w/])\/\w{1,64}@\w+/giu
]

/** A message of a bot: text, marks beside it, and buttons. */
export const readTelegram = ({ entities = [], reply_markup: markup, text }: SentToTelegram): ReadMessage => {
  const buttons = (markup?.inline_keyboard ?? []).flat()
  return {
    shown: withoutZeroWidth([text, ...buttons.map((button) => button.text)].join("\n")),
    mentions: telegramCalls.flatMap((call) => text.match(call) ?? []),
    links: buttons.map((button) => [button.text, button.url] as const),
    bare: text.match(/https?:\/\/[^\s<>"]*[^\s<>".,:;!?')\]]/giu) ?? [],
    styles: entities.map(
      ({ length, offset, type }) => `${type}: ${withoutZeroWidth(text.slice(offset, offset + length))}`
    )
  }
}
