import { Predicate } from "effect"
import { TelegramRefusal } from "./TelegramRefusal.ts"

/** A marked part of a text: `offset` and `length` in UTF-16 units. Source: core.telegram.org/bots/api#messageentity. */
export interface Entity {
  readonly type: string
  readonly offset: number
  readonly length: number
  readonly url?: string
}

export interface FormattedText {
  readonly text: string
  readonly entities: ReadonlyArray<Entity>
}

/** UTF-16 units of a message, its markup not counted. */
const textMax = 4_096
const entitiesMax = 100

const types = new Set([
  "mention",
  "hashtag",
  "url",
  "email",
  "bold",
  "italic",
  "underline",
  "strikethrough",
  "spoiler",
  "blockquote",
  "code",
  "pre",
  "text_link"
])

const unparsed = (problem: string): TelegramRefusal =>
  new TelegramRefusal(400, `Bad Request: can't parse entities: ${problem}`)

/** The text of a message as people see it: with entities, or in the parse mode HTML. */
export const readText = (text: unknown, parseMode: unknown, entities: unknown): FormattedText => {
  if (typeof text !== "string") throw new TelegramRefusal(400, "Bad Request: message text is empty")
  const read =
    parseMode === undefined || parseMode === ""
      ? { text, entities: readEntities(text, entities) }
      : readMarkup(text, parseMode)
  if (read.text.trim() === "") throw new TelegramRefusal(400, "Bad Request: message text is empty")
  if (read.text.length > textMax) throw new TelegramRefusal(400, "Bad Request: message is too long")
  return read
}

const readMarkup = (text: string, parseMode: unknown): FormattedText => {
  if (String(parseMode).toLowerCase() !== "html")
    throw unparsed(`unsupported parse mode ${String(parseMode)}`)
  return readHtml(text)
}

const readEntities = (text: string, entities: unknown): ReadonlyArray<Entity> => {
  if (entities === undefined) return []
  if (!Array.isArray(entities)) throw unparsed("expected an Array")
  return entities.slice(0, entitiesMax).map((entity: unknown) => {
    const { length, offset, type, url } = Predicate.isReadonlyObject(entity) ? entity : {}
    if (typeof type !== "string" || !types.has(type)) throw unparsed(`unsupported type ${String(type)}`)
    if (!isCount(offset) || !isCount(length)) throw unparsed("offset and length have to be whole numbers")
    const end = offset + length
    if (end > text.length)
      throw unparsed(
        `entity beginning at UTF-16 offset ${offset} ends after the end of the text at UTF-16 offset ${text.length}`
      )
    if (isAmidSymbol(text, offset) || isAmidSymbol(text, end))
      throw unparsed(`entity at UTF-16 offset ${offset} begins or ends in a middle of a symbol`)
    if (type === "text_link" && typeof url !== "string") throw unparsed("text_link needs a URL")
    return { type, offset, length, ...(typeof url === "string" && { url }) }
  })
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isAmidSymbol = (text: string, at: number): boolean =>
  /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at))

const tags: Readonly<Record<string, string>> = {
  b: "bold",
  strong: "bold",
  i: "italic",
  em: "italic",
  u: "underline",
  ins: "underline",
  s: "strikethrough",
  strike: "strikethrough",
  del: "strikethrough",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
  "tg-spoiler": "spoiler",
  a: "text_link"
}

const named: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' }

const characterOf = (name: string): string | undefined => {
  if (!name.startsWith("#")) return named[name]
  const point = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : undefined
}

const token = /<(\/?)([a-z][a-z0-9-]*)((?:\s[^<>]*)?)>|&(#?[0-9a-z]+);|([^<&]+)|([<&])/giu

/** Source: core.telegram.org/bots/api#html-style. */
const readHtml = (source: string): FormattedText => {
  let text = ""
  const open: Array<{ readonly tag: string; readonly offset: number; readonly url: string | undefined }> = []
  const entities: Array<Entity> = []
  for (const {
    1: close,
    2: name,
    3: attributes = "",
    4: reference,
    5: plain,
    6: mark,
    index
  } of source.matchAll(token)) {
    if (plain !== undefined) text += plain
    else if (reference !== undefined) text += characterOf(reference) ?? `&${reference};`
    else if (mark === "&") text += mark
    else if (name === undefined) throw unparsed(`Unclosed start tag at byte offset ${bytesTo(source, index)}`)
    else if (close === "/") {
      const started = open.pop()
      if (started?.tag !== name.toLowerCase())
        throw unparsed(`Unexpected end tag at byte offset ${bytesTo(source, index)}`)
      entities.push(ended(started, text.length))
    } else {
      if (tags[name.toLowerCase()] === undefined)
        throw unparsed(`Unsupported start tag "${name}" at byte offset ${bytesTo(source, index)}`)
      const url = /\shref="([^"]*)"/iu.exec(attributes)?.[1]
      open.push({ tag: name.toLowerCase(), offset: text.length, url })
    }
  }
  const [unclosed] = open.slice(-1)
  if (unclosed !== undefined)
    throw unparsed(`Can't find end tag corresponding to start tag "${unclosed.tag}"`)
  return { text, entities }
}

const ended = (
  { offset, tag, url }: { readonly tag: string; readonly offset: number; readonly url: string | undefined },
  end: number
): Entity => ({
  type: tags[tag] ?? tag,
  offset,
  length: end - offset,
  ...(url !== undefined && { url })
})

const bytesTo = (source: string, index: number): number => Buffer.byteLength(source.slice(0, index))

/** The command at the beginning of what a person writes, as Telegram marks it. */
export const commandsIn = (text: string): ReadonlyArray<Entity> => {
  const [command] = /^\/\w{1,32}(?:@\w{5,32})?(?!\w)/u.exec(text) ?? []
  return command === undefined ? [] : [{ type: "bot_command", offset: 0, length: command.length }]
}
