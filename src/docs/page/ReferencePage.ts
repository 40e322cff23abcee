import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "#src/http/Html.ts"
import { renderPage } from "#src/http/HtmlPage.ts"
import { madeLate, packed, staticAnswer, staticRoute } from "#src/http/Static.ts"

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

const rendered = ({ main, path, title }: ReferencePage) =>
  renderPage({
    title,
    main,
    links: references.map((one) =>
      one.path === path
        ? html`<a href="${one.path}" aria-current="page">${one.name}</a>`
        : html`<a href="${one.path}">${one.name}</a>`
    ),
    style: readFileSync(join(import.meta.dirname, "Reference.css"), "utf8")
  })

/** Serves the page: made once, at the first request. */
export const referenceRoute = (path: `/${string}`, page: () => ReferencePage) =>
  staticRoute(
    path,
    madeLate(() => {
      const { contentType, headers, text } = rendered(page())
      return staticAnswer({ bodies: packed(text), contentType, caching: "no-cache", headers })
    })
  )

/** For a person at an address where nothing is: the way on. */
export const notFoundPage = () => {
  const { contentType, headers, text } = rendered({
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
  return { headers: { ...headers, "content-type": contentType }, text }
}

/** Serves a document for programs: made once, at the first request. */
export const documentRoute = (path: `/${string}`, document: () => object) =>
  staticRoute(
    path,
    madeLate(() =>
      staticAnswer({
        bodies: packed(JSON.stringify(document())),
        contentType: "application/json",
        caching: "no-cache"
      })
    )
  )
