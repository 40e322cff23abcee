import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { Effect, Exit, Scope } from "effect"
import type { BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type SandboxClient, startSandbox } from "./SandboxClient.ts"
import { Sender } from "./Sender.ts"
import { endOf } from "./Stage.ts"

describeWith(chromiumPresent, "the page of the sandbox's inbox, in Chromium,", () => {
  const scope = Scope.makeUnsafe()
  const sender = new Sender()
  let sandbox: SandboxClient

  beforeAll(async () => {
    sandbox = await Effect.runPromise(Scope.provide(startSandbox(), scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const visit = async (
    look: (
      page: Page,
      seen: { readonly requests: Set<string>; readonly complaints: Array<string> }
    ) => Promise<void>,
    options: BrowserContextOptions = {}
  ): Promise<void> => {
    const context = await (await sharedBrowser()).newContext(options)
    const page = await context.newPage()
    const seen = { requests: new Set<string>(), complaints: new Array<string>() }
    context.on("request", (request) => void seen.requests.add(request.url().split("?")[0] ?? ""))
    page.on("console", (message) => void seen.complaints.push(message.text()))
    page.on("pageerror", ({ message }) => void seen.complaints.push(message))
    try {
      await page.goto(`${sandbox.origin}/`)
      await look(page, seen)
    } finally {
      await context.close()
    }
  }

  const numbers = (page: Page): Promise<ReadonlyArray<string>> => page.locator(".number").allTextContents()
  const shows = (page: Page, expected: ReadonlyArray<string>) =>
    until(`the numbers ${expected.join(" ")}`, async () => {
      const found = await numbers(page)
      return found.join(" ") === expected.join(" ") ? undefined : found.join(" ")
    })

  it("shows what comes as it comes, keeps open what is open, and clears", async () => {
    await visit(async (page, { complaints, requests }) => {
      assert.include(await page.locator("main").innerText(), "Nothing has come yet")
      assert.strictEqual(await page.title(), "Sandbox of channels · Signalbox")
      assert.strictEqual(await page.locator("header .label").innerText(), "Sandbox")
      const subscription = await sandbox.subscribe()
      await sender.push(subscription, { title: "First", message: "one\ntwo" })
      await shows(page, ["1"])
      await page.locator("summary").first().click()
      assert.include(await page.locator("#m1 pre").innerText(), '"title": "First"')
      await sandbox.order({ status: 503 })
      await sender.push(subscription, { title: "Second" })
      await shows(page, ["2", "1"])
      assert.isTrue(await page.locator("#m1").evaluate((one) => one.hasAttribute("open")))
      assert.include(await page.locator("li").first().innerText(), "503 was ordered")
      assert.strictEqual(
        await page.locator("[role=status]").innerText(),
        "2 received, 1 accepted, 1 repeated"
      )
      await page.locator("#clear").focus()
      await page.keyboard.press("Enter")
      await shows(page, [])
      await sender.push(subscription, { deliveryId: "dlv_later" })
      await shows(page, ["3"])
      const own = ["/", "/page.css", "/page.js", "/inbox"].map((path) => `${sandbox.origin}${path}`)
      for (const request of requests) assert.include([...own, `${sandbox.origin}/favicon.ico`], request)
      assert.deepStrictEqual(
        complaints.filter((text) => !text.includes("favicon")),
        []
      )
    })
  })

  it("has strangers' text as text, and a policy that would run nothing else", async () => {
    const hostile = '</p><script>globalThis.ran = 1</script><img src=x onerror="globalThis.ran = 1">\u202Ex'
    await sender.push(await sandbox.subscribe(), { title: hostile.slice(0, 200), message: hostile })
    await sender.webhook(await sandbox.webhook(), { title: hostile.slice(0, 200), message: hostile })
    await visit(async (page) => {
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      assert.strictEqual(await page.locator("main img, main script").count(), 0)
      assert.include(await page.locator("main").innerText(), "<script>globalThis.ran = 1</script>")
    })
    const { headers } = await fetch(`${sandbox.origin}/`)
    assert.strictEqual(
      headers.get("content-security-policy"),
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
  })

  it("breaks no rule of axe and scrolls downwards alone, wide, dark and on a phone", async () => {
    await sandbox.order({ cut: "before" })
    const cut = await endOf(
      sender.push(await sandbox.subscribe(), { title: "x".repeat(200), message: "y".repeat(900) })
    )
    assert.match(String(cut), /fetch failed/)
    for (const options of [
      { viewport: { width: 1_200, height: 800 } },
      { viewport: { width: 1_200, height: 800 }, colorScheme: "dark" },
      { viewport: { width: 320, height: 640 } }
    ] as const)
      await visit(async (page) => {
        for (const at of [0, 1]) await page.locator("summary").nth(at).click()
        assert.isAtMost(await overflowOf(page), 0)
        await page.evaluate(axe.source)
        const { violations }: AxeResults = await page.evaluate(
          `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
        )
        assert.deepStrictEqual(
          violations.map(({ help, nodes }) => `${help}: ${nodes.map(({ html }) => html).join(" ")}`),
          []
        )
      }, options)
  })
})
