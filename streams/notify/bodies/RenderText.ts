import type { RenderedBody } from "./Body.ts"
import { reducedRemark } from "./Body.ts"
import { cleanText } from "./CleanText.ts"
import { MarkupWriter } from "./MarkupWriter.ts"

/** Text as it is, with addresses on the web as links. */
export const renderText = (text: string, remark?: string): RenderedBody => {
  const out = new MarkupWriter()
  out.raw('<pre class="text" dir="auto">')
  for (const line of cleanText(text).split("\n")) {
    out.beginLine()
    out.linked("", line)
  }
  return { format: "text", html: `${out.html}</pre>`, remark: remark ?? remarkOf(out) }
}

export const remarkOf = ({ isReduced }: MarkupWriter): string | undefined =>
  isReduced ? reducedRemark : undefined

/** Some lines of text within a page, such as a message, with their links. */
export const renderLines = (text: string): string => {
  const out = new MarkupWriter()
  out.linked("", cleanText(text))
  return out.html
}

/** The text alone, to be copied. */
export const renderSource = (text: string): string => {
  const out = new MarkupWriter()
  out.raw('<pre class="text" dir="auto">')
  for (const line of cleanText(text).split("\n")) {
    out.beginLine()
    out.text(line)
  }
  return `${out.html}</pre>`
}
