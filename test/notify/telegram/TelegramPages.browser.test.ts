import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { Effect } from "effect"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { beforeAll } from "vitest"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer, TestServer } from "#test/harness/TestServer.ts"
import { hostileBodies } from "#test/notify/bodies/HostileBodies.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import type { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"
import { api, makeStage, sent, type Stage } from "#test/notify/Stage.ts"
import { joined, linkOf, settingsOf, subscription } from "#test/notify/subscribers/SubscriberStage.ts"
import { TelegramPeople } from "./TelegramPeople.ts"
import { codeFor } from "./TelegramStage.ts"

/** Several bodies in each text, as many as a message takes. */
const texts = hostileBodies
  .filter((body) => body.isWellFormed() && body.length <= 300 && /[^\p{Cc}\s]/u.test(body))
  .reduce<ReadonlyArray<string>>((packed, body) => {
    const [last = "", ...others] = packed
    const longer = `${last}\n${body}`
    return longer.length > 3_900 ? [body, ...packed] : [longer, ...others]
  }, [])
  .slice(0, 3)

/** Width, colours, and whether axe looks at the page: it takes a second, and sees the same rules at both widths. */
const shapes = [
  [1280, "light", true],
  [1280, "dark", false],
  [390, "light", false],
  [320, "dark", true]
] as const

