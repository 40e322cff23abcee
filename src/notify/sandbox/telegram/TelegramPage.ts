import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "#src/http/Html.ts"
import { documentOf, wordmark } from "#src/http/HtmlPage.ts"
import { pageHeaders } from "#src/http/Static.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import type { SandboxAnswer } from "../SandboxRequest.ts"
import { type Chat, type ChatMessage, type Person, sandboxBot } from "./TelegramChats.ts"

/** Chats on the page; the others are at `/telegram/chats`. */
const shownMax = 50

const script = join(import.meta.dirname, "../../../clients/notify/sandbox-telegram.js")

/** Read at each request: it is asked for by a person. */
export const telegramScript = (): SandboxAnswer => ({
  status: 200,
  text: { contentType: "text/javascript; charset=utf-8", body: readFileSync(script, "utf8") }
})

const page = (title: string, main: Html): SandboxAnswer => ({
  status: 200,
  headers: pageHeaders("style-src 'self'; script-src 'self'; connect-src 'self'"),
  text: {
    contentType: "text/html; charset=utf-8",
    body: documentOf({
      title,
      head: html`<link rel="stylesheet" href="/page.css" />
        <script type="module" src="/telegram.js"></script>`,
      header: html`<span class="wordmark">${wordmark}</span><span class="label">Sandbox</span>`,
      main: html`<h1>${title}</h1>
        <p class="lead">A made-up Telegram: nothing here left this machine. <a href="/">The inbox</a></p>
        <p id="problem" class="problem" role="alert"></p>
        ${main}`,
      end: []
    })
  }
})

/** In place of `t.me/<bot>`: somebody presses start, or adds the bot to a group. */
export const startPage = (code: string, isGroup: boolean, people: ReadonlyArray<Person>): SandboxAnswer =>
  page(
    isGroup ? "Add the bot to a group" : "Start the bot",
    html`<form class="fields">
      <input type="hidden" name="code" value="${code}" />
      <label
        >Who
        <select name="person">
          <option value="">somebody new</option>
          ${people.slice(-shownMax).map(({ id, name }) => html`<option value="${id}">${cleanText(name)}</option>`)}
        </select></label
      >
      <label>Name of somebody new <input name="name" value="Ada" required maxlength="100" /></label>
      ${isGroup ? html`<label>Name of the group <input name="title" value="Our group" required maxlength="100" /></label>` : ""}
      <button>${isGroup ? "Add it" : "Start"}</button>
    </form>`
  )

const shownMessage = ({ at, buttons, from, isBot, text }: ChatMessage): Html =>
  html`<p class="entry-head">
      <span class="${isBot ? "good" : ""}">${isBot ? "bot" : cleanText(from)}</span
      ><time datetime="${at}">${at.slice(11, 19)} UTC</time>
    </p>
    <p class="text"><bdi>${cleanText(text)}</bdi></p>
    ${buttons.map(
      ({ text: label, url }) =>
        html`<p><a href="${url}" rel="noopener noreferrer">${cleanText(label)}</a></p>`
    )}`

const shownChat = ({ id, messages, state, title, type }: Chat): Html =>
  html`<li class="chat">
    <h2><bdi>${cleanText(title)}</bdi> <span class="label">${type}, ${state}</span></h2>
    ${messages.map(shownMessage)}
    <form class="write" data-chat="${id}">
      <label>Write <input name="text" required maxlength="4096" placeholder="/stop" /></label>
      <button>Send</button>
    </form>
  </li>`

export const chatsPage = (chats: ReadonlyArray<Chat>): SandboxAnswer =>
  page(
    `Chats of @${sandboxBot.username}`,
    chats.length === 0
      ? html`<p>Nobody has started the bot. A project’s page has the link to it.</p>`
      : html`<ol class="entries">
          ${chats.slice(-shownMax).toReversed().map(shownChat)}
        </ol>`
  )
