import { html, type Html } from "#src/http/Html.ts"
import { renderPage } from "#src/http/HtmlPage.ts"
import type { LinkedRecipient } from "./Unsubscribes.ts"

/** A page for the recipient of a mail. Its address is a secret, and it has no script. */
interface UnsubscribePage {
  readonly status: number
  readonly text: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

const style = "main { max-width: 36rem } main h1, main .lead { overflow-wrap: anywhere }"

const page = (status: number, title: string, main: Html, hasForm = false): UnsubscribePage => {
  const { contentType, headers, text } = renderPage({
    title,
    main: html`<h1>${title}</h1>
      ${main}`,
    style,
    hasForm,
    head: html`<meta name="robots" content="noindex, nofollow" />`
  })
  return {
    status,
    text,
    contentType,
    headers: { ...headers, "cache-control": "private, no-store", "x-robots-tag": "noindex, nofollow" }
  }
}

/** The sender's own page may have more to choose from. */
const ownPage = (url: string | null): Html =>
  url === null
    ? html``
    : html`<p class="hint"><a href="${url}" rel="noopener noreferrer nofollow">The sender’s own page</a></p>`

/** Asks, since scanners of mail follow links: to look at it changes nothing. */
export const askPage = ({ address, from, url }: LinkedRecipient): UnsubscribePage =>
  page(
    200,
    "Unsubscribe",
    html`<p class="lead">No more mailings from <bdi>${from}</bdi> to <bdi>${address}</bdi>?</p>
      <form method="post">
        <input type="hidden" name="List-Unsubscribe" value="One-Click" />
        <button class="primary">Unsubscribe</button>
      </form>
      <p class="hint">Mail that is meant for you alone, such as receipts, still comes.</p>
      ${ownPage(url)}`,
    true
  )

export const donePage = ({ address, from, url }: LinkedRecipient): UnsubscribePage =>
  page(
    200,
    "You are unsubscribed",
    html`<p class="lead"><bdi>${address}</bdi> gets no more mailings from <bdi>${from}</bdi>.</p>
      ${ownPage(url)}`
  )

/** 404: the link was forged or cut, or its mail is no longer kept. */
export const noLinkPage = (): UnsubscribePage =>
  page(
    404,
    "No mail has this link",
    html`<p class="lead">
      The link may be incomplete, or its mail is too old. A newer one has a link that works.
    </p>`
  )

/** 503: nothing could be written. */
export const awayPage = (): UnsubscribePage =>
  page(
    503,
    "Not at the moment",
    html`<p class="lead">A store of this server is away, and nothing was changed. Try again in a minute.</p>`
  )
