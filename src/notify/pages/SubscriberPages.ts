import { html, type Html } from "#src/http/Html.ts"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import { named, type NotifyPage, notifyPage, plainPage } from "./NotifyPage.ts"

/** Pages of subscribers. Their scripts find what they fill and listen to by `id`. Source: contract/notify#subscriber-pages. */

const withoutScript = html`<noscript><p class="notice">This page needs JavaScript.</p></noscript>`

const webhookForm = (text: string): Html =>
  html`<form id="webhook-form">
    <p class="hint">${text}</p>
    <div class="field">
      <label for="url">Address of the webhook</label>
      <input
        id="url"
        type="url"
        required
        maxlength="2048"
        placeholder="https://hooks.example.net/notifications"
        autocomplete="off"
        spellcheck="false"
      />
    </div>
    <div class="field">
      <label for="webhook-kind">It belongs to</label>
      <select id="webhook-kind">
        <option value="">Slack or Discord, else a program: by its address</option>
        <option value="slack">Mattermost, Rocket.Chat or another that takes Slack’s form</option>
        <option value="discord">Discord</option>
        <option value="webhook">A program</option>
      </select>
    </div>
    <p id="webhook-problem" class="problem" role="alert"></p>
    <button>Add the webhook</button>
  </form>`

const webhookText =
  "A chat shows messages in a channel; a program gets them as JSON, signed as Standard Webhooks has it. A link is posted there first, by which it is confirmed."

const secretShown = html`<div id="secret-place" hidden>
  <p>It can tell by this secret that messages are genuine. It is shown now and never again:</p>
  <pre class="copied" id="secret" tabindex="0"></pre>
</div>`

/** Filled by `telegram.js`. */
const telegramPart = html`<div id="telegram">
  <button id="telegram-make" type="button">Make a link for Telegram</button>
  <p id="telegram-links" class="way" hidden>
    <a id="telegram-start" class="button" target="_blank" rel="noopener">Open Telegram</a>
    <a id="telegram-group" class="button second" target="_blank" rel="noopener">Choose a group</a>
  </p>
  <p id="telegram-state" class="hint" role="status"></p>
  <p id="telegram-problem" class="problem" role="alert"></p>
</div>`

/** Shown in place of the ways to join, once one of them was gone. */
const joinedParts = (project: string): Html =>
  html`<section id="joined" class="subscriber" hidden>
      <h2 tabindex="-1">You are subscribed</h2>
      <p>Notifications of ${named(project)} come to this browser, also while no page is open.</p>
      <p class="way"><a class="button" href="/n/me">Your settings</a></p>
    </section>
    <section id="in-telegram" class="subscriber" hidden>
      <h2 tabindex="-1">You are subscribed</h2>
      <p>
        Notifications of ${named(project)} come to the chat in Telegram. There
        <code>/settings</code> sends the address of your settings, and <code>/stop</code> ends them.
      </p>
    </section>
    <section id="added" class="subscriber" hidden>
      <h2 tabindex="-1">Confirm the webhook</h2>
      <p>A link was posted there. Messages come once it is opened.</p>
      ${secretShown}
      <p>This address leads to the settings, for those who have it:</p>
      <pre class="copied" id="settings-url" tabindex="0"></pre>
      <p class="way"><a class="button" href="/n/me">Your settings</a></p>
    </section>`

/** Where one subscribes to a project. `pushKey`: with which browsers subscribe. `hasTelegram`: this server has a bot */
export const joinPage = (
  project: { readonly name: string; readonly description: string },
  pushKey: string,
  hasTelegram: boolean
): NotifyPage =>
  notifyPage({
    status: 200,
    title: project.name,
    project: undefined,
    script: "join.js",
    main: html`
      <h1>Get notifications of ${named(project.name)}</h1>
      ${
        project.description === ""
          ? ""
          : html`<p class="lead description" dir="auto">${cleanText(project.description)}</p>`
      }
      ${withoutScript}
      <div id="join" class="subscriber" data-key="${pushKey}" hidden>
        <div class="field">
          <label for="name">Your name <span class="hint">optional; the senders see it</span></label>
          <input id="name" maxlength="100" autocomplete="name" />
        </div>
        <section aria-labelledby="here">
          <h2 id="here">In this browser</h2>
          <p id="no-push" class="notice"></p>
          <button id="push" class="primary" hidden>Turn on notifications</button>
          <p id="push-problem" class="problem" role="alert"></p>
        </section>
        ${
          hasTelegram
            ? html`<section aria-labelledby="telegram-title">
                <h2 id="telegram-title">In Telegram</h2>
                ${telegramPart}
              </section>`
            : ""
        }
        <details id="webhook">
          <summary>Send them to a team’s chat or a program</summary>
          ${webhookForm(webhookText)}
        </details>
      </div>
      ${joinedParts(project.name)}
    `
  })

