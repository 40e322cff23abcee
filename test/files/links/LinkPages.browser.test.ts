import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"
import type { BrowserContext, Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import type { ShareLink } from "#schemas/files/ShareLink.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { pythonClients, pythonHome } from "#test/harness/PythonClients.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer } from "#test/harness/TestServer.ts"

const run = promisify(execFile)

/** As messengers, scanners of mail and indexes ask: some take any type, some take that of a page. */
const messengers: ReadonlyArray<readonly [agent: string, accept: string]> = [
  ["Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "*/*"],
  ["WhatsApp/2.23.20.0", "*/*"],
  ["TelegramBot (like TwitterBot)", "*/*"],
  ["Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)", "*/*"],
  ["facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "*/*"],
  ["Mozilla/5.0 (Windows NT 6.1; WOW64) MicrosoftPreview/2.0 +https://aka.ms/MicrosoftPreview", "*/*"],
  ["LinkedInBot/1.0 (compatible; Mozilla/5.0; +http://www.linkedin.com)", "text/html"],
  ["Twitterbot/1.0", "*/*"],
  ["Synapse (bot; +https://github.com/matrix-org/synapse)", "*/*"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "text/html,application/xhtml+xml,*/*;q=0.8"
  ]
]

/** Looks at a link as each of them, by python-requests, and prints the pages that it saw. */
const lookByRequests = `import json, requests, sys
url, messengers = sys.argv[1], json.loads(sys.argv[2])
pages = []
for agent, accept in messengers:
    headers = {"User-Agent": agent, "Accept": accept}
    requests.head(url, headers=headers).raise_for_status()
    answer = requests.get(url, headers=headers)
    answer.raise_for_status()
    pages.append(answer.text)
print(json.dumps(pages))`

describeWith(chromiumPresent, "the pages of links in Chromium", () => {
  let url: string
  let key: string
  let context: BrowserContext
  let plain: BrowserContext
  const faults: Array<string> = []

  const watched = (page: Page): Page => {
    page.on("pageerror", (error) => faults.push(error.message))
    page.on("console", (message) => {
      // Refusals of the server are part of what is tested.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        faults.push(message.text())
    })
    return page
  }
  beforeAll(async () => {
    const served = await sharedServer()
    url = served.url
    key = served.adminKey
    const browser = await sharedBrowser()
    context = await browser.newContext({ viewport: { width: 390, height: 800 }, colorScheme: "dark" })
    plain = await browser.newContext({ javaScriptEnabled: false })
  })
  afterAll(async () => {
    await context.close()
    await plain.close()
  })

  const linkTo = async (fields: object, name = "the holiday.txt"): Promise<ShareLink> => {
    const headers = { authorization: `Bearer ${key}` }
    const form = new FormData()
    form.append("files", new Blob(["the bytes"]), name)
    const sent = await fetch(`${url}/api/upload`, { method: "POST", headers, body: form })
    const { files } = (await sent.json()) as { readonly files: ReadonlyArray<UploadedFile> }
    const made = await fetch(`${url}/api/share-links`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ fileId: files[0]?.fileId, ...fields })
    })
    return (await made.json()) as ShareLink
  }

  const usesOf = async ({ token }: ShareLink): Promise<number> => {
    const answer = await fetch(`${url}/api/share-links/${token}`, {
      headers: { authorization: `Bearer ${key}` }
    })
    return ((await answer.json()) as ShareLink).uses
  }

  /** Clicks the button, and reads the file that comes. */
  const downloaded = async (page: Page, button: string) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: button }).click()
    ])
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") }
  }

  describeWith(pythonClients, "looked at by python-requests", () => {
    it("keep a single use, whichever messenger that says to be, until it says nothing", async () => {
      const link = await linkTo({ singleUse: true })
      const python = (...args: ReadonlyArray<string>) => run(join(pythonHome, "bin/python"), ["-c", ...args])
      const { stdout } = await python(lookByRequests, link.url, JSON.stringify(messengers))
      const pages = JSON.parse(stdout) as ReadonlyArray<string>
      assert.strictEqual(pages.length, messengers.length)
      for (const [index, page] of pages.entries())
        assert.include(page, "the holiday.txt", messengers[index]?.[0])
      assert.strictEqual(await usesOf(link), 0)
      const read = "import requests, sys; print(requests.get(sys.argv[1]).text)"
      assert.strictEqual((await python(read, link.url)).stdout, "the bytes\n")
      assert.strictEqual(await usesOf(link), 1)
    })
  })

  it("keep a single use for the person who clicks, whoever looked at the link before", async () => {
    const link = await linkTo({ singleUse: true })
    for (const [agent, accept] of messengers) {
      const { stdout } = await run("curl", ["-fsS", "-A", agent, "-H", `Accept: ${accept}`, link.url])
      assert.include(stdout, "the holiday.txt", agent)
      await run("curl", ["-fsSI", "-A", agent, link.url])
    }
    for (const each of [plain, context]) {
      const page = watched(await each.newPage())
      await page.goto(link.url)
      await page.reload()
      assert.strictEqual(await page.getByRole("heading", { level: 1 }).innerText(), "the holiday.txt")
      assert.isTrue(await page.getByText("The link works once more.").isVisible())
      if (each === context)
        assert.isTrue(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    }
    assert.strictEqual(await usesOf(link), 0)
    const page = context.pages().at(-1) ?? assert.fail("no page")
    assert.deepStrictEqual(await downloaded(page, "Download"), { name: "the holiday.txt", text: "the bytes" })
    await page.getByText("The download begins.").waitFor()
    assert.strictEqual(await usesOf(link), 1)
    await page.reload()
    assert.strictEqual(await page.getByRole("heading", { level: 1 }).innerText(), "This link is used up")
    for (const one of [...context.pages(), ...plain.pages()]) await one.close()
    assert.deepStrictEqual(faults, [])
  })

  for (const script of ["with", "without"] as const)
    it(`ask for a password ${script} a script, say that one is wrong, and go on`, async () => {
      const link = await linkTo({ maxRequests: 3, password: "correct horse" })
      const page = watched(await (script === "with" ? context : plain).newPage())
      await page.goto(link.url)
      await page.getByLabel("Password").fill("wrong")
      await page.getByRole("button", { name: "Open" }).click()
      await page.getByText("Wrong password.").waitFor()
      assert.strictEqual(await page.getByLabel("Password").getAttribute("aria-invalid"), "true")
      await page.getByLabel("Password").fill("correct horse")
      assert.deepStrictEqual(await downloaded(page, "Open"), { name: "the holiday.txt", text: "the bytes" })
      await page.goto(`${link.url}?password=correct%20horse`)
      assert.deepStrictEqual(await downloaded(page, "Download"), {
        name: "the holiday.txt",
        text: "the bytes"
      })
      assert.strictEqual(await usesOf(link), 2)
      await page.close()
      assert.deepStrictEqual(faults, [])
    })

  it("run nothing that a name brings, and are reached by the keyboard alone", async () => {
    const link = await linkTo({ maxRequests: 3 }, "<img src=x onerror=alert(1)> \u202egpj.exe")
    const page = watched(await context.newPage())
    await page.goto(link.url)
    assert.strictEqual(await page.locator("img").count(), 0)
    assert.notInclude(await page.getByRole("heading", { level: 1 }).innerText(), "\u202e")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    const focused = "document.activeElement?.textContent"
    await until("the button has the focus", async () =>
      (await page.evaluate(focused)) === "Download" ? undefined : String(await page.evaluate(focused))
    )
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")])
    assert.strictEqual(readFileSync(await download.path(), "utf8"), "the bytes")
    await page.close()
    assert.deepStrictEqual(faults, [])
  })
})
