import { assert, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { ask, createSite, type Reachable, type TestSite } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, openConsole } from "./ConsolePage.ts"

describeWith(chromiumPresent, "how long a site keeps its statistics, in Chromium,", () => {
  let server: Reachable
  let browser: Browser
  let site: TestSite
  let opened: ConsolePage | undefined

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = (await sharedServer()).server
    browser = await sharedBrowser()
    site = await createSite(server)
    await ask(server, "POST", "/api/v1/collect", { key: site.secret, json: { url: "/", visitor: "v" } })
  })
  afterEach(() => opened?.close())

  const siteOf = async (): Promise<Record<string, unknown> | undefined> => {
    const { body } = await ask(server, "GET", "/api/v1/sites")
    const { sites } = body as { sites: ReadonlyArray<Record<string, unknown>> }
    return sites.find(({ id }) => id === site.id)
  }

  it("is set there, and statistics are reset after a second press", async () => {
    opened = await openConsole(browser, `${server.url}/?site=${site.id}`, [server.adminKey()])
    const { page } = opened
    await opened.enterKey(server.adminKey())
    await page.getByText("Snippet, secret and sharing").click()
    const form = page.getByRole("form", { name: "Retention" })
    await form.getByLabel("Days").fill("90")
    await form.getByRole("button", { name: "Save" }).click()
    await page.getByText("Older days are deleted from now on.").waitFor()
    assert.strictEqual((await siteOf())?.["retentionDays"], 90)
    await form.getByLabel("Days").fill("")
    await form.getByRole("button", { name: "Save" }).click()
    await page.getByText("All days are kept.").waitFor()
    assert.isNull((await siteOf())?.["retentionDays"])

    await page.getByRole("button", { name: "Reset statistics" }).click()
    await page.getByRole("button", { name: "Keep it" }).click()
    assert.isNull((await siteOf())?.["resetAt"])
    await page.getByRole("button", { name: "Reset statistics" }).click()
    await page.getByRole("button", { name: "Delete them" }).click()
    await page.getByText("Counting has begun anew.").waitFor()
    assert.isNotNull((await siteOf())?.["resetAt"])
  })
})
