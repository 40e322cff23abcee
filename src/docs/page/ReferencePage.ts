import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { HttpServerResponse } from "effect/http"
import { packed, pageHeaders, staticAnswer, staticRoute } from "#src/http/Static.ts"
import { html, type Html } from "./Html.ts"

/** A page for people, without a script. */
export interface ReferencePage {
  /** undefined where it is not among the references */
  readonly path: `/${string}` | undefined
  readonly title: string
  /** with its `h1` */
  readonly main: Html
}

/** The references that there are, as they are named on top of each. */
const references = [
  { path: "/docs", name: "API" },
  { path: "/docs/agent", name: "Agent protocol" }
] as const

const consoleStyle = normalize(join(import.meta.dirname, "../../console/page/style"))

/** The look of the page at `/`: its colours, its letters, its head. */
const readStyle = (): string =>
  [
    join(consoleStyle, "Base.css"),
    join(consoleStyle, "Layout.css"),
    join(import.meta.dirname, "Reference.css")
  ]
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")

const contentType = "text/html; charset=utf-8"

/** The page as HTML, and the headers with which it can be nothing but a text. */
const rendered = (page: ReferencePage) => {
  const style = readStyle()
  const hash = createHash("sha256").update(style).digest("base64")
  return {
    text: render(page, style),
    headers: pageHeaders(`style-src 'sha256-${hash}'`)
  }
}

/** Serves the page: made once, in every encoding. */
export const referenceRoute = (page: ReferencePage & { readonly path: `/${string}` }) => {
  const { headers, text } = rendered(page)
  const content = { bodies: packed(text), contentType, caching: "no-cache", headers }
  return staticRoute(page.path, staticAnswer(content))
}

/** For a person at an address where nothing is: the way on. */
export const notFoundPage = (): HttpServerResponse.HttpServerResponse => {
  const { headers, text } = rendered({
    path: undefined,
    title: "Not found",
    main: html`
      <h1>Nothing is here</h1>
      <p class="lead">This server has no page at that address. It may be mistyped, or have moved.</p>
      <p class="ways">
        <a href="/">The console</a> <a href="/docs">The API</a> <a href="/api/v1">What is under /api/v1</a>
      </p>
    `
  })
  return HttpServerResponse.text(text, {
    status: 404,
    contentType,
    headers: { ...headers, "x-content-type-options": "nosniff" }
  })
}

/** Serves a document for programs, made once. */
export const documentRoute = (path: `/${string}`, document: object) =>
  staticRoute(
    path,
    staticAnswer({
      bodies: packed(JSON.stringify(document)),
      contentType: "application/json",
      caching: "no-cache"
    })
  )

const links = (path: string | undefined): ReadonlyArray<Html> =>
  references.map((one) =>
    one.path === path
      ? html`<a href="${one.path}" aria-current="page">${one.name}</a>`
      : html`<a href="${one.path}">${one.name}</a>`
  )

const render = ({ main, path, title }: ReferencePage, style: string): string => {
  // Not in the template: its hash is in the page's policy, and no space may come to it.
  const css: Html = { html: `<style>${style}</style>` }
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Signalbox</title>
        ${css}
      </head>
      <body>
        <a href="#main" class="skip">Skip to the content</a>
        <header class="page-header">
          <a href="/" class="wordmark"
            ><svg viewBox="0 0 16 16" aria-hidden="true">
              <rect width="16" height="16" rx="4" />
              <path d="M4 12V8M8 12V4M12 12V6.500" /></svg
            >Signalbox</a
          >
          <nav aria-label="Signalbox"><a href="/">Console</a>${links(path)}</nav>
        </header>
        <main id="main" tabindex="-1">${main}</main>
      </body>
    </html> `.html
}
