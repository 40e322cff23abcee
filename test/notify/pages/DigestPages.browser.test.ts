import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { digestPage, type ShownItem } from "#src/notify/pages/DigestPage.ts"
import { iconPath } from "#src/notify/pages/NotifyPage.ts"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { hostileBodies } from "#test/notify/bodies/HostileBodies.ts"
import { type PageServer, startPageServer } from "./PageServer.ts"

const createdAtMillis = Date.parse("2026-11-23T09:00:00Z")

const itemWith = (changes: Partial<ShownItem> = {}): ShownItem => ({
  project: "Builds",
  app: "ci",
  title: "Build 1234 failed",
  text: "2 of 310 tests failed on main.\nSee https://ci.example.com/1234 for the log.",
  url: "https://ci.example.com/1234",
  priority: "normal",
  createdAtMillis: createdAtMillis - 3_600_000,
  page: `/n/m/${"T".repeat(40)}`,
  ...changes
})

const pageOf = (items: ReadonlyArray<ShownItem>, more = 0) =>
  digestPage({ items, more, createdAtMillis, expiresAtMillis: createdAtMillis + 90 * 86_400_000 })

const several = [
  itemWith(),
  itemWith({
    project: "Shop",
    app: "orders",
    title: undefined,
    text: "📎 Order 17: one lamp, two chairs",
    url: undefined,
    page: undefined
  }),
  itemWith({
    title: "x".repeat(200),
    text: "An address https://example.com/".concat("a".repeat(300)),
    priority: "high"
  }),
  itemWith({
    project: "مشروع",
    app: "تطبيق",
    title: "تم النسخ الاحتياطي",
    text: "اكتمل النسخ",
    page: undefined
  })
]

describeWith(chromiumPresent, "pages of digests, in Chromium,", () => {
  let server: PageServer
  let browser: Browser

  beforeAll(async () => {
    server = await startPageServer()
    browser = await sharedBrowser()
  })
  afterAll(async () => {
    await server?.close()
  })

  it("run no script and load nothing, whatever their messages are", async () => {
    const items = hostileBodies.map((text) =>
      itemWith({ project: text, app: text, title: text, text, url: text })
    )
    server.answers.set("/n/d/hostile", pageOf(items))
    const context = await browser.newContext()
    const page = await context.newPage()
    const [requests, complaints]: [Array<string>, Array<string>] = [[], []]
    context.on("request", (request) => {
      const address = request.url().replace(server.url, "")
      if (address !== iconPath) requests.push(address)
    })
    page.on("console", (message) => void complaints.push(message.text()))
    page.on("pageerror", ({ message }) => void complaints.push(message))
    page.on("dialog", (dialog) => void complaints.push(dialog.message()))
    try {
      await page.goto(`${server.url}/n/d/hostile`)
      assert.strictEqual(await page.locator(".digest > li").count(), hostileBodies.length)
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      assert.strictEqual(
        await page.evaluate(
          `document.querySelectorAll("script, style, iframe, form, img, svg:not(.wordmark svg)").length`
        ),
        0
      )
      const schemes: ReadonlyArray<string> = await page.evaluate(
        `[...new Set(Array.from(document.querySelectorAll("article a"), (link) => link.protocol))]`
      )
      for (const scheme of schemes) assert.include(["http:", "https:"], scheme)
      assert.strictEqual(
        await page.evaluate(`document.querySelector("article > :last-child").className`),
        "kept hint"
      )
      assert.deepStrictEqual(requests, ["/n/d/hostile", "/n/pages.css"])
      assert.deepStrictEqual(complaints, [])
    } finally {
      await context.close()
    }
  })

  it("break no rule of axe, scroll downwards alone and lead to each message by the keyboard, wide, dark and on a phone", async () => {
    server.answers.set("/n/d/several", pageOf(several, 12))
    const context = await browser.newContext()
    const page = await context.newPage()
    try {
      await page.goto(`${server.url}/n/d/several`)
      for (const [width, colorScheme] of [
        [1280, "light"],
        [320, "dark"],
        [390, "light"]
      ] as const) {
        const where = `${width} px, ${colorScheme}`
        await page.setViewportSize({ width, height: 900 })
        await page.emulateMedia({ colorScheme })
        await page.evaluate(axe.source)
        const { violations } = await page.evaluate<AxeResults>(
          `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
        )
        const found = violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map(({ html: one }) => one.slice(0, 160)).join("; ")}`
        )
        assert.deepStrictEqual(found, [], where)
        assert.isAtMost(await overflowOf(page), 0, where)
      }
      const own = page.getByRole("link", { name: "Show all of Build 1234 failed" })
      await own.focus()
      assert.strictEqual(await own.getAttribute("href"), `/n/m/${"T".repeat(40)}`)
    } finally {
      await context.close()
    }
  })
})
