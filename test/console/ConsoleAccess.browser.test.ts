import { assert, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { afterAll, afterEach, beforeAll } from "vitest"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { ask, createSite, textAt, type TestSite } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, openConsole, overflowOf } from "./ConsolePage.ts"

const unknownKey = "sk_0000000000000000000000000000000000000000"

describeWith(chromiumPresent, "who sees what at /, in Chromium,", () => {
  let server: ServerProcess
  let browser: Browser
  let site: TestSite
  let opened: Array<ConsolePage> = []

  const collect = async (secret: string, events: ReadonlyArray<object>): Promise<void> => {
    const answer = await ask(server, "POST", "/api/v1/collect", { key: secret, json: events })
    assert.strictEqual(answer.status, 202)
  }
  const open = async (query: string, shape = {}): Promise<ConsolePage> => {
    const keys = [server.adminKey(), unknownKey]
    const console = await openConsole(browser, `${server.url}/${query}`, keys, shape)
    opened.push(console)
    return console
  }
  const newKey = async (userId?: string): Promise<{ readonly id: string; readonly key: string }> => {
    const of = userId === undefined ? {} : { user_id: userId }
    const made = await ask(server, "POST", "/api/v1/keys", { json: { name: "k", kind: "account", ...of } })
    return { id: textAt(made, "id"), key: textAt(made, "key") }
  }

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = await startServer()
    browser = await sharedBrowser()
    site = await createSite(server)
    await collect(site.secret, [{ url: "/", visitor: "a" }])
  })
  afterEach(async () => {
    const pages = opened
    opened = []
    for (const console of pages) await console.close()
  })

  afterAll(() => server?.dispose())

  it("shows which rooms are up before there is a key, and weighs less than 100 KB", async () => {
    const { page, requests } = await open("")
    const rooms = page.getByRole("region", { name: "Rooms" }).getByRole("listitem")
    await rooms.filter({ hasText: /Accounts.*up$/ }).waitFor()
    await rooms.filter({ hasText: /Models.*up$/ }).waitFor()
    await rooms.filter({ hasText: /Analytics.*up$/ }).waitFor()
    await page.waitForLoadState("networkidle")
    const sizes = await Promise.all(
      requests.filter((request) => !request.url().startsWith("data:")).map((request) => request.sizes())
    )
    const bytes = sizes.reduce((sum, size) => sum + size.responseHeadersSize + size.responseBodySize, 0)
    assert.isBelow(bytes, 100_000)
    assert.isAbove(bytes, 10_000)
  })

  it("takes a key from the keyboard at once", async () => {
    const { page, shows } = await open(`?site=${site.id}`)
    const field = page.getByLabel("API key").and(page.locator(":focus"))
    await field.waitFor()
    await page.keyboard.type(server.adminKey())
    await page.keyboard.press("Enter")
    await shows("visitors", "1")
  })

  it("refuses a wrong key in words, and keeps what was typed", async () => {
    const { enterKey, page, shows } = await open(`?site=${site.id}`)
    await enterKey(unknownKey)
    await page.getByRole("alert").filter({ hasText: "does not know this key" }).waitFor()
    assert.strictEqual(await page.getByLabel("API key").inputValue(), unknownKey)
    assert.strictEqual(await page.getByLabel("API key").getAttribute("type"), "password")
    await enterKey(site.secret)
    await page.getByRole("alert").filter({ hasText: "That is a site’s secret" }).waitFor()
    await enterKey(`  ${server.adminKey()} `)
    await shows("visitors", "1")
  })

  it("waits for nothing for ever: it says that a server hangs, and goes on with it", async () => {
    const { enterKey, figure, page } = await open("?room=agents", { hasOwnClock: true })
    const light = page.locator(".rooms-light")
    await light.filter({ hasText: "All rooms up" }).waitFor()
    process.kill(server.pid(), "SIGSTOP")
    try {
      await enterKey(server.adminKey())
      await page.locator("form[aria-busy=true]").waitFor()
      await page.clock.runFor(40_000)
      await page.getByRole("alert").filter({ hasText: "has not answered for 20 seconds" }).waitFor()
      await light.filter({ hasText: "No answer" }).waitFor()
    } finally {
      process.kill(server.pid(), "SIGCONT")
    }
    await enterKey(server.adminKey())
    await page.getByText("No sessions yet").waitFor()
    await page.clock.runFor(15_000)
    await light.filter({ hasText: "All rooms up" }).waitFor()
    process.kill(server.pid(), "SIGSTOP")
    try {
      // The time for an answer begins with the request, which comes a moment after the words.
      const asked = page.waitForRequest((request) => request.url().endsWith("/api/v1/sites"))
      await page.getByRole("link", { name: "Sites" }).click()
      await page.getByText("Asking for your sites …").waitFor()
      await asked
      // From then on no timer runs: nothing is asked again unless the reader says so.
      const now: number = await page.evaluate("Date.now()")
      await page.clock.pauseAt(now + 21_000)
      await page.getByText("The server has not answered for 20 seconds").waitFor()
      await page.getByText("No answer about your sites yet.").waitFor()
      // The way to the other rooms stays.
      await page.getByRole("link", { name: "Models" }).waitFor()
    } finally {
      process.kill(server.pid(), "SIGCONT")
    }
    await page.getByRole("button", { name: "Try again now" }).click()
    await page.getByRole("heading", { name: "Sites", level: 1 }).waitFor()
    await page.clock.resume()
    await page.getByRole("link", { name: "Models" }).click()
    await figure("balance").filter({ hasText: "$" }).waitFor()
  })

  it("lets its light say at once what a request of the page found out: no answer", async () => {
    const { enterKey, page } = await open("", { hasOwnClock: true })
    const light = page.locator(".rooms-light")
    await light.filter({ hasText: "All rooms up" }).waitFor()
    // No timer runs from here on: the light cannot learn it at its next turn.
    await page.clock.pauseAt(Date.now() + 10_000)
    await page.route("**/*", (route) => route.abort())
    await enterKey(server.adminKey())
    await page.getByRole("alert").filter({ hasText: "The server does not answer" }).waitFor()
    await light.filter({ hasText: "No answer" }).waitFor()
    await page.unroute("**/*")
    await page.clock.runFor(5_000)
    await light.filter({ hasText: "All rooms up" }).waitFor()
  })

  it("leads from no site at all to the first event", async () => {
    const user = await ask(server, "POST", "/api/v1/admin/users", {
      json: { email: "new@example.org", name: "New" }
    })
    const { key } = await newKey(textAt(user, "id"))
    const { context, enterKey, page, query, shows } = await open("")
    await context.grantPermissions(["clipboard-read", "clipboard-write"])
    await enterKey(key)
    await page.getByRole("heading", { name: "Count the first site" }).waitFor()
    const form = page.locator("form")
    await form.getByLabel("Domain").fill("co.uk")
    await form.getByRole("button", { name: "Make the site" }).click()
    await page
      .getByRole("alert")
      .filter({ hasText: /domain/i })
      .waitFor()
    assert.strictEqual(await form.getByLabel("Domain").getAttribute("aria-invalid"), "true")
    await form.getByLabel("Domain").fill("https://www.blog.example/about")
    await form.getByRole("button", { name: "Make the site" }).click()

    await page.getByText("Waiting for the first event").waitFor()
    const id = new URLSearchParams(query()).get("site") ?? ""
    const snippet = `<script defer data-site="${id}" src="${server.url}/a.js"></script>`
    await page.getByText(snippet).waitFor()
    await page.getByRole("button", { name: "Copy the snippet" }).click()
    await page.getByText("Copied").waitFor()
    assert.strictEqual(await page.evaluate("navigator.clipboard.readText()"), snippet)
    const command = await page.getByText("/api/v1/collect").innerText()
    const [secret = ""] = /ssk_\w+/.exec(command) ?? []

    await collect(secret, [{ url: "/", visitor: "first" }])
    await shows("visitors", "1")
    await page.getByText("The first event is here.").waitFor()
  })

  it("says what would make countries known, and shows no time that nobody measured", async () => {
    const { enterKey, page, shows } = await open(`?site=${site.id}`)
    await enterKey(server.adminKey())
    await shows("avgDurationSec", "–")
    await page.getByText("No country is known.").getByText("GEOIP_DB").waitFor()
  })

  it("tells of a site that counts the domain already before it makes a second one", async () => {
    const user = await ask(server, "POST", "/api/v1/admin/users", {
      json: { email: "twin@example.org", name: "Twin" }
    })
    const { key } = await newKey(textAt(user, "id"))
    await ask(server, "POST", "/api/v1/sites", {
      key,
      json: { name: "The shop", domain: "shop.example.com" }
    })
    const { enterKey, page } = await open("?site=")
    const sites = async (): Promise<number> => {
      const { body } = await ask(server, "GET", "/api/v1/sites", { key })
      return (body as { readonly sites: ReadonlyArray<unknown> }).sites.length
    }
    await enterKey(key)
    // An owner of one site begins there.
    await page.getByRole("heading", { name: "The shop", level: 1 }).waitFor()
    await page.getByRole("link", { name: "Signalbox" }).click()
    await page.getByText("New site").click()
    await page.getByLabel("Domain").fill("https://WWW.Shop.Example.com/cart")
    await page.getByRole("button", { name: "Make the site" }).click()
    const told = page.getByRole("alert").filter({ hasText: "The shop counts shop.example.com already" })
    await told.waitFor()
    assert.strictEqual(await sites(), 1)
    await page.getByLabel("Domain").fill("blog.example.com")
    await told.waitFor({ state: "detached" })
    await page.getByLabel("Domain").fill("shop.example.com")
    await page.getByRole("button", { name: "Make a second site" }).click()
    await page.getByText("Waiting for the first event").waitFor()
    assert.strictEqual(await sites(), 2)
  })

  it("shows how to send events to a site that has none, and a new secret once", async () => {
    const empty = await createSite(server, "empty.example")
    const { enterKey, page } = await open(`?site=${empty.id}`, { width: 360 })
    await enterKey(server.adminKey())
    await page.getByText("Waiting for the first event").waitFor()
    await page.getByText("Bearer SITE_SECRET").waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByRole("button", { name: "Make a new one" }).click()
    await page.getByText("is shown only now").waitFor()
    const [secret = ""] = /ssk_\w+/.exec(await page.getByText("/api/v1/collect").innerText()) ?? []
    assert.isAtMost(await overflowOf(page), 0)
    await collect(secret, [{ url: "/", visitor: "first" }])
    await page.getByText("The first event is here.").waitFor()
  })

  it("shows a public site to everybody who has the link, and nothing that is the owner’s", async () => {
    const owner = await open(`?site=${site.id}`)
    await owner.enterKey(server.adminKey())
    await owner.page.getByText("Snippet, secret and sharing").click()
    await owner.page.getByLabel("Everybody who has the link").check()
    const link = await owner.page.getByText(`${server.url}/?site=`).innerText()

    const { page, requests, shows } = await open(new URL(link).search)
    await shows("visitors", "1")
    await page.getByText("Shared view").waitFor()
    await page.getByRole("list", { name: "Top pages" }).getByRole("link").waitFor()
    await shows("live", "1")
    assert.strictEqual(await page.getByText("Not counted").count(), 0)
    assert.strictEqual(await page.getByText("Snippet, secret and sharing").count(), 0)
    for (const request of requests) assert.notProperty(await request.allHeaders(), "authorization")

    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByLabel("API key").waitFor()
    await page.getByRole("button", { name: "Back to the shared view" }).click()
    await shows("visitors", "1")
    await owner.page.getByLabel("Everybody who has the link").uncheck()
    await owner.page.getByLabel("Everybody who has the link").and(owner.page.locator(":enabled")).waitFor()
    await page.reload()
    await page.getByLabel("API key").waitFor()
  })

  it("says so where a site is not one’s own", async () => {
    const { enterKey, page } = await open("?site=st_0000000000000000000000")
    await enterKey(server.adminKey())
    await page.getByRole("heading", { name: "No such site" }).waitFor()
    await page.getByRole("link", { name: "All sites" }).click()
    await page.getByRole("heading", { name: "Sites" }).waitFor()
  })

  it("takes no other methods than GET and HEAD", async () => {
    for (const [method, path, status] of [
      ["HEAD", "/", 200],
      ["POST", "/", 405],
      ["PUT", "/console/index.html", 405],
      ["GET", "/console/a/b", 404]
    ] as const) {
      const answer = await ask(server, method, path, { key: "" })
      assert.strictEqual(answer.status, status, `${method} ${path}`)
      if (status === 405) assert.strictEqual(answer.headers.get("allow"), "GET, HEAD")
    }
  })

  // It starts a second server, which takes its time beside the first on a busy machine.
  it("says where neither analytics nor models run", async () => {
    const other = await startServer({ env: { ROOMS: "accounts" } })
    try {
      const console = await openConsole(browser, `${other.url}/`, [other.adminKey()])
      opened.push(console)
      await console.page
        .getByRole("listitem")
        .filter({ hasText: /Analytics.*not running here$/ })
        .waitFor()
      await console.page
        .getByRole("listitem")
        .filter({ hasText: /Models.*not running here$/ })
        .waitFor()
      await console.enterKey(other.adminKey())
      await console.page.getByRole("alert").filter({ hasText: "neither analytics nor models" }).waitFor()
      // A session that opens nothing would be in the way of the next key.
      assert.deepStrictEqual(await console.context.cookies(), [])
    } finally {
      await other.dispose()
    }
  })
})