describeWith(chromiumPresent, "pages of Telegram and its sandbox, in Chromium,", () => {
  let server: typeof TestServer.Service
  let browser: Browser
  let sandbox: SandboxClient
  let people: TelegramPeople
  let stage: Stage
  let key: string

  const run = <A, E>(effect: Effect.Effect<A, E, TestServer>): Promise<A> =>
    Effect.runPromise(Effect.provideService(effect, TestServer, server))

  beforeAll(async () => {
    server = await sharedServer()
    browser = await sharedBrowser()
    sandbox = await run(sandboxOfServer)
    people = new TelegramPeople(sandbox)
    stage = await run(makeStage)
    key = await run(stage.projectKey({ rateLimitPerMinute: 6_000 }))
  })

  const newProject = async (name: string) => {
    const id = await run(stage.project({ name, slug: `t${Math.random().toString(36).slice(2)}` }))
    return { id, link: await run(linkOf(stage, id)) }
  }

  /** A page that complains of nothing, runs no script but its own, and asks nobody but the server and the sandbox. */
  const visit = async (
    address: string,
    look: (page: Page, context: BrowserContext) => Promise<void>
  ): Promise<void> => {
    const context = await browser.newContext({ timezoneId: "Europe/Berlin", locale: "en-GB" })
    const [complaints, requests]: [Array<string>, Set<string>] = [[], new Set()]
    context.on("request", (request) => void requests.add(new URL(request.url()).origin))
    context.on("console", (message) => {
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        complaints.push(message.text())
    })
    context.on("dialog", (dialog) => void complaints.push(`dialog ${dialog.message()}`))
    context.on("weberror", (error) => void complaints.push(error.error().message))
    const page = await context.newPage()
    try {
      await page.goto(address)
      await look(page, context)
      for (const one of context.pages())
        assert.strictEqual(await one.evaluate("typeof globalThis.ran"), "undefined")
      assert.deepStrictEqual(complaints, [])
      assert.isEmpty([...requests].filter((origin) => origin !== server.url && origin !== sandbox.origin))
    } finally {
      await context.close()
    }
  }

  /** Nothing scrolls sideways in any shape, and no rule of axe is broken, light and wide, and dark on a phone. */
  const readsWell = async (page: Page, name: string): Promise<void> => {
    await page.evaluate(axe.source)
    for (const [width, colorScheme, isChecked] of shapes) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      if (process.env["SHOTS"] !== undefined)
        await page.screenshot({ path: `${process.env["SHOTS"]}/${name}-${width}-${colorScheme}.png` })
      assert.isAtMost(await overflowOf(page), 0, `${name}, ${width} px`)
      if (!isChecked) continue
      const { violations } = await page.evaluate<AxeResults>(
        `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
      )
      assert.deepStrictEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`),
        [],
        `${name}, ${width} px, ${colorScheme}`
      )
    }
  }

  /** Follows a link of the page into the sandbox's Telegram, in a window of its own. */
  const openTelegram = async (page: Page, context: BrowserContext, button: string): Promise<Page> => {
    const opened = context.waitForEvent("page")
    await page.getByRole("link", { name: button }).click()
    const telegram = await opened
    await telegram.waitForLoadState()
    return telegram
  }

  it("join a private chat from a project's page, by a link that is made on a press alone", async () => {
    const name = `<b onclick=alert(1)>Builds</b> ${Math.random().toString(36).slice(2)}`
    const { id, link } = await newProject(name)
    await visit(`${server.url}/n/join/${link}`, async (page, context) => {
      const open = page.getByRole("link", { name: "Open Telegram" })
      assert.isFalse(await open.isVisible())
      await page.getByRole("button", { name: "Make a link for Telegram" }).focus()
      await page.keyboard.press("Enter")
      await page.getByText("Press Start there. The link is good for 15 minutes, and once.").waitFor()
      // The keyboard goes on with the link.
      assert.strictEqual(await page.evaluate("document.activeElement.textContent"), "Open Telegram")
      await readsWell(page, "join-telegram")
      const telegram = await openTelegram(page, context, "Open Telegram")
      await telegram.getByRole("heading", { name: "Start the bot" }).waitFor()
      await readsWell(telegram, "sandbox-start")
      const who = `<i>Ada</i> ${"x".repeat(60)}`
      await telegram.getByLabel("Name of somebody new").fill(who)
      await telegram.getByRole("button", { name: "Start" }).click()
      await telegram.getByRole("heading", { name: who }).waitFor()
      await page.getByRole("heading", { name: "You are subscribed" }).waitFor()
      await page.getByText(`Notifications of ${name} come to the chat in Telegram.`).waitFor()
      await readsWell(page, "joined-telegram")
      const { recipients } = await run(sent(key, { project: id, message: "to a chat" }))
      assert.strictEqual(recipients, 1)
      await until("the message", async () => {
        await telegram.reload()
        return (await telegram.getByText("to a chat").count()) > 0 ? undefined : "it is not there"
      })
    })
  })

  it("join a group from the settings, which then list it, and say when a link is too old", async () => {
    const { link } = await newProject("Deploys")
    const { token } = await run(joined(link, { name: "Ada", push: subscription() }))
    await visit(`${server.url}/n/me#${token}`, async (page, context) => {
      await page.getByRole("button", { name: "Make a link for Telegram" }).click()
      await page.getByRole("link", { name: "Choose a group" }).waitFor()
      await readsWell(page, "settings-telegram")
      const telegram = await openTelegram(page, context, "Choose a group")
      await telegram.getByRole("heading", { name: "Add the bot to a group" }).waitFor()
      await readsWell(telegram, "sandbox-group")
      await telegram.getByLabel("Name of the group").fill("Night shift")
      await telegram.getByRole("button", { name: "Add it" }).click()
      await page.getByRole("status").filter({ hasText: "The chat in Telegram is on." }).waitFor()
      await page.getByRole("button", { name: "Turn off Night shift" }).waitFor()
      assert.strictEqual(await page.locator("#telegram-state").textContent(), "")
      const { channels } = await run(settingsOf(token))
      assert.includeMembers(
        channels.map(({ kind, name }) => `${kind} ${name}`),
        ["telegram Night shift"]
      )
      await readsWell(page, "settings-group")
      // The next link, as it ends unused.
      await page.route("**/telegram-codes/*", (route) => route.fulfill({ json: { state: "expired" } }))
      await page.getByRole("button", { name: "Make a link for Telegram" }).click()
      await page.getByText("The link is too old. Make another one.").waitFor()
      assert.isFalse(await page.getByRole("link", { name: "Choose a group" }).isVisible())
    })
  })

  it("show hostile messages in the sandbox's chats and inbox as text", async () => {
    const { id, link } = await newProject("Hostile")
    const { code } = await run(codeFor(link))
    const { chat } = await people.press(code, { name: "</h2><script>globalThis.ran=1</script>" })
    const chats = [await sandbox.chat("slack"), await sandbox.chat("discord")]
    for (const [n, { url }] of chats.entries()) {
      const json = { name: "A team", url, kind: n === 0 ? "slack" : "discord" }
      const answer = await run(
        server.ask("POST", `${api}/projects/${id}/subscribers`, { key: stage.key, json })
      )
      assert.strictEqual(answer.status, 201)
    }
    await until("three subscribers", async () => {
      const { recipients } = await run(sent(key, { project: id, message: "first" }))
      return recipients === 3 ? undefined : `${recipients}`
    })
    for (const message of texts)
      await run(
        sent(key, {
          project: id,
          message,
          title:
            message
              .slice(-80)
              .replace(/\p{Cc}/gu, " ")
              .toWellFormed()
              .trim() || "none",
          url: "https://ci.example.com/?<b>"
        })
      )
    for (const channel of chats) await sandbox.accepted(texts.length + 1, { channel: channel.id })
    await until("the messages in the chat", async () => {
      const found = (await people.fromBot(chat.id)).length
      return found > texts.length + 1 ? undefined : `${found}`
    })
    await visit(`${sandbox.origin}/telegram`, async (page) => {
      await page.getByRole("heading", { name: "</h2><script>" }).waitFor()
      assert.strictEqual(await page.locator("main :is(script, style, iframe, img, svg, object)").count(), 0)
      await readsWell(page, "sandbox-chats")
    })
    await visit(sandbox.origin, async (page) => {
      for (const kind of ["Slack", "Discord", "Telegram"])
        assert.isAbove(await page.locator(".entry-head").filter({ hasText: kind }).count(), 0, kind)
      for (const { id: channel } of chats)
        await page.locator("li").filter({ hasText: channel }).first().locator("summary").first().click()
      assert.strictEqual(await page.locator("main :is(script, style, iframe, img, svg, object)").count(), 0)
      await readsWell(page, "sandbox-inbox")
    })
  })
})
