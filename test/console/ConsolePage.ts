import { assert } from "@effect/vitest"
import type { Browser, BrowserContext, Locator, Page, Request } from "playwright-core"
import { until } from "#test/harness/Eventually.ts"

/** The console in a browser of its own, with all that it asked for and complained about. */
export interface ConsolePage {
  readonly page: Page
  readonly context: BrowserContext
  /** every request, the page's own first */
  readonly requests: ReadonlyArray<Request>
  /** types a key into the form and sends it */
  readonly enterKey: (key: string) => Promise<void>
  /** waits until a figure is the text */
  readonly shows: (figure: string, text: string) => Promise<void>
  readonly figure: (name: string) => Locator
  /** a row of a list, by what it says */
  readonly row: (list: string, label: string) => Locator
  /** the query of the address bar */
  readonly query: () => string
  /**
   * closes it, after seeing that nothing went wrong unseen: errors, violations of the policy, other origins, and anything
   * stored where a script could read it
   */
  readonly close: () => Promise<void>
}

interface Shape {
  /** the page's timers run on a clock that the test can move */
  readonly hasOwnClock?: boolean
  readonly width?: number
  readonly colorScheme?: "light" | "dark"
}

/** The browser itself logs an answer that says no, or does not come, whether or not the page expects it. */
const isRefusal = (text: string): boolean =>
  /status of (400|401|402|403|404|409|429|502|503|507)|net::ERR_FAILED/.test(text)

/** Opens the address; `keys` are those that must not be found anywhere afterwards. */
export const openConsole = async (
  browser: Browser,
  url: string,
  keys: ReadonlyArray<string>,
  { colorScheme = "light", hasOwnClock = false, width = 1280 }: Shape = {}
): Promise<ConsolePage> => {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    locale: "en-GB",
    reducedMotion: "reduce"
  })
  const page = await context.newPage()
  const complaints: Array<string> = []
  const requests: Array<Request> = []
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(error.stack ?? error.message))
  page.on("request", (request) => requests.push(request))
  if (hasOwnClock) await page.clock.install()
  await page.goto(url)

  const figure = (name: string): Locator => page.locator(`[data-figure=${name}]`)
  return {
    page,
    context,
    requests,
    enterKey: async (key) => {
      await page.getByLabel("API key").fill(key)
      await page.getByRole("button", { name: "Sign in", exact: true }).click()
    },
    figure,
    shows: (name, text) =>
      figure(name)
        .and(page.getByText(text, { exact: true }))
        .waitFor(),
    row: (list, label) =>
      page.getByRole("list", { name: list, exact: true }).getByRole("link").filter({ hasText: label }),
    query: () => new URL(page.url()).search,
    close: async () => {
      // The page shows an upload as done a moment before it forgets it.
      await until("the page keeps nothing", async () => {
        const stored = JSON.stringify(await storedIn(page))
        return stored === JSON.stringify(nothingStored) ? undefined : stored
      })
      const addresses = [...requests.map((request) => request.url()), page.url()]
      const cookies = await context.cookies()
      await context.close()
      assert.deepStrictEqual(
        complaints.filter((text) => !isRefusal(text)),
        []
      )
      const { origin } = new URL(url)
      assert.deepStrictEqual(
        addresses.filter((address) => !address.startsWith(`${origin}/`) && !address.startsWith("data:")),
        []
      )
      assert.deepStrictEqual(
        addresses.filter((address) => keys.some((key) => address.includes(key))),
        []
      )
      // The session's own: no script reads it, and no key is in it.
      assert.deepStrictEqual(
        cookies.filter(({ httpOnly, value }) => !httpOnly || keys.some((key) => value.includes(key))),
        []
      )
    }
  }
}

const nothingStored = { cookie: "", local: 0, session: 0, databases: 0, caches: 0, state: null }

/** All that is stored, in the form of `nothingStored`. Code of the browser is text here: its globals are not this process's. */
const storedIn = (page: Page): Promise<object> =>
  page.evaluate(`(async () => ({
    cookie: document.cookie,
    local: localStorage.length,
    session: sessionStorage.length,
    databases: (await indexedDB.databases()).length,
    caches: (await caches.keys()).length,
    state: history.state
  }))()`)

/** How much wider than the window the page is: 0, or it scrolls sideways. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

/** The position of an element in the document, independent of scrolling, in pixels. */
export const topOf = async (element: Locator): Promise<number> => {
  const scrolled: number = await element.page().evaluate("scrollY")
  return ((await element.boundingBox())?.y ?? NaN) + scrolled
}

/** The name of the focused element in a screen reader. */
export const focusedIn = (page: Page): Promise<string> =>
  page.evaluate(
    `document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? ""`
  )

/** Lets the page think that its tab is hidden, or seen. */
export const setHidden = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate(`
    Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} })
    document.dispatchEvent(new Event("visibilitychange"))
  `)
