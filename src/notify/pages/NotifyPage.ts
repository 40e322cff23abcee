import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "#src/http/Html.ts"
import { commonStyle, documentOf, wordmark } from "#src/http/HtmlPage.ts"
import { packed, pageHeaders, type StaticAnswer, staticAnswer } from "#src/http/Static.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"

/** The style of all pages of the room. */
export const stylePath = "/n/pages.css"

const styles = ["NotifyPage.css", "MessagePage.css", "Body.css", "SubscriberPages.css"]

export const styleText = (): string =>
  [commonStyle(), ...styles.map((name) => readFileSync(join(import.meta.dirname, name), "utf8"))].join("\n")

/** Made once, at the first use: it reads files of the program. */
export const styleAnswer = (): StaticAnswer =>
  staticAnswer({
    bodies: packed(styleText()),
    contentType: "text/css; charset=utf-8",
    caching: "no-cache"
  })

/** A page that goes out. */
export interface NotifyPage {
  readonly status: number
  readonly text: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/** Files of messages are images, video and audio of the page. No script, and no other server is asked for anything. */
const sources = "style-src 'self'; img-src 'self'; media-src 'self'"

/** Of pages whose script is this server's, and asks this server alone. */
const scriptSources = `${sources}; script-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'`

/** Files of `src/clients/notify/`, and what makes an app of a page on a home screen. */
export const clientPath = (name: string): `/${string}` => `/n/${name}`
export const manifestPath = "/n/manifest.webmanifest"
export const iconPath = "/n/icon-192.png"

/** Names that others gave, on one line, in their own direction. */
export const named = (name: string): Html => html`<bdi>${cleanText(name)}</bdi>`

/**
 * A page for those whom messages reach, without a script unless it names one. Its address is its secret: it is in no index, no cache that is
 * shared, and no `Referer`.
 */
export const notifyPage = (page: {
  readonly status: number
  readonly title: string
  /** the project that it is of, if it says so */
  readonly project: string | undefined
  /** with its `h1` */
  readonly main: Html
  /** a file of `src/clients/notify/` */
  readonly script?: string
  /** It has a form that is sent without a script, to its own address. */
  readonly hasForm?: boolean
}): NotifyPage => ({
  status: page.status,
  text: documentOf({
    title: cleanText(page.title),
    head: html`<meta name="robots" content="noindex, nofollow" />
      <link rel="icon" href="${iconPath}" />
      <link rel="stylesheet" href="${stylePath}" />${page.script === undefined ? "" : appOf(page.script)}`,
    header: html`<span class="wordmark">${wordmark}</span>${
        page.project === undefined ? "" : html`<span class="project">${named(page.project)}</span>`
      }`,
    main: page.main,
    end: []
  }),
  contentType: "text/html; charset=utf-8",
  headers: {
    ...pageHeaders(
      page.script === undefined ? sources : scriptSources,
      page.hasForm === true ? "'self'" : "'none'"
    ),
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex, nofollow"
  }
})

const appOf = (script: string): Html =>
  html`<link rel="manifest" href="${manifestPath}" />
    <link rel="icon" href="${iconPath}" />
    <link rel="apple-touch-icon" href="${iconPath}" />
    <script type="module" src="${clientPath(script)}"></script>`

const dates = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" })

/** The page has no script that knows its reader's zone. */
export const instant = (millis: number): Html =>
  html`<time datetime="${new Date(millis).toISOString()}">${dates.format(millis)} UTC</time>`

export const plainPage = (
  status: number,
  title: string,
  project: string | undefined,
  text: Html
): NotifyPage =>
  notifyPage({
    status,
    title,
    project,
    main: html`<h1>${title}</h1>
      <p class="lead">${text}</p>`
  })

/** 404: no message has this link, or its owner deleted it. */
export const noMessagePage = (): NotifyPage =>
  plainPage(
    404,
    "No message is here",
    undefined,
    html`The link may be incomplete, or the message was deleted by its owner.`
  )

/** 410: its time is over. */
export const goneMessagePage = (keptDays: number): NotifyPage =>
  plainPage(410, "This message is gone", undefined, html`Messages have a page for ${keptDays} days.`)

/** 503: nothing can be read at the moment. */
export const awayPage = (): NotifyPage =>
  plainPage(503, "Not at the moment", undefined, html`A store of this server is away. Try again in a minute.`)

/** 404: the message has no such file. */
export const noFilePage = (project: string): NotifyPage =>
  plainPage(404, "No file is here", project, html`The message has no file at this address.`)

/** 410: the file was kept until then. */
export const goneFilePage = (project: string, filename: string, expiresAtMillis: number): NotifyPage =>
  plainPage(
    410,
    "This file is gone",
    project,
    html`${named(filename)} was kept until ${instant(expiresAtMillis)}.`
  )
