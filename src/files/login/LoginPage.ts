import { readFileSync } from "node:fs"
import { join } from "node:path"
import { html, type Html } from "#src/http/Html.ts"
import { renderPage } from "#src/http/HtmlPage.ts"
import { packed, staticAnswer, staticRoute } from "#src/http/Static.ts"

/** The page by which a person lets a command line in; the token is behind `#`. Source: contract/files#cli-login. */
export const loginPath = "/cli"

const read = (...path: ReadonlyArray<string>): string =>
  readFileSync(join(import.meta.dirname, ...path), "utf8")

const signIn = html`<form id="sign-in" hidden>
  <h2 tabindex="-1">Sign in first</h2>
  <input hidden name="username" autocomplete="username" value="" />
  <div class="field">
    <label for="key">API key</label>
    <input
      id="key"
      type="password"
      autocomplete="current-password"
      autocapitalize="off"
      spellcheck="false"
      placeholder="sk_…"
      required
    />
  </div>
  <p class="problem" role="alert"></p>
  <button class="primary">Sign in</button>
  <p class="hint">
    This browser stays signed in without the key. A login link of an administrator does as well.
  </p>
</form>`

const right = (value: string, text: string, isChosen = false): Html =>
  html`<label class="right"
    ><input type="radio" name="rights" value="${value}" ${isChosen ? html`checked` : ""} /> ${text}</label
  >`

const asked = html`<form id="ask" hidden>
  <h2 tabindex="-1">Let <bdi id="name"></bdi> in?</h2>
  <p>
    It says that it is <span id="platform"></span>, and asks for a key of yours. The terminal shows the same
    digits:
  </p>
  <p id="digits" class="digits"></p>
  <p>If it shows others, or you did not begin this, do not let it in.</p>
  <fieldset id="rights-choice">
    <legend>What the key may do</legend>
    ${right("full", "Everything that you may", true)}
    ${right("read write", "Read and upload files, and nothing else")}
    ${right("read", "Read files, and nothing else")}
  </fieldset>
  <p id="rights-own" class="hint" hidden></p>
  <p class="problem" role="alert"></p>
  <p class="ways">
    <button class="primary">Let it in</button>
    <button type="button" id="decline">Do not</button>
  </p>
</form>`

const ends = html`<section id="done" hidden>
    <h2 tabindex="-1">It is let in</h2>
    <p>
      Go back to the terminal, which has its key in a moment. The machine is among your devices: delete it
      there, and its key is gone with it.
    </p>
  </section>
  <section id="declined" hidden>
    <h2 tabindex="-1">Nothing was let in</h2>
    <p>You can close this page.</p>
  </section>
  <section id="nothing" hidden>
    <h2 tabindex="-1">No login waits here</h2>
    <p id="nothing-text"></p>
  </section>`

const page = () =>
  renderPage({
    title: "Log in a command line",
    links: [],
    style: read("LoginPage.css"),
    script: read("../../clients/files/login.js"),
    main: html`<div class="login">
      <h1>Log in a command line</h1>
      <noscript><p class="notice">This page needs JavaScript.</p></noscript>
      ${signIn} ${asked} ${ends}
    </div>`
  })

/** Serves the page: made once, the same for all. */
export const loginPage = () => {
  const { contentType, headers, text } = page()
  const own = { ...headers, "x-robots-tag": "noindex, nofollow" }
  return staticRoute(
    loginPath,
    staticAnswer({ bodies: packed(text), contentType, caching: "no-cache", headers: own })
  )
}
