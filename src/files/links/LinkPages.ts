import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "#src/http/Html.ts"
import { renderPage } from "#src/http/HtmlPage.ts"
import { sizeText } from "#src/http/SizeText.ts"

/** A page for those who have a link. It works without its script, and its address is a secret. */
export interface LinkPage {
  readonly status: number
  readonly text: string
  readonly headers: ReadonlyArray<readonly [string, string]>
}

/** The file or archive of a link, as its page shows it. */
export interface ShownTarget {
  /** the name by which it is downloaded */
  readonly name: string
  readonly isDirectory: boolean
  readonly sizeBytes: number
  /** downloads that are left */
  readonly left: number
  readonly expiresAt: Date | null
  /** was given in the address, and goes with the form */
  readonly password: string | undefined
}

let own: { readonly style: string; readonly script: string } | undefined

const assets = () =>
  (own ??= {
    style: readFileSync(join(import.meta.dirname, "LinkPages.css"), "utf8"),
    script: readFileSync(join(import.meta.dirname, "../../clients/files/link.js"), "utf8")
  })

const page = (
  status: number,
  title: string,
  main: Html,
  { head, isForm = false }: { readonly head?: Html; readonly isForm?: boolean } = {}
): LinkPage => {
  const { script, style } = assets()
  const { contentType, headers, text } = renderPage({
    title,
    main: html`<div class="link">${main}</div>`,
    style,
    hasForm: isForm,
    head: html`<meta name="robots" content="noindex, nofollow" />${head ?? ""}`,
    ...(isForm && { script })
  })
  return {
    status,
    text,
    headers: Object.entries({
      ...headers,
      "content-type": contentType,
      "cache-control": "private, no-store",
      "x-robots-tag": "noindex, nofollow",
      vary: "accept"
    })
  }
}

/** Marks that turn the direction of text could show another ending of a name than it has. */
const turns = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

const shownName = (name: string): string => name.replace(turns, "")

const named = (name: string): Html => html`<bdi>${shownName(name)}</bdi>`

const dates = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" })

/** The page cannot know its reader's zone without a script. */
const instant = (at: Date): Html => html`<time datetime="${at.toISOString()}">${dates.format(at)} UTC</time>`

const timesLeft = (left: number): string => (left === 1 ? "once" : `${left} times`)

/** The bytes are behind the button: to look at the page uses nothing up. */
export const targetPage = (target: ShownTarget): LinkPage => {
  const { expiresAt, isDirectory, left, name, password, sizeBytes } = target
  const size = sizeText(sizeBytes)
  const kind = isDirectory ? `A folder, as an archive of ${size}` : size
  return page(
    200,
    shownName(name),
    html`<h1>${named(name)}</h1>
      <p class="lead">${kind}</p>
      <form method="post">
        ${password === undefined ? "" : html`<input type="hidden" name="password" value="${password}" />`}
        <button class="primary">Download</button>
        <p class="state" role="status"></p>
      </form>
      <p class="hint">
        The link works ${timesLeft(left)}
        more${expiresAt === null ? "" : html`, until ${instant(expiresAt)}`}. To look at this page uses
        nothing up, the button does.
      </p>`,
    {
      isForm: true,
      head: html`<meta property="og:title" content="${shownName(name)}" />
        <meta property="og:description" content="${kind}" />
        <meta name="description" content="${kind}" />`
    }
  )
}

/** 401: nothing of what is shared is shown. `problem`: why a password that was given did not do. */
export const passwordPage = (status: number, problem: string | undefined): LinkPage =>
  page(
    status,
    "A password is needed",
    html`<h1>A password is needed</h1>
      <p class="lead">The person who shared this with you has it.</p>
      <form method="post">
        <label for="password">Password</label>
        <input
          id="password"
          name="password"
          type="password"
          autocomplete="off"
          maxlength="512"
          required
          autofocus
          ${problem === undefined ? "" : html`aria-invalid="true" aria-describedby="problem"`}
        />
        ${problem === undefined ? "" : html`<p id="problem" class="problem" role="alert">${problem}.</p>`}
        <button class="primary">Open</button>
        <p class="state" role="status"></p>
      </form>
      <p class="hint">A wrong password uses nothing up.</p>`,
    { isForm: true }
  )

const plain = (status: number, title: string, text: Html): LinkPage =>
  page(
    status,
    title,
    html`<h1>${title}</h1>
      <p class="lead">${text}</p>`
  )

/** The page in the place of an error of this status. `problem`: the text that programs get. */
export const problemPage = (status: number, problem: string): LinkPage => {
  if (problem === "Link expired")
    return plain(status, "This link has expired", html`Ask the person who shared it for another one.`)
  if (problem === "Link exhausted")
    return plain(
      status,
      "This link is used up",
      html`It was good for a number of downloads, and all of them were made. If that was not you, tell the
      person who shared it.`
    )
  if (status === 404)
    return plain(
      status,
      "Nothing is shared here",
      html`The address may be incomplete, or what it led to was taken back or deleted.`
    )
  return plain(status, status === 503 ? "Not at the moment" : "This did not work", html`${problem}.`)
}
