import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "./Html.ts"
import { pageHeaders } from "./Static.ts"

/** A page for people that the server makes, as a whole document in the look of the console. */
export interface HtmlPage {
  readonly title: string
  /** with its `h1` */
  readonly main: Html
  /** on top of the page, beside the way to the console; absent: for those who have no business there */
  readonly links?: ReadonlyArray<Html>
  /** the last elements of `head` before the style */
  readonly head?: Html
  /** It has a form that is sent to its own address. */
  readonly hasForm?: boolean
  /** CSS, behind that of every page */
  readonly style: string
  /** JavaScript, run as a module, which may ask this server and no other; without it the page runs none */
  readonly script?: string
}

let common: string | undefined

/** The console's colours, letters and head. Read once: it is in every page. */
export const commonStyle = (): string =>
  (common ??= ["Base.css", "Layout.css"]
    .map((name) => readFileSync(join(import.meta.dirname, "../console/page/style", name), "utf8"))
    .join("\n"))

/** How a policy names an inline text. Source: CSP 3, 2.3.1. */
const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** Outside the template: the text's hash is in the policy, so no whitespace may be added. */
const inline = (tag: "style" | "script", attributes: string, text: string): Html => {
  if (text.toLowerCase().includes(`</${tag}`)) throw new Error(`The page's ${tag} would end its own element`)
  return { html: `<${tag}${attributes}>${text}</${tag}>` }
}

/** The name of the server with its mark, as on every page of it. */
export const wordmark = html`<svg viewBox="0 0 16 16" aria-hidden="true">
    <rect width="16" height="16" rx="4" />
    <path d="M4 12V8M8 12V4M12 12V6.500" /></svg
  >Signalbox`

/** The parts of a document that differ between pages. */
interface Document {
  readonly title: string
  /** the last elements of `head`, such as a style */
  readonly head: Html
  /** beside nothing else on top of the page */
  readonly header: Html
  readonly main: Html
  /** behind `main` */
  readonly end: Html | ReadonlyArray<Html>
}

/** A document that can be read at every width, in light and dark, and whose content a keyboard reaches first. */
export const documentOf = ({ end, head, header, main, title }: Document): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Signalbox</title>
        ${head}
      </head>
      <body>
        <a href="#main" class="skip">Skip to the content</a>
        <header class="page-header">${header}</header>
        <main id="main" tabindex="-1">${main}</main>
        ${end}
      </body>
    </html> `.html

/** The document, with a policy that allows its own style and script by their hashes, and no frame around it. */
export const renderPage = ({ hasForm, head, links, main, script, style: own, title }: HtmlPage) => {
  const style = `${commonStyle()}\n${own}`
  const scripts = script === undefined ? "" : `; script-src ${hashOf(script)}; connect-src 'self'`
  const text = documentOf({
    title,
    head: html`${head ?? ""}${inline("style", "", style)}`,
    header:
      links === undefined
        ? html`<span class="wordmark">${wordmark}</span>`
        : html`<a href="/" class="wordmark">${wordmark}</a>
            <nav aria-label="Signalbox"><a href="/">Console</a>${links}</nav>`,
    main,
    end: script === undefined ? [] : inline("script", ' type="module"', script)
  })
  return {
    text,
    contentType: "text/html; charset=utf-8",
    headers: pageHeaders(`style-src ${hashOf(style)}${scripts}`, hasForm === true ? "'self'" : "'none'")
  }
}
