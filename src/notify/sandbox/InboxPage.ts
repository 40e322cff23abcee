import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Predicate } from "effect"
import { html, type Html } from "#src/http/Html.ts"
import { commonStyle, documentOf, wordmark } from "#src/http/HtmlPage.ts"
import { pageHeaders } from "#src/http/Static.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import type { Entry, Inbox } from "./Inbox.ts"
import type { SandboxAnswer } from "./SandboxRequest.ts"

/** Entries on the page; the others are at `/inbox`. */
const shownMax = 100

const own = (name: string): string => readFileSync(join(import.meta.dirname, name), "utf8")

/** Read at each request: they are asked for by a person. */
export const styleAnswer = (): SandboxAnswer => ({
  status: 200,
  text: { contentType: "text/css; charset=utf-8", body: `${commonStyle()}\n${own("InboxPage.css")}` }
})

export const scriptAnswer = (): SandboxAnswer => ({
  status: 200,
  text: { contentType: "text/javascript; charset=utf-8", body: own("../../clients/notify/inbox.js") }
})

/** The newest entries, readable without the script, which only brings the later ones. */
export const pageAnswer = (inbox: Inbox, origin: string): SandboxAnswer => ({
  status: 200,
  headers: pageHeaders("style-src 'self'; script-src 'self'; connect-src 'self'"),
  text: {
    contentType: "text/html; charset=utf-8",
    body: documentOf({
      title: "Sandbox of channels",
      head: html`<link rel="stylesheet" href="/page.css" />
        <script type="module" src="/page.js"></script>`,
      header: html`<span class="wordmark">${wordmark}</span><span class="label">Sandbox</span>`,
      main: html`<h1>Inbox of the sandbox</h1>
        <p class="lead">
          Requests to made-up push services, webhooks, chats and <a href="/telegram">Telegram</a> at
          ${origin}, the newest first. Nothing here left this machine, and nobody was notified.
        </p>
        ${list(inbox, origin)}`,
      end: []
    })
  }
})

const list = (inbox: Inbox, origin: string): Html => {
  const entries = inbox.newest(shownMax)
  const { accepted, received, repeated } = inbox.counts
  return html`<div id="inbox" data-last="${entries[0]?.seq ?? inbox.last}">
    <div class="bar">
      <p role="status">
        ${received} received, ${accepted} accepted, ${repeated}
        repeated${received > entries.length ? `; the last ${entries.length} are shown` : ""}
      </p>
      <button type="button" id="clear">Clear the inbox</button>
    </div>
    ${
      entries.length === 0
        ? empty(origin)
        : html`<ol class="entries" reversed>
            ${entries.map(shown)}
          </ol>`
    }
  </div>`
}

const empty = (origin: string): Html =>
  html`<div class="empty">
    <p>Nothing has come yet.</p>
    <p><code>curl -s -X POST ${origin}/push/subscriptions</code> makes a browser's subscription.</p>
    <p><code>curl -s -X POST ${origin}/webhooks</code> makes a webhook.</p>
    <p><code>curl -s -X POST ${origin}/slack</code> or <code>${origin}/discord</code> makes one of a chat.</p>
  </div>`

const kinds: Readonly<Record<Entry["kind"], string>> = {
  push: "Push",
  webhook: "Webhook",
  slack: "Slack",
  discord: "Discord",
  telegram: "Telegram"
}

const shown = (entry: Entry): Html => {
  const { channel, kind, problem, receivedAt, repeated, seq, state, status } = entry
  const { text, title } = wordsOf(entry)
  const { payload: _, ...rest } = entry
  const cut = entry.accepted ? "accepted, then cut" : "cut"
  const outcome = status === null ? cut : `answered ${status}`
  return html`<li>
    <p class="entry-head">
      <span class="number">${seq}</span><span>${kinds[kind]}</span><span>${channel ?? "unknown address"}</span
      ><span class="${problem === null ? "good" : "bad"}">${outcome}</span>${words(state)}${words(
        repeated ? "repeated" : null
      )}<time datetime="${receivedAt}">${receivedAt.slice(11, 19)} UTC</time>
    </p>
    ${title === undefined ? [] : html`<h2><bdi>${cleanText(title)}</bdi></h2>`}
    ${text === undefined ? [] : html`<p class="text"><bdi>${cleanText(text)}</bdi></p>`}
    ${problem === null ? [] : html`<p class="problem">${cleanText(problem)}</p>`}
    ${entry.payload === null ? [] : details(`m${seq}`, "Message", entry.payload)}
    ${details(`r${seq}`, "Request", rest)}
  </li>`
}

const words = (text: string | null): Html =>
  text === null || text === "delivered" ? html`` : html`<span>${text}</span>`

const details = (id: string, summary: string, value: unknown): Html =>
  html`<details id="${id}">
    <summary>${summary}</summary>
    <pre tabindex="0">${cleanText(JSON.stringify(value, null, 2))}</pre>
  </details>`

/** The heading and the text of a notification, where the message has them. */
const wordsOf = ({ kind, payload }: Entry): { readonly title?: string; readonly text?: string } => {
  if (typeof payload === "string") return { text: payload }
  const body = Predicate.isReadonlyObject(payload) ? payload : {}
  if (kind === "telegram") return texts("text", body["text"])
  if (kind === "push") return { ...texts("title", body["title"]), ...texts("text", body["text"]) }
  if (kind === "slack" || kind === "discord")
    return chatWords(kind === "slack" ? slackText(body) : discordText(body))
  const data = Predicate.isReadonlyObject(body["data"]) ? body["data"] : {}
  return {
    ...texts("title", data["title"] ?? data["app"] ?? body["type"]),
    ...texts("text", data["message"])
  }
}

/** The first line is the heading. */
const chatWords = (shown: string): { readonly title: string; readonly text: string } => {
  const [title = "", ...lines] = shown.split("\n")
  return { title, text: lines.join("\n") }
}

/** Slack's rich text as people read it, with the addresses of links. */
const slackText = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(slackText).join("")
  if (!Predicate.isReadonlyObject(value)) return ""
  const { blocks, elements, text, type, url } = value
  if (blocks !== undefined || elements !== undefined) return slackText(blocks ?? elements)
  return type === "link" ? `${String(text)} (${String(url)})` : String(text ?? "")
}

/** Discord's Markdown as people read it, as far as this server writes it. */
const discordText = ({ content }: Readonly<Record<string, unknown>>): string =>
  String(content ?? "")
    .replace(/^\*\*(.*)\*\*(?=\n|$)/u, "$1")
    .replace(
      /\\([^0-9A-Za-z\s])|\[([^\]\\]*)\]\(<([^>]*)>\)|<(https?:[^>]*)>/gu,
      (_, mark, label, url, address) =>
        String(mark ?? (label === undefined ? address : `${String(label)} (${String(url)})`))
    )

const texts = <Name extends string>(name: Name, value: unknown): { readonly [Key in Name]?: string } =>
  typeof value === "string" ? ({ [name]: value } as { readonly [Key in Name]?: string }) : {}
