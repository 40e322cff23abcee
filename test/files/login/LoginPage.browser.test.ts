import { assert, it } from "@effect/vitest"
import { afterAll, beforeAll } from "vitest"
import type { BrowserContext, Page } from "playwright-core"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { makeCaller } from "#test/llm/Caller.ts"

const auth = "/api/cli/auth"

describeWith(chromiumPresent, "the page /cli", () => {
  let server: Reachable
  let context: BrowserContext
  let page: Page
  const faults: Array<string> = []
  beforeAll(async () => {
    server = (await sharedServer()).server
    context = await (await sharedBrowser()).newContext({ viewport: { width: 390, height: 800 } })
    page = await context.newPage()
    page.on("pageerror", (error) => faults.push(error.message))
    page.on("console", (message) => {
      // Refusals of the server are part of what is tested.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        faults.push(message.text())
    })
  })
  afterAll(() => context.close())

  const begin = async (name: string) => {
    const begun = await ask(server, "POST", `${auth}/init`, { key: "", json: { name, platform: "cli" } })
    return { url: textAt(begun, "url"), token: textAt(begun, "token"), digits: textAt(begun, "digits") }
  }
  const poll = async (token: string) =>
    (await ask(server, "GET", `${auth}/poll?token=${token}`, { key: "" })).body
  const heading = () => page.getByRole("heading", { level: 2 }).innerText()

  it("asks to sign in, shows the terminal's digits, lets the machine in, and runs no markup of its name", async () => {
    const { key } = await makeCaller(server, 0)
    const name = "<img src=x onerror=alert(1)> laptop"
    const { digits, token, url } = await begin(name)
    await page.goto(url)
    assert.strictEqual(await heading(), "Sign in first")
    await page.getByLabel("API key").fill("sk_wrong")
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByText("The server does not know this key.").waitFor()
    await page.getByLabel("API key").fill(key)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { name: "Let" }).waitFor()
    assert.strictEqual(await heading(), `Let ${name} in?`)
    assert.strictEqual(await page.locator("#digits").innerText(), digits)
    assert.isTrue(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    await page.getByLabel("Read files, and nothing else").check()
    await page.getByRole("button", { name: "Let it in" }).click()
    await page.getByRole("heading", { name: "It is let in" }).waitFor()
    assert.strictEqual(page.url(), url.split("#")[0])
    const polled = (await poll(token)) as { readonly apiKey: string }
    const opened = await ask(server, "POST", "/api/session", { key: polled.apiKey })
    assert.deepInclude(opened.body as object, { scopes: ["read"] })
    assert.deepStrictEqual(faults, [])
  })

  it("lets nothing in that a person declines, and says what is over", async () => {
    const { token, url } = await begin("declined")
    await page.goto(url)
    await page.getByRole("button", { name: "Do not" }).click()
    assert.strictEqual(await heading(), "Nothing was let in")
    assert.deepStrictEqual(await poll(token), { status: "pending" })
    await page.goto(`${url.split("#")[0] ?? ""}?again#0123456789012345678901`)
    await page.getByText("This login is over").waitFor()
    await page.goto(`${url.split("#")[0] ?? ""}?incomplete`)
    await page.getByText("The address is incomplete").waitFor()
    assert.deepStrictEqual(faults, [])
  })

  it("shows the login whose address is pasted into the same tab", async () => {
    const [one, other] = [await begin("one"), await begin("other")]
    await page.goto(one.url)
    await page.getByRole("heading", { name: "Let one in?" }).waitFor()
    await page.evaluate(`location.hash = ${JSON.stringify(other.token)}`)
    await page.getByRole("heading", { name: "Let other in?" }).waitFor()
    assert.strictEqual(await page.locator("#digits").innerText(), other.digits)
    assert.deepStrictEqual(faults, [])
  })
})
