import { assert, it } from "@effect/vitest"
import type { Browser, Route } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { ask, createSite, type TestSite, type Reachable } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, focusedIn, openConsole, overflowOf, setHidden, topOf } from "./ConsolePage.ts"

const desktop = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
const phone =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"

const german = (visitor: string) => ({ visitor, country: "DE", userAgent: desktop })
const american = (visitor: string) => ({ visitor, country: "US", userAgent: phone })

/** Five visitors, three of them German, and six page views, four of them theirs. */
const traffic = [
  { ...german("g1"), url: "/", referrer: "https://www.google.com/" },
  { ...german("g1"), url: "/pricing" },
  { ...german("g1"), url: "/pricing", name: "Signup" },
  { ...german("g1"), url: "/pricing", name: "<img src=/console/x>" },
  { ...german("g2"), url: "/docs" },
  { ...german("g3"), url: "/" },
  { ...american("u1"), url: "/" },
  { ...american("u2"), url: "/pricing?utm_campaign=autumn" },
  { url: "/", userAgent: "Googlebot/2.1 (+http://www.google.com/bot.html)" }
]

describeWith(chromiumPresent, "a site's figures at /, in Chromium,", () => {
  let server: Reachable
  let browser: Browser
  let site: TestSite
  let opened: Array<ConsolePage> = []

  const collect = async (to: TestSite, events: ReadonlyArray<object>): Promise<void> => {
    const answer = await ask(server, "POST", "/api/v1/collect", { key: to.secret, json: events })
    assert.strictEqual(answer.status, 202)
  }
  /** The console at the address, with the key given. */
  const open = async (query: string, shape = {}): Promise<ConsolePage> => {
    const console = await openConsole(browser, `${server.url}/${query}`, [server.adminKey()], shape)
    opened.push(console)
    await console.enterKey(server.adminKey())
    return console
  }

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = (await sharedServer()).server
    browser = await sharedBrowser()
    site = await createSite(server)
    await createSite(server, "other.example")
    await collect(site, traffic)
  })
  afterEach(async () => {
    const pages = opened
    opened = []
    for (const console of pages) await console.close()
  })

  it("lists the sites, and shows the figures of the one that is chosen", async () => {
    const { page, query, row, shows } = await open("")
    await page.getByRole("link", { name: "example.com" }).click()
    assert.strictEqual(query(), `?site=${site.id}`)
    await shows("visitors", "5")
    await shows("pageviews", "6")
    assert.strictEqual(await page.title(), "Test · Signalbox")
    assert.match(await row("Top pages", "/pricing").innerText(), /2[\s\S]*40%/)
    await row("Sources", "Google").waitFor()
    assert.match(await row("Goals", "Signup").innerText(), /1[\s\S]*1[\s\S]*20%/)
    // Text from visitors is shown as text in any form.
    await row("Goals", "<img src=/console/x>").waitFor()
    assert.strictEqual(await page.locator("img").count(), 0)
    await page.getByText("Bots and crawlers").waitFor()
    await page.getByRole("link", { name: "Bots", exact: true }).click()
    await page.getByText("Googlebot").waitFor()
  })

  it("moves while events arrive, without being asked", async () => {
    const live = await createSite(server, "live.example")
    await collect(live, [{ url: "/first", visitor: "a" }])
    const { figure, page, shows } = await open(`?site=${live.id}`, { hasOwnClock: true })
    await shows("live", "1")
    await page.getByRole("img", { name: "1 page view in the last 30 minutes" }).waitFor()
    for (const visitors of [2, 3]) {
      await collect(live, [{ url: `/page-${visitors}`, visitor: `v${visitors}` }])
      await page.clock.fastForward(5_000)
      await shows("live", String(visitors))
    }
    await page.getByRole("img", { name: "3 page views in the last 30 minutes" }).waitFor()
    await page.getByRole("list", { name: "Pages seen now" }).getByText("/page-3").waitFor()
    assert.strictEqual(await figure("live").locator("xpath=..").getAttribute("aria-live"), "polite")
  })

  it("asks for nothing while its tab is hidden, and at once when it is seen again", async () => {
    const { page, requests, shows } = await open(`?site=${site.id}`, { hasOwnClock: true })
    await shows("visitors", "5")
    await page.waitForLoadState("networkidle")
    await setHidden(page, true)
    const before = requests.length
    await page.clock.runFor(10 * 60_000)
    await page.evaluate(`fetch("/healthz").then((response) => response.text())`)
    assert.deepStrictEqual(
      requests.slice(before).map((request) => new URL(request.url()).pathname),
      ["/healthz"]
    )
    await setHidden(page, false)
    await until("a poll", async () =>
      requests.slice(before).some((request) => request.url().endsWith("/realtime")) ? undefined : "no request"
    )
  })

  it("narrows everything to a row that is clicked; the back button undoes it", async () => {
    const { page, query, row, shows } = await open(`?site=${site.id}`)
    await row("Countries", "Germany").click()
    await shows("visitors", "3")
    await shows("pageviews", "4")
    assert.strictEqual(query(), `?site=${site.id}&country=DE`)
    await row("Top pages", "/docs").waitFor()
    await row("Countries", "United States").waitFor({ state: "detached" })

    await row("Top pages", "/pricing").click()
    await shows("visitors", "1")
    assert.strictEqual(query(), `?site=${site.id}&country=DE&page=%2Fpricing`)
    await page.goBack()
    await shows("visitors", "3")
    await page.goBack()
    await shows("visitors", "5")
    assert.strictEqual(query(), `?site=${site.id}`)
    await page.goForward()
    await shows("visitors", "3")
    await page.getByRole("button", { name: "Country Germany remove the filter" }).click()
    await shows("visitors", "5")
  })

  it("keeps what is unknown apart: it can be filtered by, too", async () => {
    const { query, row, shows } = await open(`?site=${site.id}`)
    await row("Sources", "Direct or unknown").click()
    await shows("visitors", "4")
    assert.strictEqual(query(), `?site=${site.id}&source=%28none%29`)
    await row("Sources", "Direct or unknown").click()
    await shows("visitors", "5")
  })

  it("is used by keyboard alone: rows, filters, periods, tabs, and the chart", async () => {
    const { figure, page, query, row, shows } = await open(`?site=${site.id}`)
    await row("Countries", "Germany").waitFor()
    await shows("visitors", "5")
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let presses = 0; presses < 80; presses++) {
        await page.keyboard.press("Tab")
        if (name.test(await focusedIn(page))) return
      }
      assert.fail(`no ${name.source} among what Tab reaches`)
    }
    await tabTo(/^Time series/)
    await page.keyboard.press("End")
    await until("the readout", async () => {
      const text = await figure("readout").innerText()
      return text.endsWith("5 visitors, 6 page views") ? undefined : text
    })
    await page.keyboard.press("ArrowLeft")
    await figure("readout").filter({ hasText: "0 visitors, 0 page views" }).waitFor()
    await tabTo(/^Entry$/)
    await page.keyboard.press("Enter")
    await page.getByRole("list", { name: "Entry", exact: true }).waitFor()
    await tabTo(/^Germany/)
    await page.keyboard.press("Enter")
    await shows("visitors", "3")
    await page.getByRole("button", { name: "Country Germany remove the filter" }).focus()
    await page.keyboard.press("Enter")
    await shows("visitors", "5")
    await page.getByRole("link", { name: /^7 days/ }).focus()
    await page.keyboard.press("Enter")
    await until("the period", async () =>
      query() === `?site=${site.id}&period=7d&pages=entry` ? undefined : query()
    )
  })

  it("opens the same view from a link, once the key is typed", async () => {
    const query = `?site=${site.id}&period=7d&country=DE&page=%2F&pages=exit`
    const console = await open(query)
    await console.shows("visitors", "2")
    assert.strictEqual(console.query(), query)
    await console.page.getByRole("list", { name: "Exit", exact: true }).waitFor()
    assert.strictEqual(
      await console.page.getByRole("link", { name: /^7 days/ }).getAttribute("aria-current"),
      "true"
    )
    await console.page.getByRole("button", { name: "Page / remove the filter" }).waitFor()
  })

  it("shows dates of one's choice", async () => {
    const { page, query, shows } = await open(`?site=${site.id}&period=7d`)
    await shows("visitors", "5")
    await page.getByRole("button", { name: "Dates" }).click()
    await page.getByLabel("From").fill("2020-01-01")
    await page.getByLabel("to", { exact: true }).fill("2020-01-31")
    await page.getByRole("button", { name: "Show" }).click()
    await shows("visitors", "0")
    assert.strictEqual(query(), `?site=${site.id}&period=custom&from=2020-01-01&to=2020-01-31`)
    await page.getByText("No visits in this period").waitFor()
  })

  it("never shows an older answer over a newer one, and dims instead of jumping", async () => {
    const { figure, page, row, shows } = await open(`?site=${site.id}`)
    await shows("visitors", "5")
    const held: Array<Route> = []
    await page.route(/\/stats\?.*country=DE/, (route) => void held.push(route))
    const place = await topOf(figure("visitors"))
    await row("Countries", "Germany").click()
    await page.locator(".figures[aria-busy=true]").waitFor()
    await shows("visitors", "5")
    await page.getByRole("button", { name: "Country Germany remove the filter" }).click()
    await page.locator(".figures[aria-busy=false]").waitFor()
    assert.strictEqual(await topOf(figure("visitors")), place)
    const [late] = held
    assert.isDefined(late)
    await late
      ?.fulfill({ json: {} })
      .catch((error: unknown) => assert.match(String(error), /closed|abort|handled/i))
    await row("Countries", "United States").click()
    await shows("visitors", "2")
  })

  it.each([
    [429, "Too many requests at once"],
    [503, "The statistics store is away"]
  ])("says what it waits for after %i, and goes on by itself", async (status, words) => {
    const { page, shows } = await open(`?site=${site.id}`)
    await shows("visitors", "5")
    await page.route(/\/stats\?/, (route) =>
      route.fulfill({
        status,
        headers: { "retry-after": "1" },
        json: { error: "The statistics store is away" }
      })
    )
    await page.getByRole("link", { name: /^Today/ }).click()
    const note = page.getByText(`${words}. Trying again every second`)
    await note.waitFor()
    await shows("visitors", "5")
    await page.unroute(/\/stats\?/)
    await note.waitFor({ state: "detached" })
    await page.locator(".figures[aria-busy=false]").waitFor()
  })

  it.each(["light", "dark"] as const)("fits a phone, in %s", async (colorScheme) => {
    const { page, row, shows } = await open(`?site=${site.id}&country=DE&page=%2Fpricing&period=12mo`, {
      width: 360,
      colorScheme
    })
    await shows("visitors", "1")
    await row("Goals", "Signup").waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByText("Snippet, secret and sharing").click()
    assert.isAtMost(await overflowOf(page), 0)
  })
})
