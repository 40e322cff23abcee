import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { encode } from "uqr"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { sandboxNamedBy } from "#test/notify/Sandbox.ts"
import type { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, openConsole, overflowOf } from "./ConsolePage.ts"

/** The modules of a QR code as they are drawn: rows of 0 and 1. */
const drawn = String.raw`(() => {
  const size = Number(document.querySelector(".qr").viewBox.baseVal.width)
  const rows = Array.from({ length: size }, () => Array(size).fill(0))
  for (const [, x, y, length] of document.querySelector(".qr path").getAttribute("d").matchAll(/M(\d+) (\d+)h(\d+)/g))
    for (let one = 0; one < Number(length); one++) rows[Number(y)][Number(x) + one] = 1
  return rows.map((row) => row.join("")).join("\n")
})()`

describeWith(chromiumPresent, "the console's room of notifications, in Chromium,", () => {
  let server: Reachable
  let browser: Browser
  let sandbox: SandboxClient
  let key = ""
  let opened: ConsolePage | undefined

  beforeAll(async () => {
    await ensureConsoleBuilt()
    const shared = await sharedServer()
    server = shared.server
    key = (await Effect.runPromise(shared.makeUser())).key
    browser = await sharedBrowser()
    sandbox = sandboxNamedBy((await ask(server, "GET", "/readyz")).body)
  })
  afterEach(() => opened?.close())

  const read = async (path: string): Promise<Record<string, unknown>> =>
    (await ask(server, "GET", `/api/v1${path}`, { key })).body as Record<string, unknown>

  it("makes the first project, shows its link, and tests what joined by it", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key])
    const { page } = opened
    await opened.enterKey(key)
    await page.getByText("A project is what people subscribe to").waitFor()
    await page.getByRole("textbox", { name: /^Name/ }).fill("Nightly builds")
    await page.getByRole("textbox", { name: /^Slug/ }).fill("No slug")
    await page.getByRole("button", { name: "Make the project" }).click()
    await page.getByText(/^slug: /).waitFor()
    await page.getByRole("textbox", { name: /^Slug/ }).fill("builds")
    await page.getByRole("button", { name: "Make the project" }).click()
    await page.getByRole("heading", { name: "Nightly builds", level: 1 }).waitFor()

    const { joinUrl } = (await read("/projects/builds")) as { joinUrl: string }
    await page.getByText(joinUrl, { exact: true }).waitFor()
    const modules = encode(joinUrl, { ecc: "M", border: 4 })
      .data.map((row) => row.map(Number).join(""))
      .join("\n")
    assert.strictEqual(await page.evaluate(drawn), modules)

    await page.getByText("Nobody has joined yet.").waitFor()
    const { id: channel, ...push } = await sandbox.subscribe()
    const token = joinUrl.replace(/.*\//, "")
    const json = { name: "Ada", timezone: "UTC", push }
    assert.strictEqual((await ask(server, "POST", `/api/v1/join/${token}`, { key: "", json })).status, 201)
    await page.getByRole("list", { name: "Subscribers" }).getByText("Ada").waitFor()

    await page.getByRole("button", { name: "Send a test" }).click()
    await page.getByText("Sent to 1 subscriber.").waitFor()
    await page.locator("summary").filter({ hasText: "This is a test." }).click()
    await page.getByRole("list", { name: "Deliveries" }).getByText("delivered").waitFor()
    await opened.shows("delivered", "1")
    const [entry] = await sandbox.accepted(1, { channel })
    assert.deepInclude(entry?.payload, { title: "Test" })
  })

  it("has commands with a key of the project, which send as they stand", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key])
    const { page } = opened
    await opened.enterKey(key)
    await page.getByRole("link", { name: /Nightly builds/ }).click()
    await page.getByRole("button", { name: "Make one for this project" }).click()
    await page.getByText("is shown only now").waitFor()
    const command =
      (await page.locator(".code", { hasText: "application/json" }).locator("code").textContent()) ?? ""
    const made = /prj_[0-9A-Za-z]{40}/.exec(command)?.[0] ?? ""
    const sent = JSON.parse(/-d '(.*)'$/.exec(command)?.[1] ?? "") as object
    const answer = await ask(server, "POST", "/api/v1/messages", { key: made, json: sent })
    assert.strictEqual(answer.status, 201)
    await page.locator("summary").filter({ hasText: "The backup is done" }).waitFor()
    await page.getByRole("link", { name: "All projects" }).click()
    await page.getByRole("list", { name: "Project keys" }).getByText("sends to Nightly builds").waitFor()
    const inbox = await page.getByRole("link", { name: "its inbox" }).getAttribute("href")
    assert.strictEqual(inbox, `${sandbox.origin}/`)
    await page.getByRole("button", { name: "Revoke" }).click()
    await page.getByRole("button", { name: "Revoke" }).first().click()
    await page.getByText("No keys yet.").waitFor()
    assert.strictEqual((await ask(server, "POST", "/api/v1/messages", { key: made, json: sent })).status, 401)
  })

  it("adds a team's chat of its owner's, whose address is shown no more", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key], { width: 360 })
    const { page } = opened
    await opened.enterKey(key)
    await page.getByRole("link", { name: /Nightly builds/ }).click()
    await page.getByText("Add a team chat or a program").click()
    const form = page.getByRole("form", { name: "New subscriber" })
    const chat = await sandbox.chat("discord")
    await form.getByRole("textbox", { name: /^Name/ }).fill("Ops")
    await form.getByRole("textbox", { name: /^Address/ }).fill("https://127.1/x")
    await form.getByRole("button", { name: "Add it" }).click()
    await page.getByText("url: not a public address").waitFor()
    await form.getByRole("textbox", { name: /^Address/ }).fill(chat.url)
    await form.getByLabel("It belongs to").selectOption({ label: "Discord" })
    await form.getByRole("button", { name: "Add it" }).click()
    await form.getByText("Ops gets messages from now on.").waitFor()
    assert.isFalse(await form.getByText("shown now and never again").isVisible())
    await page.getByRole("list", { name: "Subscribers" }).getByText("Discord").waitFor()
    assert.notInclude((await page.textContent("body")) ?? "", chat.id)
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByRole("button", { name: "Send a test" }).click()
    const [entry] = await sandbox.accepted(1, { channel: chat.id })
    assert.deepInclude(entry, { kind: "discord", problem: null })
    await page
      .getByRole("listitem")
      .filter({ hasText: "Ops" })
      .getByRole("button", { name: "Remove" })
      .click()
    await page
      .getByRole("listitem")
      .filter({ hasText: "Ops" })
      .getByRole("button", { name: "Remove" })
      .click()
    await page.getByText("Ops", { exact: true }).waitFor({ state: "detached" })
  })

  it("says that a project is not there", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify&project=none`, [key])
    await opened.enterKey(key)
    await opened.page.getByRole("heading", { name: "No such project" }).waitFor()
  })

  it("makes a key for some projects, and shows it once", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key], { width: 360 })
    const { page } = opened
    await opened.enterKey(key)
    await page.getByText("New project key").click()
    const form = page.getByRole("form", { name: "New project key" })
    await form.getByRole("textbox", { name: /^Name/ }).fill("laptop")
    await form.getByLabel("All projects").uncheck()
    await form.getByLabel("Nightly builds").check()
    await form.getByRole("button", { name: "Make the key" }).click()
    await page.getByText("shown now and never again").waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    const { keys } = (await read("/project-keys")) as { keys: ReadonlyArray<Record<string, unknown>> }
    const { id } = await read("/projects/builds")
    assert.deepInclude(keys.at(-1), { name: "laptop", projects: [id], expiresAt: null })
  })

  it("has deliveries that were given up tried again", async () => {
    const { joinUrl } = (await read("/projects/builds")) as { joinUrl: string }
    const { id: channel, ...push } = await sandbox.subscribe()
    const json = { name: "Grace", timezone: "UTC", push }
    await ask(server, "POST", `/api/v1/join/${joinUrl.replace(/.*\//, "")}`, { key: "", json })
    await sandbox.order({ target: push.endpoint, status: 400, times: 1 })
    const message = textAt(
      await ask(server, "POST", "/api/v1/projects/builds/test", { key }),
      "messages",
      "0",
      "id"
    )
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key])
    const { page } = opened
    await opened.enterKey(key)
    await page.getByRole("list", { name: "Given up" }).getByText("the push service answered 400").waitFor()
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByText("Waiting again: 1.").waitFor()
    const [entry] = await sandbox.accepted(1, { channel })
    assert.deepInclude(entry?.payload, { title: "Test" })
    assert.isNotEmpty(message)
  })

  it("shows what is held and until when, what came in a digest, and who chose when", async () => {
    const made = await ask(server, "POST", "/api/v1/projects", { key, json: { name: "Held" } })
    const [id, token] = [textAt(made, "id"), textAt(made, "joinUrl").replace(/.*\//, "")]
    const { id: channel, ...push } = await sandbox.subscribe()
    const json = { name: "Lin", timezone: "UTC", delivery: "daily", push }
    const joined = await ask(server, "POST", `/api/v1/join/${token}`, { key: "", json })
    const own = textAt(joined, "settingsUrl").replace(/.*#/, "")
    const change = (path: string, method: string, change: object) =>
      ask(server, method, `/api/v1/subscriber${path}`, { key: own, json: change })
    await change(`/projects/${id}`, "PUT", { delivery: "daily" })
    for (let n = 0; n < 2; n++) await ask(server, "POST", `/api/v1/projects/${id}/test`, { key })
    opened = await openConsole(browser, `${server.url}/?room=notify&project=${id}`, [key])
    const { page } = opened
    await opened.enterKey(key)
    await page.getByRole("list", { name: "Subscribers" }).getByText("once a day").waitFor()
    const row = page.locator("summary").filter({ hasText: "This is a test." }).first()
    await row.getByText("on its way to 1 subscriber, held").waitFor()
    await row.click()
    await opened.shows("held", "1")
    const deliveries = page.getByRole("list", { name: "Deliveries" })
    await deliveries.getByText(/^held · until .*\d\d:\d\d$/).waitFor()
    // It goes as soon as its subscriber wants messages at once.
    await change(`/projects/${id}`, "PUT", { delivery: "instant" })
    await deliveries.getByText("delivered · in a digest").waitFor()
    await row.getByText("1 subscriber, was held").waitFor()
    const [entry] = await sandbox.accepted(1, { channel })
    assert.deepInclude(entry?.payload, { title: "2 messages" })
    await ask(server, "DELETE", `/api/v1/projects/${id}`, { key })
  })

  it("closes joining, replaces the link, removes subscribers, messages and the project", async () => {
    opened = await openConsole(browser, `${server.url}/?room=notify`, [key])
    const { page } = opened
    await opened.enterKey(key)
    await page.getByRole("link", { name: /Nightly builds/ }).click()
    const { joinUrl: first } = await read("/projects/builds")
    await page.getByRole("button", { name: "Make a new link" }).click()
    await page.getByRole("button", { name: "Replace it" }).click()
    await page.getByText(String(first)).waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Close joining" }).click()
    await page.getByText("Joining is closed").waitFor()
    assert.isNull((await read("/projects/builds"))["joinUrl"])
    await page.getByRole("button", { name: "Open it" }).click()
    await page.getByRole("img", { name: "QR code of the join link" }).waitFor()

    const ada = page.getByRole("listitem").filter({ hasText: "Ada" })
    await ada.getByRole("button", { name: "Remove" }).click()
    await ada.getByRole("button", { name: "Remove" }).click()
    await page.getByText("1 subscriber", { exact: false }).first().waitFor()
    const tests = page.locator("summary").filter({ hasText: "This is a test." })
    const before = await tests.count()
    await tests.first().click()
    await page.getByRole("button", { name: "Delete the message" }).click()
    await page.getByRole("button", { name: "Delete it" }).click()
    await until("the message is not listed", async () => {
      const now = await tests.count()
      return now === before - 1 ? undefined : `${now} of ${before}`
    })
    await page.getByRole("button", { name: "Delete the project" }).click()
    await page.getByRole("button", { name: "Delete it" }).click()
    await page.getByText("A project is what people subscribe to").waitFor()
    assert.deepStrictEqual(await read("/projects"), { projects: [] })
  })
})
