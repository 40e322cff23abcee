import { assert } from "@effect/vitest"

/** An element as it came out. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
}

/** HTML that was read by the strictest rules: there is one way to read it, for every browser. */
export interface Parsed {
  readonly elements: ReadonlyArray<Element>
  /** characters of all elements, those of `small` left out */
  readonly text: string
  /** elements within each other */
  readonly depth: number
}

const empty = new Set(["br", "hr"])

const token = /<\/([a-z][a-z0-9]*)>|<([a-z][a-z0-9]*)((?: [a-z][a-z-]*(?:="[^"<>]*")?)*)>|([^<>]+)/y
const attribute = /([a-z][a-z-]*)(?:="([^"<>]*)")?/g
const reference = /&(?:(amp|lt|gt|quot)|#(\d+));/g
const names: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' }

const decoded = (text: string): string => {
  const rest = text.replace(reference, "")
  if (rest.includes("&")) assert.fail(`an ampersand that is no reference: ${text.slice(0, 200)}`)
  return text.replace(reference, (_, name: string | undefined, code: string) =>
    name === undefined ? String.fromCodePoint(Number(code)) : (names[name] ?? "")
  )
}

/** Fails for all that is not well-formed. */
export const parseStrictly = (html: string): Parsed => {
  const elements: Array<Element> = []
  const open: Array<string> = []
  const texts: Array<string> = []
  let depth = 0
  token.lastIndex = 0
  while (token.lastIndex < html.length) {
    const at = token.lastIndex
    const match = token.exec(html)
    if (match === null) return assert.fail(`no markup at ${at}: ${html.slice(at, at + 200)}`)
    const [, closed, opened, attributes = "", text] = match
    if (closed !== undefined) assert.strictEqual(open.pop(), closed, `at ${at}`)
    if (opened !== undefined) {
      elements.push({ name: opened, attributes: attributesOf(attributes) })
      if (!empty.has(opened)) depth = Math.max(depth, open.push(opened))
    }
    if (text !== undefined && open.at(-1) !== "small") texts.push(decoded(text))
  }
  assert.deepStrictEqual(open, [])
  return { elements, text: texts.join(""), depth }
}

const attributesOf = (source: string): Readonly<Record<string, string>> => {
  const found = Array.from(source.matchAll(attribute), ([, name = "", value = ""]) => [name, decoded(value)])
  const attributes = Object.fromEntries(found) as Record<string, string>
  assert.strictEqual(Object.keys(attributes).length, found.length, `an attribute twice: ${source}`)
  return attributes
}

const faces = "bold|dim|italic|under|strike|inverse|f1[0-5]|f\\d|b1[0-5]|b\\d"

/** Elements, with the attributes that each has and what these may be. Nothing else may come out of any body. */
const allowed: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  a: { href: /^(?:https?:\/\/|mailto:)[!-\u{10ffff}]+$/iu, rel: /^noopener noreferrer nofollow$/ },
  blockquote: {},
  br: {},
  code: {},
  details: { open: /^$/ },
  div: {
    class: /^(?:json|in|markdown|wide)$/,
    dir: /^auto$/,
    tabindex: /^0$/,
    role: /^group$/,
    "aria-label": /^Table$/
  },
  em: {},
  h2: {},
  h3: {},
  h4: {},
  h5: {},
  h6: {},
  hr: {},
  li: {},
  ol: { start: /^\d{1,9}$/ },
  p: {},
  pre: { class: /^(?:text|log)$/, dir: /^auto$/ },
  s: {},
  small: {},
  span: {
    class: new RegExp(
      `^(?:part|key|string|value|null|time|low|info|warn|error|(?:${faces})(?: (?:${faces}))*)$`
    )
  },
  strong: {},
  summary: {},
  table: {},
  tbody: {},
  td: { class: /^(?:left|center|right)$/ },
  th: { class: /^(?:left|center|right)$/ },
  thead: {},
  tr: {},
  ul: {}
}

/** Browsers put deeper elements elsewhere. */
const depthMax = 400

/** Reads the HTML of a body, and fails where it has anything that is not allowed. */
export const checkSafe = (html: string): Parsed => {
  const parsed = parseStrictly(html)
  for (const { attributes, name } of parsed.elements) {
    const known = allowed[name]
    if (known === undefined) return assert.fail(`an element <${name}>`)
    for (const [attribute, value] of Object.entries(attributes)) {
      if (known[attribute]?.test(value) !== true)
        assert.fail(`<${name} ${attribute}="${value.slice(0, 200)}">`)
    }
    if (name === "a") {
      assert.deepStrictEqual(Object.keys(attributes), ["href", "rel"])
      assert.isAtMost(attributes["href"]?.length ?? 0, 2_048)
    }
  }
  assert.isAtMost(parsed.depth, depthMax)
  // oxlint-disable-next-line no-control-regex
  assert.notMatch(html, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e]/)
  assert.isTrue(html.isWellFormed())
  return parsed
}
