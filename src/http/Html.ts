import { escapeHtml } from "#schemas/core/EscapeHtml.ts"

/** Text that is HTML already. */
export interface Html {
  readonly html: string
}

type Part = string | number | Html | ReadonlyArray<Html>

const htmlOf = (part: Part): string => {
  if (typeof part === "string" || typeof part === "number") return escapeHtml(String(part))
  return "html" in part ? part.html : part.map(({ html }) => html).join("")
}

/**
 * A template whose values are text, unless they are `Html` themselves. By `+`, which copies nothing: a page nests its templates,
 * and a text of a megabyte would be copied once for each of them.
 */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html => ({
  html: parts.reduce<string>(
    (text, part, index) => text + htmlOf(part) + (strings[index + 1] ?? ""),
    strings[0] ?? ""
  )
})
