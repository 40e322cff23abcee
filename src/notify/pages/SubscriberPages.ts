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
    <p id="webhook-problem" class="problem" role="alert"></p>
    <button>Add the webhook</button>
  </form>`

const webhookText =
  "Messages come as JSON, signed as Standard Webhooks has it. A link is posted there first, by which it is confirmed."

const secretShown = html`<p>
    It can tell by this secret that messages are genuine. It is shown now and never again:
  </p>
  <pre class="copied" id="secret" tabindex="0"></pre>`

/** Where one subscribes to a project. `pushKey`: with which browsers subscribe. */
export const joinPage = (
  project: { readonly name: string; readonly description: string },
  pushKey: string
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
        <details id="webhook">
          <summary>Send them to a program</summary>
          ${webhookForm(webhookText)}
        </details>
      </div>
      <section id="joined" class="subscriber" hidden>
        <h2 tabindex="-1">You are subscribed</h2>
        <p>Notifications of ${named(project.name)} come to this browser, also while no page is open.</p>
        <p class="way"><a class="button" href="/n/me">Your settings</a></p>
      </section>
      <section id="added" class="subscriber" hidden>
        <h2 tabindex="-1">Confirm the webhook</h2>
        <p>A link was posted there. Messages come once it is opened.</p>
        ${secretShown}
        <p>This address leads to the settings, for those who have it:</p>
        <pre class="copied" id="settings-url" tabindex="0"></pre>
        <p class="way"><a class="button" href="/n/me">Your settings</a></p>
      </section>
    `
  })

/** The settings of the subscriber whose token is behind `#` of its address, or in the browser. It is the same for all. */
export const settingsPage = (): NotifyPage =>
  notifyPage({
    status: 200,
    title: "Your notifications",
    project: undefined,
    script: "settings.js",
    main: html`
      <h1>Your notifications</h1>
      ${withoutScript}
      <p id="status" class="hint" role="status"></p>
      <section id="nothing" hidden><p id="nothing-text" class="notice"></p></section>
      <div id="settings" class="subscriber" hidden>
        <section id="guest" class="notice" hidden>
          <p>These settings are from a link, not this browser’s.</p>
          <button id="keep">Keep them in this browser</button>
          <p id="keep-problem" class="problem" role="alert"></p>
        </section>
        <section aria-labelledby="projects-title">
          <h2 id="projects-title">Projects</h2>
          <ul id="projects" class="rows"></ul>
        </section>
        <section aria-labelledby="channels-title">
          <h2 id="channels-title">Browsers and webhooks</h2>
          <ul id="channels" class="rows"></ul>
          <div id="here">
            <p id="no-push" class="hint"></p>
            <button id="push" class="primary" hidden>Turn on notifications in this browser</button>
            <p id="push-problem" class="problem" role="alert"></p>
          </div>
          <details>
            <summary>Add a webhook</summary>
            ${webhookForm(webhookText)}
            <div id="secret-place" hidden>${secretShown}</div>
          </details>
        </section>
        ${profile} ${links}
      </div>
    `
  })

const profile = html`<section aria-labelledby="you-title">
  <h2 id="you-title">You</h2>
  <form id="profile">
    <div class="field">
      <label for="subscriber-name">Name <span class="hint">owners of your projects see it</span></label>
      <input id="subscriber-name" maxlength="100" autocomplete="name" />
    </div>
    <div class="field">
      <label for="timezone">Time zone</label>
      <input id="timezone" list="zones" required maxlength="64" autocomplete="off" spellcheck="false" />
      <datalist id="zones"></datalist>
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
