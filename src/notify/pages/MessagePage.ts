import type { Priority } from "#schemas/notify/SendTerms.ts"
import { html, type Html } from "#src/http/Html.ts"
import { sizeText } from "#src/http/SizeText.ts"
import type { RenderedBody, ShownFormat } from "#streams/notify/bodies/Body.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import { renderLines } from "#streams/notify/bodies/RenderText.ts"
import { previewOf } from "./AttachmentPreview.ts"
import { instant, named, type NotifyPage, notifyPage } from "./NotifyPage.ts"

/** A file of a message. */
export interface ShownFile {
  /** `att_…` */
  readonly id: string
  readonly filename: string
  readonly contentType: string
  /** bytes */
  readonly size: number
  readonly expiresAtMillis: number
  /** its bytes are gone */
  readonly isExpired: boolean
  /** of text and JSON: the first 64 KB as HTML of `streams/notify/bodies`, and whether that is all */
  readonly head?: { readonly html: string; readonly isWhole: boolean } | undefined
}

/** A message as its page shows it. */
export interface ShownMessage {
  /** of the page, `/n/m/<token>`; files and the raw body are below it */
  readonly path: `/${string}`
  readonly project: string
  readonly app: string
  readonly title: string | undefined
  readonly message: string
  /** http or https */
  readonly url: string | undefined
  readonly priority: Priority
  readonly createdAtMillis: number
  /** the page is there until then */
  readonly expiresAtMillis: number
  /** in its format, or as its sender wrote it */
  readonly body: RenderedBody | { readonly source: Html } | undefined
  readonly files: ReadonlyArray<ShownFile>
}

/** The page of a message: heading, text, link, files and body. Source: contract/notify#message-pages */
export const messagePage = (message: ShownMessage): NotifyPage => {
  const { app, body, createdAtMillis, expiresAtMillis, files, path, priority, project, title, url } = message
  const heading = title ?? app
  return notifyPage({
    status: 200,
    title: heading,
    project,
    main: html`
      <article>
        <p class="sender">
          ${title === undefined ? "" : html`${named(app)} · `}${instant(createdAtMillis)}${
            priority === "high" ? html` <strong class="priority">High priority</strong>` : ""
          }
        </p>
        <h1>${named(heading)}</h1>
        <p class="words" dir="auto">${{ html: renderLines(message.message) }}</p>
        ${url === undefined || !URL.canParse(url) ? "" : openButton(url)}${files.length === 0 ? "" : filesOf(files, path)}${
          body === undefined ? "" : bodyOf(body, path)
        }
        <p class="kept hint">This page is kept until ${instant(expiresAtMillis)}.</p>
      </article>
    `
  })
}

/** Its host is named, because the words before it are its sender's. */
export const openButton = (url: string): Html => {
  const { host, href, protocol } = new URL(url)
  if (protocol !== "https:" && protocol !== "http:") return nothing
  return html`<p class="way">
    <a class="button" href="${href}" rel="noopener noreferrer nofollow">Open ${named(host)}</a>
  </p>`
}

const bodyTitles: Readonly<Record<ShownFormat, string>> = {
  text: "Text",
  markdown: "Text",
  json: "JSON",
  log: "Log"
}

const bodyOf = (body: NonNullable<ShownMessage["body"]>, path: string): Html => {
  const isSource = "source" in body
  return html`<section class="body" aria-labelledby="body">
    <div class="head">
      <h2 id="body">${isSource ? "Source" : bodyTitles[body.format]}</h2>
      <nav aria-label="The text in another form">
        ${isSource ? html`<a href="${path}">Formatted</a>` : html`<a href="${path}?source">Source</a>`}
        <a href="${path}/raw" download>Download</a>
      </nav>
    </div>
    ${isSource || body.remark === undefined ? "" : html`<p class="hint">${body.remark}</p>`}
    ${isSource ? body.source : { html: body.html }}
  </section>`
}

const filesOf = (files: ReadonlyArray<ShownFile>, path: string): Html =>
  html`<section aria-labelledby="files">
    <h2 id="files">${files.length === 1 ? "1 file" : `${files.length} files`}</h2>
    <ul class="files">
      ${files
        .map((file) => ({ ...file, filename: cleanText(file.filename) }))
        .map((file) => html`<li>${fileOf(file, `${path}/a/${file.id}`)}</li>`)}
    </ul>
  </section>`

const fileOf = (file: ShownFile, address: string): Html => {
  const { contentType, expiresAtMillis, filename, isExpired, size } = file
  if (isExpired) {
    return html`<p class="file">
      ${named(filename)}
      <span class="hint">${sizeText(size)}, was kept until ${instant(expiresAtMillis)}</span>
    </p>`
  }
  const opens = previewOf(contentType) === "pdf"
  return html`<p class="file">
      ${opens ? html`<a href="${address}">${named(filename)}</a>` : named(filename)}
      <span class="hint">${sizeText(size)}, kept until ${instant(expiresAtMillis)}</span>
      <a href="${address}" download="${filename}" class="get" aria-label="Download ${filename}">Download</a>
    </p>
    ${previewOfFile(file, address)}`
}

const previewOfFile = ({ contentType, filename, head }: ShownFile, address: string): Html => {
  switch (previewOf(contentType)) {
    case "image":
      return html`<img src="${address}" alt="${filename}" loading="lazy" decoding="async" />`
    case "video":
      return html`<video src="${address}" controls preload="metadata" aria-label="${filename}"></video>`
    case "audio":
      return html`<audio src="${address}" controls preload="metadata" aria-label="${filename}"></audio>`
    case "text":
      return head === undefined ? nothing : textPreview(head)
    default:
      return nothing
  }
}

const nothing: Html = { html: "" }

const textPreview = (head: NonNullable<ShownFile["head"]>): Html =>
  html`<details>
    <summary>${head.isWhole ? "Show" : "Show the first 64 KB"}</summary>
    ${{ html: head.html }}
  </details>`
