import type { Priority } from "#schemas/notify/SendTerms.ts"
import { html, type Html } from "#src/http/Html.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import { renderLines } from "#streams/notify/bodies/RenderText.ts"
import { openButton } from "./MessagePage.ts"
import { instant, named, type NotifyPage, notifyPage } from "./NotifyPage.ts"

/** A message as the page of its digest shows it. */
export interface ShownItem {
  readonly project: string
  readonly app: string
  readonly title: string | undefined
  /** with its paperclip */
  readonly text: string
  /** http or https */
  readonly url: string | undefined
  readonly priority: Priority
  readonly createdAtMillis: number
  /** its own page, where that has more than is here */
  readonly page: `/${string}` | undefined
}

/** A digest as its page shows it. */
export interface ShownDigest {
  /** those that are there still, in their order */
  readonly items: ReadonlyArray<ShownItem>
  /** messages that the digest had, and its page has not */
  readonly more: number
  readonly createdAtMillis: number
  /** the page is there until then */
  readonly expiresAtMillis: number
}

/** The page of a digest: its messages, each with its text, its link and its own page. Source: contract/notify#digests */
export const digestPage = ({ createdAtMillis, expiresAtMillis, items, more }: ShownDigest): NotifyPage => {
  const heading = items.length === 1 ? "1 message" : `${items.length} messages`
  return notifyPage({
    status: 200,
    title: heading,
    project: undefined,
    main: html`
      <article>
        <p class="sender">Digest · ${instant(createdAtMillis)}</p>
        <h1>${heading}</h1>
        <ol class="digest">
          ${items.map((item) => html`<li>${itemOf(item)}</li>`)}
        </ol>
        ${more === 0 ? "" : html`<p class="hint">The digest had ${more} more, which are not on this page.</p>`}
        <p class="kept hint">This page is kept until ${instant(expiresAtMillis)}.</p>
      </article>
    `
  })
}

const itemOf = (item: ShownItem): Html => {
  const { app, createdAtMillis, page, priority, project, text, title, url } = item
  return html`<p class="sender">
      ${named(project)} ·
      ${title === undefined ? "" : html`${named(app)} · `}${instant(createdAtMillis)}${
        priority === "high" ? html` <strong class="priority">High priority</strong>` : ""
      }
    </p>
    <h2>${named(title ?? app)}</h2>
    <p class="words" dir="auto">${{ html: renderLines(text) }}</p>
    ${url === undefined || !URL.canParse(url) ? "" : openButton(url)}${
      page === undefined
        ? ""
        : html`<p class="more">
            <a href="${page}" aria-label="Show all of ${cleanText(title ?? app)}">Show all</a>
          </p>`
    }`
}
