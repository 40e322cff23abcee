import { assert, it } from "@effect/vitest"
import { Context, ManagedRuntime } from "effect"
import type { Browser, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll } from "vitest"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, focusedIn, openConsole, overflowOf } from "./ConsolePage.ts"

interface Person {
  readonly id: string
  readonly email: string
  readonly keyId: string
  readonly key: string
}

const hour = 3_600_000

/** Code of the browser: counts the appearances of the form, from the first moment of every load. */
const countForms = `
  globalThis.formsSeen = 0
  new MutationObserver(() => {
    if (document.querySelector(".key-form") !== null) globalThis.formsSeen += 1
  }).observe(document, { childList: true, subtree: true })
`

describeWith(chromiumPresent, "signing in at /, in Chromium,", () => {
  // A clock that can be stopped: sessions and links end by the server's own.
  const runtime = ManagedRuntime.make(TestServer.own())
  let stopClockAt: (millis: number | undefined) => void
  let server: Reachable
  let browser: Browser
  let opened: Array<ConsolePage> = []
  let people = 0

  const newKey = async (userId: string, fields: object = {}) => {
    const json = { name: "k", kind: "account", user_id: userId, ...fields }
    const made = await ask(server, "POST", "/api/v1/keys", { json })
    return { keyId: textAt(made, "id"), key: textAt(made, "key") }
  }
  const newPerson = async (): Promise<Person> => {
    const email = `session-${++people}@example.org`
    const json = { email, name: "P" }
    const id = textAt(await ask(server, "POST", "/api/v1/admin/users", { json }), "id")
    return { id, email, ...(await newKey(id)) }
  }
  const revoke = async (keyId: string): Promise<void> => {
    assert.strictEqual((await ask(server, "DELETE", `/api/v1/keys/${keyId}`)).status, 200)
  }
  const linkFor = async (person: Person): Promise<string> =>
    textAt(await ask(server, "POST", `/api/v1/admin/users/${person.id}/login-link`), "url")

  const openAt = async (path: string, keys: ReadonlyArray<string> = [], shape = {}): Promise<ConsolePage> => {
    const console = await openConsole(browser, `${server.url}${path}`, keys, shape)
    opened.push(console)
    return console
  }
  /** Signed in, at the models: they have a field for a long text. */
  const signIn = async (person: Person, shape = {}): Promise<ConsolePage> => {
    const console = await openAt("/?room=models", [person.key], shape)
    await console.enterKey(person.key)
    await isIn(console.page, person)
    return console
  }
  const isIn = (page: Page, { email }: Person): Promise<void> =>
    page.getByRole("button", { name: `Account: ${email}` }).waitFor()
  const asksToSignIn = async (page: Page, notice: string): Promise<void> => {
    await page.getByText(notice).waitFor()
    await page.getByLabel("API key").waitFor()
    assert.strictEqual(await page.getByLabel("API key").inputValue(), "")
  }
  const enter = async (page: Page, key: string): Promise<void> => {
    await page.getByLabel("API key").fill(key)
    await page.getByRole("button", { name: "Sign in", exact: true }).click()
  }
  const openMenu = (page: Page): Promise<void> => page.getByRole("button", { name: "Account: " }).click()
  const message = (page: Page) => page.getByRole("textbox", { name: "Message" })
  /** Also where the page has heard of the end by itself, and hides the button behind its form. */
  const run = (page: Page): Promise<void> => page.getByRole("button", { name: "Run" }).dispatchEvent("click")
  const tokensOf = (console: ConsolePage): number =>
    console.requests.filter((request) => request.url().endsWith("/api/session/token")).length

  beforeAll(async () => {
    await ensureConsoleBuilt()
    const own = Context.get(await runtime.context(), TestServer)
    server = own.server
    stopClockAt = own.stopClockAt
    browser = await sharedBrowser()
  })
  afterEach(async () => {
    stopClockAt(undefined)
    const pages = opened
    opened = []
    for (const console of pages) await console.close()
  })
  afterAll(() => runtime.dispose())

  it("stays signed in over a reload, which never shows the form, and has the key in one request alone", async () => {
    const person = await newPerson()
    const console = await signIn(person)
    const { context, page, query, requests } = console
    await page.addInitScript(countForms)
    await page.reload()
    await isIn(page, person)
    await page.getByRole("heading", { name: "Models", level: 1 }).waitFor()
    assert.strictEqual(query(), "?room=models")
    assert.strictEqual(await page.evaluate("formsSeen"), 0)

    const [cookie, ...others] = await context.cookies()
    assert.deepStrictEqual(others, [])
    assert.isTrue(cookie?.httpOnly)
    assert.strictEqual(await page.evaluate("document.cookie"), "")
    const sent = await Promise.all(
      requests.map(async (request) => ({ request, headers: await request.allHeaders() }))
    )
    const withKey = sent.filter(({ headers }) => JSON.stringify(headers).includes(person.key))
    assert.deepStrictEqual(
      withKey.map(({ request }) => `${request.method()} ${new URL(request.url()).pathname}`),
      ["POST /api/session"]
    )
    // The cookie goes to the session alone, and everything else by a token.
    const withCookie = sent.filter(({ headers }) => headers["cookie"] !== undefined)
    assert.isNotEmpty(withCookie)
    assert.deepStrictEqual(
      withCookie.filter(
        ({ request }) =>
          !/^\/(api\/session(\/token)?|\?.*|console\/.*)?$/.test(request.url().slice(server.url.length))
      ),
      []
    )
  })

  it("keeps the key in no object of its script once it is used", async () => {
    const person = await newPerson()
    const { context, page } = await signIn(person)
    const session = await context.newCDPSession(page)
    const heap: Array<string> = []
    session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => heap.push(chunk))
    await session.send("HeapProfiler.collectGarbage")
    await session.send("HeapProfiler.takeHeapSnapshot", {})
    const text = heap.join("")
    // The snapshot has the strings of the page.
    assert.include(text, person.email)
    assert.notInclude(text, person.key)
  })

  it("serves password managers: a name and a password in one form, and an end of it", async () => {
    const person = await newPerson()
    const { page } = await openAt("/", [person.key])
    const fields = page.locator("form.key-form input")
    await fields.nth(1).waitFor()
    assert.deepStrictEqual(
      await fields.evaluateAll((list) =>
        list.map((field) => ["name", "type", "autocomplete"].map((name) => Reflect.get(field, name)))
      ),
      [
        ["username", "text", "username"],
        ["password", "password", "current-password"]
      ]
    )
    // As a manager fills it: the value, and an event. Then the address is replaced, and the form gone.
    await page.evaluate(`history.replaceState = new Proxy(history.replaceState, {
      apply: (replace, self, given) => { globalThis.replaced = true; return replace.apply(self, given) }
    })`)
    await fields.nth(1).fill(person.key)
    await page.keyboard.press("Enter")
    await isIn(page, person)
    assert.isTrue(await page.evaluate("replaced"))
    assert.strictEqual(await fields.count(), 0)
  })

  it("signs out, in its other tabs too, and signs in there as well", async () => {
    const person = await newPerson()
    const { context, page } = await signIn(person)
    const other = await context.newPage()
    await other.goto(`${server.url}/?room=agents`)
    await isIn(other, person)
    await openMenu(page)
    await page.getByRole("button", { name: "Sign out", exact: true }).click()
    await asksToSignIn(page, "You are signed out.")
    await asksToSignIn(other, "You signed out in another tab.")
    // Nothing of what was read is left in either.
    for (const tab of [page, other]) assert.notInclude(await tab.content(), person.email)
    assert.deepStrictEqual(await context.cookies(), [])

    await enter(other, person.key)
    await isIn(other, person)
    await isIn(page, person)
    assert.strictEqual(new URL(other.url()).search, "?room=agents")
    // Another user in one tab is the user of both: the cookie is.
    const another = await newPerson()
    await other.goto(await linkFor(another))
    await other.getByRole("button", { name: "Sign in", exact: true }).click()
    await isIn(other, another)
    await isIn(page, another)
  })

  it("signs out everywhere, after a second press", async () => {
    const person = await newPerson()
    const one = await signIn(person)
    const two = await signIn(person)
    await openMenu(one.page)
    await one.page.getByRole("button", { name: "Sign out everywhere" }).click()
    assert.strictEqual(await focusedIn(one.page), "Stay signed in")
    await one.page.getByRole("button", { name: "Stay signed in" }).click()
    await one.page.reload()
    await isIn(one.page, person)
    await openMenu(one.page)
    await one.page.getByRole("button", { name: "Sign out everywhere" }).click()
    await one.page.getByRole("button", { name: "Sign out everywhere", exact: true }).click()
    await asksToSignIn(one.page, "You are signed out everywhere.")
    await two.page.getByRole("link", { name: "Agents" }).click()
    await asksToSignIn(two.page, "Your session has ended")
  })

  it("has a menu for the keyboard", async () => {
    const person = await newPerson()
    const { page } = await signIn(person, { width: 360 })
    const button = page.getByRole("button", { name: "Sign out", exact: true })
    await page.getByRole("button", { name: "Account: " }).focus()
    await page.keyboard.press("Enter")
    await button.waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    await page.keyboard.press("Tab")
    assert.strictEqual(await focusedIn(page), "Sign out")
    await page.keyboard.press("Escape")
    await button.waitFor({ state: "hidden" })
    assert.include(await focusedIn(page), person.email)
    await page.keyboard.press("Enter")
    await button.waitFor()
    await message(page).click()
    await button.waitFor({ state: "hidden" })
  })

  it("asks again once its key is revoked, and loses nothing that was typed", async () => {
    const person = await newPerson()
    const { page, query } = await signIn(person)
    await message(page).fill("a question that took long to write")
    const { key } = await newKey(person.id)
    await revoke(person.keyId)
    await run(page)
    await asksToSignIn(page, "Your session has ended")
    assert.isFalse(await message(page).isVisible())
    assert.strictEqual(await page.locator("input[name=username]").inputValue(), person.email)
    await enter(page, key)
    await isIn(page, person)
    assert.strictEqual(await message(page).inputValue(), "a question that took long to write")
    assert.strictEqual(query(), "?room=models")
    assert.strictEqual(await page.evaluate("document.activeElement?.id"), "main")

    // Another user finds nothing of it.
    const another = await newPerson()
    await ask(server, "DELETE", `/api/v1/admin/users/${person.id}`)
    await run(page)
    await asksToSignIn(page, "Your session has ended")
    await enter(page, another.key)
    await isIn(page, another)
    assert.strictEqual(await message(page).inputValue(), "")
    assert.notInclude(await page.content(), person.email)
  })

  it("goes on after a sleep of hours with another token, and asks to sign in after a longer one", async () => {
    const person = await newPerson()
    const console = await signIn(person, { hasOwnClock: true })
    const { page } = console
    assert.strictEqual(tokensOf(console), 1)
    await page.clock.fastForward(3 * hour)
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByText("No sessions yet").waitFor()
    assert.strictEqual(tokensOf(console), 2)
    stopClockAt(Date.now() + 13 * hour)
    await page.clock.fastForward(13 * hour)
    await asksToSignIn(page, "Your session has ended")
    await page.reload()
    await page.getByLabel("API key").waitFor()
  })

  it("asks for few tokens where the clock of its machine is wrong", async () => {
    const person = await newPerson()
    for (const offset of [-48 * hour, 48 * hour]) {
      const console = await openAt("/healthz", [person.key])
      await console.page.clock.install({ time: Date.now() + offset })
      await console.page.goto(`${server.url}/?room=agents`)
      await console.enterKey(person.key)
      await console.page.getByText("No sessions yet").waitFor()
      await console.page.getByRole("link", { name: "Models" }).click()
      await message(console.page).waitFor()
      assert.strictEqual(tokensOf(console), 1)
    }
  })

  it("sends a request again once, with another token, where the server did not take the first", async () => {
    const person = await newPerson()
    const console = await signIn(person)
    const { page } = console
    let refusals = 1
    await page.route("**/api/v1/agent/sessions**", (route) =>
      refusals-- > 0
        ? route.fulfill({ status: 401, json: { error: "Invalid or missing API key" } })
        : route.continue()
    )
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByText("No sessions yet").waitFor()
    assert.strictEqual(tokensOf(console), 2)
  })

  it("says that the server is away before it knows whether there is a session, and goes on by itself", async () => {
    const person = await newPerson()
    const { page } = await signIn(person)
    await page.route("**/api/session", (route) => route.abort())
    await page.addInitScript(countForms)
    await page.reload()
    await page.getByText("The server does not answer. Trying again").waitFor()
    await page.unroute("**/api/session")
    await page.getByRole("button", { name: "Try again now" }).click()
    await isIn(page, person)
    assert.strictEqual(await page.evaluate("formsSeen"), 0)
  })

  it("signs in by a login link on a press alone, once", async () => {
    const person = await newPerson()
    const link = await linkFor(person)
    const ticket = new URL(link).hash.slice(1)
    assert.isAbove(ticket.length, 20)
    // A scanner asks for the page; another one runs its script.
    assert.strictEqual((await fetch(link)).status, 200)
    const scanner = await openAt("/login", [ticket])
    await scanner.page.goto(link)
    await scanner.page.getByRole("button", { name: "Sign in", exact: true }).waitFor()
    await scanner.page.waitForLoadState("networkidle")

    const { context, page, requests } = await openAt("/healthz", [])
    await page.goto(link)
    await page.getByRole("button", { name: "Sign in", exact: true }).waitFor()
    assert.strictEqual(page.url(), `${server.url}/`)
    assert.deepStrictEqual(await context.cookies(), [])
    await page.getByRole("button", { name: "Sign in", exact: true }).click()
    await isIn(page, person)
    await page.reload()
    await isIn(page, person)
    // No address that was asked for has it: a fragment is not sent.
    const sent = requests.filter((request) => new URL(request.url()).href.split("#")[0]?.includes(ticket))
    assert.deepStrictEqual(sent, [])
    opened = opened.filter((one) => one.page !== page)
    await context.close()

    await scanner.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await scanner.page.getByRole("alert").filter({ hasText: "was used already, or has expired" }).waitFor()
    await scanner.page.getByText("Ask an administrator for another one").waitFor()
    await scanner.page.getByRole("button", { name: "Go on without it" }).click()
    await scanner.page.getByLabel("API key").waitFor()
    opened = opened.filter((one) => one !== scanner)
    await scanner.context.close()
  })

  it("says so where a login link has expired", async () => {
    const link = await linkFor(await newPerson())
    stopClockAt(Date.now() + hour)
    const { context, page } = await openAt("/healthz", [])
    await page.goto(link)
    await page.getByRole("button", { name: "Sign in", exact: true }).click()
    await page.getByRole("alert").filter({ hasText: "has expired" }).waitFor()
    assert.deepStrictEqual(await context.cookies(), [])
  })

  it("opens the room of files to a key that may read, and says what it may not do", async () => {
    const person = await newPerson()
    const { key } = await newKey(person.id, { scopes: ["read"] })
    const { enterKey, page } = await openAt("/", [key])
    await enterKey(key)
    await page.getByRole("heading", { name: "Files", level: 1 }).waitFor()
    await page.getByRole("button", { name: "New directory" }).click()
    const dialog = page.getByRole("dialog", { name: "New directory" })
    await dialog.getByLabel("Name").fill("mine")
    await page.keyboard.press("Enter")
    await dialog.getByRole("alert").filter({ hasText: /scope/ }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("link", { name: "Devices" }).click()
    await page.getByText(/scope/).waitFor()
    assert.strictEqual(await page.locator(".trouble").count(), 0)
  })

  it("says that a key whose scopes open no room opens none, and leaves no session behind", async () => {
    const person = await newPerson()
    const { key } = await newKey(person.id, { scopes: ["replicate"] })
    const { context, enterKey, page } = await openAt("/", [key])
    await enterKey(key)
    await page.getByRole("alert").filter({ hasText: /scope/ }).waitFor()
    assert.strictEqual(await page.getByRole("alert").filter({ hasText: "Try again" }).count(), 0)
    assert.deepStrictEqual(await context.cookies(), [])
  })

  it("says so where the browser does not keep the cookie", async () => {
    const secure = ManagedRuntime.make(TestServer.own({ baseUrl: "https://signalbox.example" }))
    try {
      const { adminKey, port } = Context.get(await secure.context(), TestServer)
      // A Secure cookie, at an address that is neither https nor this machine's to the browser.
      const { enterKey, page } = await openConsole(browser, `http://signalbox.test:${port}/`, [adminKey])
      await enterKey(adminKey)
      await page.getByRole("alert").filter({ hasText: "did not keep the session" }).waitFor()
      await page.context().close()
    } finally {
      await secure.dispose()
    }
  })

  it("takes a router's key into the tab's memory: a reload asks again", async () => {
    const person = await newPerson()
    const { key } = await newKey(person.id, { kind: "router" })
    const { context, enterKey, page } = await openAt("/?room=agents", [key])
    await page.getByText("a reload asks for it again").waitFor()
    await enterKey(key)
    await page.getByText("No sessions yet").waitFor()
    assert.deepStrictEqual(await context.cookies(), [])
    await page.getByRole("button", { name: "Account: Router key" }).click()
    await page.getByText("It is in this tab’s memory: a reload asks for it again.").waitFor()
    await page.reload()
    await page.getByLabel("API key").waitFor()
    await enterKey(key)
    await page.getByText("No sessions yet").waitFor()
  })
})