/** The settings of the subscriber whose token is behind `#` of its address, or in the browser. It is the same for all. */
export const settingsPage = (hasTelegram: boolean): NotifyPage =>
  notifyPage({
    status: 200,
    title: "Your notifications",
    project: undefined,
    script: "settings.js",
    main: html`
      <h1>Your notifications</h1>
      ${withoutScript}
      <section id="nothing" hidden><p id="nothing-text" class="notice"></p></section>
      <div id="settings" class="subscriber" hidden>
        <section id="guest" class="notice" hidden>
          <p>These settings are from a link, not this browser’s.</p>
          <button id="keep">Keep them in this browser</button>
          <p id="keep-problem" class="problem" role="alert"></p>
        </section>
        ${times}
        <section aria-labelledby="projects-title">
          <h2 id="projects-title">Projects</h2>
          <ul id="projects" class="rows"></ul>
        </section>
        <section aria-labelledby="channels-title">
          <h2 id="channels-title">Browsers, chats and webhooks</h2>
          <ul id="channels" class="rows"></ul>
          <div id="here">
            <p id="no-push" class="hint"></p>
            <button id="push" class="primary" hidden>Turn on notifications in this browser</button>
            <p id="push-problem" class="problem" role="alert"></p>
          </div>
          ${hasTelegram ? telegramPart : ""}
          <details>
            <summary>Add a webhook</summary>
            ${webhookForm(webhookText)} ${secretShown}
          </details>
        </section>
        ${profile} ${links}
      </div>
      <p id="status" role="status"></p>
    `
  })

const problem = (field: string): Html => html`<p id="${field}-problem" class="problem" role="alert"></p>`

/** Its fields have the names of the API, and those at fault are told by them. */
const timeField = (field: string, label: string): Html =>
  html`<div class="field">
    <label for="${field}">${label}</label>
    <input id="${field}" type="time" required aria-describedby="${field}-problem" />
    ${problem(field)}
  </div>`

const times = html`<section aria-labelledby="when-title">
  <h2 id="when-title">When messages come</h2>
  <p id="meaning" class="meaning"></p>
  <form id="when" novalidate>
    <div class="field">
      <label for="delivery">Messages come</label>
      <select id="delivery" aria-describedby="delivery-problem">
        <option value="instant">at once</option>
        <option value="hourly">every hour, all in one</option>
        <option value="daily">once a day, all in one</option>
      </select>
      ${problem("delivery")}
    </div>
    <div id="digest-at">${timeField("digestAt", "Once a day at")}</div>
    <div class="field">
      <div class="check">
        <input id="quiet" type="checkbox" />
        <label for="quiet">Quiet hours</label>
      </div>
      <p class="hint">What comes in them waits until they are over.</p>
    </div>
    <div id="quiet-times" class="pair">
      ${timeField("quietFrom", "Quiet from")} ${timeField("quietTo", "Until")}
    </div>
    <div class="field">
      <div class="check">
        <input id="highPasses" type="checkbox" aria-describedby="highPasses-problem" />
        <label for="highPasses">Urgent messages come at once all the same</label>
      </div>
      ${problem("highPasses")}
    </div>
    <div class="field">
      <label for="timezone">Time zone <span class="hint">type to search</span></label>
      <input
        id="timezone"
        list="zones"
        required
        maxlength="64"
        autocomplete="off"
        spellcheck="false"
        aria-describedby="timezone-problem"
      />
      <datalist id="zones"></datalist>
      ${problem("timezone")}
      <p id="own-zone" class="hint"></p>
    </div>
  </form>
</section>`

const profile = html`<section aria-labelledby="you-title">
  <h2 id="you-title">You</h2>
  <form id="profile">
    <div class="field">
      <label for="subscriber-name">Name <span class="hint">owners of your projects see it</span></label>
      <input id="subscriber-name" maxlength="100" autocomplete="name" />
    </div>
    <p id="profile-problem" class="problem" role="alert"></p>
    <button>Save</button>
  </form>
</section>`

const links = html`<section aria-labelledby="link-title">
    <h2 id="link-title">On another device</h2>
    <p class="hint">A new link opens these settings there. Links that you made before work no more.</p>
    <button id="renew">Make a new link</button>
    <p id="link-problem" class="problem" role="alert"></p>
    <div id="link-place" hidden><pre class="copied" id="link" tabindex="0"></pre></div>
  </section>
  <section aria-labelledby="leave-title">
    <h2 id="leave-title">Leave</h2>
    <p class="hint">Your browsers and webhooks are deleted here at once, and what waits is not sent.</p>
    <button id="leave" class="danger">Leave all projects</button>
    <p id="leave-problem" class="problem" role="alert"></p>
  </section>`

/** The page behind the link that was posted to a webhook. */
export const confirmPage = (host: string): NotifyPage =>
  notifyPage({
    status: 200,
    title: "Confirm a webhook",
    project: undefined,
    hasForm: true,
    main: html`
      <h1>Send notifications to ${named(host)}?</h1>
      <p class="lead">Someone asked that notifications be posted to the webhook where you found this link.</p>
      <form method="post" class="way"><button class="primary">Confirm</button></form>
      <p class="hint">If you do not know of it, do nothing: none are sent.</p>
    `
  })

export const confirmedPage = (host: string): NotifyPage =>
  plainPage(200, "The webhook is confirmed", undefined, html`Notifications go to ${named(host)} from now on.`)

/** 404: no webhook has this link. */
export const noConfirmPage = (): NotifyPage =>
  plainPage(
    404,
    "No webhook is here",
    undefined,
    html`The link may be incomplete, or its webhook was removed. It is good for seven days.`
  )

/** 404: no project has this link any more. */
export const noProjectPage = (): NotifyPage =>
  plainPage(
    404,
    "No project is here",
    undefined,
    html`The link may be incomplete, or its owner has made another one. Ask for a new one.`
  )

/** 410: the project takes no subscribers at the moment. */
export const closedPage = (): NotifyPage =>
  plainPage(410, "This project is closed", undefined, html`It takes no new subscribers.`)
