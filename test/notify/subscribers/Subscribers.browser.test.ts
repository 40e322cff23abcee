import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { beforeAll } from "vitest"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer, TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import type { SandboxClient } from "../sandbox/SandboxClient.ts"
import { api, makeStage, sent, type Stage } from "../Stage.ts"
import {
  clickedOn,
  endSubscription,
  openPushPage,
  type PushPage,
  type PushPageOptions,
  shownBy
} from "./PushPage.ts"
import { joined, linkOf, settingsOf } from "./SubscriberStage.ts"

interface Confirmation {
  readonly payload: { readonly data: { readonly confirmUrl: string } }
}

describeWith(chromiumPresent, "subscribers, in Chromium,", () => {
  let server: typeof TestServer.Service
  let browser: Browser
  let sandbox: SandboxClient
  let stage: Stage
  let senderKey: string

  const run = <A, E>(effect: Effect.Effect<A, E, TestServer>): Promise<A> =>
    Effect.runPromise(Effect.provideService(effect, TestServer, server))

  interface Project {
    readonly id: string
    readonly name: string
    readonly path: string
  }

  const newProject = async (fields: {
    readonly name: string
    readonly description?: string
  }): Promise<Project> => {
    const id = await run(stage.project({ slug: `p${Math.random().toString(36).slice(2)}`, ...fields }))
    return { id, name: fields.name, path: `/n/join/${await run(linkOf(stage, id))}` }
  }

  const visit = async (
    path: string,
    look: (push: PushPage) => Promise<void>,
    options: Partial<PushPageOptions> = {}
  ): Promise<void> => {
    const push = await openPushPage(browser, { path, url: server.url, sandbox, ...options })
    try {
      await look(push)
      const host = new URL(options.url ?? server.url).host
      for (const address of push.requests) assert.strictEqual(new URL(address).host, host)
      assert.deepStrictEqual(push.complaints, [])
    } finally {
      await push.close()
    }
  }

  const turnOn = (page: Page) => page.getByRole("button", { name: "Turn on notifications" }).click()

  const join = async (push: PushPage): Promise<void> => {
    await turnOn(push.page)
    await push.page.getByRole("heading", { name: "You are subscribed" }).waitFor()
  }

  const tokenOf = async (page: Page): Promise<string> =>
    JSON.parse(await page.evaluate<string>(`localStorage.getItem("signalbox")`)).token

  /** The payloads that the sandbox has decrypted for this browser, as they come. */
  const payloads = async (push: PushPage, count: number): Promise<ReadonlyArray<Record<string, string>>> => {
    const entries = await sandbox.accepted(count, { channel: push.subscription()?.id ?? "" })
    return entries.map(({ payload }) => payload as Record<string, string>)
  }

  beforeAll(async () => {
    server = await sharedServer()
    browser = await sharedBrowser()
    sandbox = await run(sandboxOfServer)
    stage = await run(makeStage)
    senderKey = await run(stage.projectKey())
  })

  it("join by a click alone, and get what is sent: decrypted, shown once, and clicked to where it belongs", async () => {
    const project = await newProject({ name: "Backups", description: "Of every night" })
    const askedOf = `{
      const ask = Notification.requestPermission.bind(Notification)
      window.asked = []
      Notification.requestPermission = () => { asked.push(navigator.userActivation.isActive); return ask() }
    }`
    await visit(
      project.path,
      async (push) => {
        const { deliver, page, worker } = push
        await page.getByRole("heading", { name: "Get notifications of Backups" }).waitFor()
        await page.getByText("Of every night").waitFor()
        assert.deepStrictEqual(await page.evaluate("asked"), [])
        await page.getByLabel("Your name").fill("Ada")
        await join(push)
        assert.deepStrictEqual(await page.evaluate("asked"), [true])
        const settings = await run(settingsOf(await tokenOf(page)))
        assert.deepInclude(settings, { name: "Ada" })
        assert.deepInclude(settings.channels[0], { kind: "push", state: "active", name: "Chrome on Linux" })
        const send = (fields: object) => run(sent(senderKey, { project: project.id, ...fields }))
        const url = "https://example.com/build/1"
        const [viewed] = (await send({ message: "viewed", body: "# A page", url })).messages
        await send({ message: "linked", url, title: "A title" })
        await send({ message: "plain" })
        await send({ message: "x".repeat(4_000) })
        const got = await payloads(push, 4)
        const sw = await worker()
        for (const payload of [...got, ...got]) await deliver(JSON.stringify(payload))
        await until("four notifications", async () => {
          const { length } = await shownBy(sw)
          return length === 4 ? undefined : `${length} of them`
        })
        const shown = await shownBy(sw)
        const of = (text: string) => {
          const found = shown.find(({ body }) => body.startsWith(text))
          assert.isDefined(found, text)
          return found ?? { tag: "", actions: [], title: "", body: "" }
        }
        assert.sameMembers(
          shown.map(({ tag }) => tag),
          got.map(({ tag }) => tag ?? "")
        )
        for (const { tag } of shown) assert.match(tag, /^dlv_/)
        assert.strictEqual(of("linked").title, "A title")
        assert.strictEqual(of("plain").title, "test")
        const me = `${server.url}/n/me`
        assert.deepStrictEqual(of("viewed").actions, ["url"])
        assert.deepStrictEqual(await clickedOn(sw, of("viewed").tag, "url"), { opened: [url], focused: [] })
        for (const payload of got) await deliver(JSON.stringify(payload))
        await until("the one that was clicked again", async () =>
          (await shownBy(sw)).length === 4 ? undefined : "it is not shown"
        )
        const opens = async (text: string, action?: string) =>
          (await clickedOn(sw, of(text).tag, action)).opened
        assert.deepStrictEqual(await opens("viewed"), [viewed?.viewUrl ?? ""])
        assert.deepStrictEqual(await opens("linked"), [url])
        assert.deepStrictEqual(await opens("plain"), [me])
        const [page_] = await opens("xxx")
        assert.match(page_ ?? "", new RegExp(`^${server.url}/n/m/[0-9A-Za-z]{40}$`))
        assert.isEmpty(await shownBy(sw))
      },
      { before: askedOf }
    )
  })

  it("see one notification for each push, whatever is in it, and no click leads elsewhere than to the web", async () => {
    const project = await newProject({ name: "Odd" })
    await visit(project.path, async (push) => {
      await join(push)
      const sw = await push.worker()
      const me = `${server.url}/n/me`
      const cut = { title: "t", text: "cut", tag: "a", open: "https://a.test/", page: "https://b.test/page" }
      await push.deliver(JSON.stringify(cut))
      await push.deliver("no JSON")
      await push.deliver(JSON.stringify({ title: 1 }))
      await push.deliver(
        JSON.stringify({ title: "t", text: "script", tag: "b", open: "javascript:alert(1)" })
      )
      await push.deliver(JSON.stringify({ title: "t", text: "none", tag: "c" }))
      await until("five notifications", async () =>
        (await shownBy(sw)).length === 5 ? undefined : `${(await shownBy(sw)).length} of them`
      )
      assert.deepStrictEqual((await clickedOn(sw, "a", "page")).opened, ["https://b.test/page"])
      assert.deepStrictEqual((await clickedOn(sw, "b")).opened, [me])
      // The window that shows it already is focused.
      await push.page.goto(me)
      await push.page.getByRole("heading", { name: "Projects" }).waitFor()
      assert.deepStrictEqual(await clickedOn(sw, "c"), { opened: [], focused: [me] })
    })
  })

  it("are told why their browser gets none: denied, no push service, http, an iPhone's tab, no web push", async () => {
    const { path } = await newProject({ name: "Reasons" })
    const reason = async (page: Page) => (await page.locator("#no-push").textContent()) ?? ""
    const noButton = (page: Page) =>
      page.getByRole("button", { name: "Turn on notifications" }).waitFor({ state: "hidden" })
    const told = async (words: RegExp, options: Partial<PushPageOptions>) =>
      visit(
        path,
        async ({ page }) => {
          await page.getByRole("button", { name: "Add the webhook" }).waitFor()
          assert.match(await reason(page), words)
          await noButton(page)
        },
        options
      )
    await told(/blocked.*settings of this site/, { permission: "denied" })
    await told(/came over http/, { url: `http://box.test:${server.port}`, permission: "default" })
    await told(/Add to Home Screen/, {
      shape: {
        userAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1"
      }
    })
    await told(/has no web push/, { hasPushService: false, before: "delete window.PushManager" })
    await visit(
      path,
      async ({ page }) => {
        await turnOn(page)
        await page.getByText(/reaches no push service \(AbortError\)/).waitFor()
        assert.isEmpty(await page.evaluate("localStorage.length ? [1] : []"))
      },
      { hasPushService: false }
    )
    // Asked, and not allowed.
    await visit(
      path,
      async ({ page }) => {
        await turnOn(page)
        await page.getByText(/was not allowed to show notifications/).waitFor()
      },
      { before: `Notification.requestPermission = async () => "default"` }
    )
  })

  it("join another project from the same browser as the same subscriber, and without a token by their subscription", async () => {
    const [one, two, three] = [
      await newProject({ name: "One" }),
      await newProject({ name: "Two" }),
      await newProject({ name: "Three" })
    ]
    await visit(one.path, async (push) => {
      const { page } = push
      await join(push)
      const token = await tokenOf(page)
      await page.goto(`${server.url}${two.path}`)
      await join(push)
      assert.strictEqual(await tokenOf(page), token)
      await page.evaluate("localStorage.clear()")
      await page.goto(`${server.url}${three.path}`)
      await join(push)
      const { channels, projects } = await run(settingsOf(await tokenOf(page)))
      assert.sameMembers(
        projects.map(({ name }) => name),
        ["One", "Two", "Three"]
      )
      assert.lengthOf(channels, 1)
      // A token that is dead is no obstacle.
      await run(server.ask("DELETE", `${api}/subscriber`, { key: await tokenOf(page) }))
      await page.goto(`${server.url}${one.path}`)
      await join(push)
      assert.lengthOf((await run(settingsOf(await tokenOf(page)))).projects, 1)
    })
  })

  it("stay subscribed when their browser changes its subscription, by the worker or by a visit", async () => {
    const project = await newProject({ name: "Changing" })
    await visit(project.path, async (push) => {
      const { page } = push
      await join(push)
      const sw = await push.worker()
      const { channels, pushKey } = await run(settingsOf(await tokenOf(page)))
      const reaches = async (text: string) => {
        await run(sent(senderKey, { project: project.id, message: text }))
        assert.strictEqual((await payloads(push, 1)).at(-1)?.["text"], text)
      }
      assert.isUndefined((await endSubscription(sw, await push.renew(), true)).askedWith)
      await reaches("told")
      const { askedWith } = await endSubscription(sw, await push.renew(), false)
      assert.deepStrictEqual(askedWith, { userVisibleOnly: true, applicationServerKey: pushKey })
      await reaches("asked for")
      // The worker had no network, or was not run.
      await push.renew()
      await page.goto(`${server.url}/n/me`)
      await page.getByText("this browser", { exact: true }).waitFor()
      const endpoint = push.subscription()?.endpoint ?? ""
      await until("the server to know", async () => {
        const state = await page.evaluate<string>(`localStorage.getItem("signalbox")`)
        return state.includes(endpoint) ? undefined : state
      })
      await reaches("visited")
      const after = await run(settingsOf(await tokenOf(page)))
      assert.deepStrictEqual(after.channels, channels)
    })
  })

  it("turn notifications on again where the push service has ended their subscription", async () => {
    const project = await newProject({ name: "Ended" })
    await visit(project.path, async (push) => {
      const { page } = push
      await join(push)
      const key = await tokenOf(page)
      const [channel] = (await run(settingsOf(key))).channels
      await sandbox.changeSubscription(push.subscription()?.id ?? "", { state: "expired" })
      await run(server.ask("POST", `${api}/subscriber/channels/${channel?.id}/test`, { key }))
      const stateIs = (state: string) =>
        until(`the channel ${state}`, async () => {
          const [found] = (await run(settingsOf(key))).channels
          return found?.state === state ? undefined : found?.state
        })
      await stateIs("gone")
      await page.goto(`${server.url}/n/me`)
      await page.getByRole("button", { name: "Turn on notifications in this browser" }).click()
      await stateIs("active")
    })
  })

  it("see settings of another's link without becoming another, until they say so", async () => {
    const [own, other] = [await newProject({ name: "Own" }), await newProject({ name: "Other" })]
    const linkPath = other.path.split("/").at(-1) ?? ""
    const stranger = await run(joined(linkPath, { name: "Stranger", push: await sandbox.subscribe() }))
    await visit(own.path, async (push) => {
      const { page } = push
      await join(push)
      const token = await tokenOf(page)
      await page.goto(stranger.settingsUrl)
      await page.getByText("Other", { exact: true }).waitFor()
      // The address bar does not show it.
      assert.strictEqual(page.url(), `${server.url}/n/me`)
      assert.strictEqual(await tokenOf(page), token)
      await page.goto(`${server.url}${other.path}`)
      await join(push)
      assert.strictEqual(await tokenOf(page), token)
      assert.lengthOf((await run(settingsOf(token))).projects, 2)
      await page.goto("about:blank")
      await page.goto(stranger.settingsUrl)
      await page.getByRole("button", { name: "Keep them in this browser" }).click()
      await page.getByText("This browser keeps these settings.").waitFor()
      assert.strictEqual(await tokenOf(page), stranger.token)
      await page.getByRole("button", { name: "Turn on notifications in this browser" }).click()
      await page.getByText("Chrome on Linux is on.").waitFor()
      assert.lengthOf((await run(settingsOf(stranger.token))).channels, 2)
      assert.isEmpty((await run(settingsOf(token))).channels)
    })
  })

  it("change their settings on the page: name, zone, projects, channels, link, leaving", async () => {
    const [one, two] = [await newProject({ name: "First" }), await newProject({ name: "Second" })]
    await visit(one.path, async (push) => {
      const { page } = push
      page.on("dialog", (dialog) => void dialog.accept())
      await join(push)
      await page.goto(`${server.url}${two.path}`)
      await join(push)
      await page.getByRole("link", { name: "Your settings" }).click()
      const status = page.getByRole("status")
      const told = (text: string | RegExp) => status.filter({ hasText: text }).waitFor()
      const settings = async () => run(settingsOf(await tokenOf(page)))
      await page.getByLabel("Name").fill("Grace")
      await page.getByRole("button", { name: "Save" }).click()
      await told("Saved.")
      assert.deepInclude(await settings(), { name: "Grace" })
      await page.getByLabel("Messages of First come").selectOption("muted")
      await told("Saved. Messages of First come not at all.")
      await page.getByRole("button", { name: "Leave Second" }).click()
      await told("You have left Second.")
      const { projects } = await settings()
      assert.deepStrictEqual(
        projects.map(({ delivery, name }) => [name, delivery]),
        [["First", "muted"]]
      )
      await page.getByRole("button", { name: "Turn off Chrome on Linux" }).click()
      await told("Chrome on Linux is off.")
      await page.getByRole("button", { name: "Turn on Chrome on Linux" }).click()
      await told("Chrome on Linux is on.")
      const hook = await sandbox.webhook()
      await page.getByText("Add a webhook").click()
      await page.getByLabel("Address of the webhook").fill(hook.url)
      await page.getByRole("button", { name: "Add the webhook" }).click()
      await told(/A link was posted/)
      assert.match((await page.locator("#secret").textContent()) ?? "", /^whsec_/)
      const [asked] = await sandbox.accepted(1, { channel: hook.id })
      const { confirmUrl } = (asked as Confirmation).payload.data
      const confirming = await push.context.newPage()
      await confirming.goto(confirmUrl)
      await confirming.getByRole("button", { name: "Confirm" }).click()
      await confirming.getByRole("heading", { name: "The webhook is confirmed" }).waitFor()
      await page.reload()
      const host = new URL(hook.url).host
      await page.getByRole("button", { name: `Remove ${host}` }).click()
      await told(`${host} is removed.`)
      // A chat has no secret, and its link comes in its own form.
      await page.getByText("Add a webhook").click()
      for (const [label, kind] of [
        ["Mattermost, Rocket.Chat or another that takes Slack’s form", "slack"],
        ["Discord", "discord"]
      ] as const) {
        const chat = await sandbox.chat(kind)
        await page.getByLabel("Address of the webhook").fill(chat.url)
        await page.getByLabel("It belongs to").selectOption({ label })
        await page.getByRole("button", { name: "Add the webhook" }).click()
        await told(/A link was posted/)
        assert.isTrue(await page.locator("#secret").isHidden())
        assert.deepInclude((await sandbox.accepted(1, { channel: chat.id }))[0], { kind, problem: null })
        await page.getByRole("button", { name: `Remove ${host}` }).click()
        await told(`${host} is removed.`)
      }
      const old = await tokenOf(page)
      await page.getByRole("button", { name: "Make a new link" }).click()
      await told("Earlier links work no more.")
      const link = (await page.locator("#link").textContent()) ?? ""
      assert.strictEqual(link, `${server.url}/n/me#${await tokenOf(page)}`)
      assert.notInclude(link, old)
      await page.getByRole("button", { name: "Leave all projects" }).click()
      await page.getByText("You have left. Nothing is kept of you here.").waitFor()
      assert.isUndefined(push.subscription())
      await page.reload()
      await page.getByText(/This browser is subscribed to nothing/).waitFor()
      // Another device has the link still.
      await page.goto(link)
      await page.reload()
      await page.getByText(/This link works no more/).waitFor()
    })
  })

  it("break no rule of axe, scroll downwards alone, and can be used with the keyboard, wide, dark and on a phone", async () => {
    const long = "x".repeat(100)
    const project = await newProject({ name: long, description: "Of every night\n".repeat(10) })
    const looks = async (page: Page, where: string): Promise<void> => {
      for (const [width, colorScheme] of [
        [1280, "light"],
        [320, "dark"],
        [390, "light"]
      ] as const) {
        await page.setViewportSize({ width, height: 900 })
        await page.emulateMedia({ colorScheme })
        const { violations } = await page.evaluate<AxeResults>(
          `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
        )
        const found = violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join("; ")}`
        )
        assert.deepStrictEqual(found, [], `${where} at ${width} px, ${colorScheme}`)
        assert.isAtMost(await overflowOf(page), 0, `${where} at ${width} px`)
      }
    }
    const hook = await sandbox.webhook()
    await visit(
      project.path,
      async (push) => {
        const { page } = push
        await page.getByText("Send them to a team’s chat or a program").click()
        await looks(page, "join")
        // With the keyboard alone.
        await page.getByLabel("Your name").focus()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: "You are subscribed" }).waitFor()
        assert.strictEqual(await page.evaluate("document.activeElement?.textContent"), "You are subscribed")
        await looks(page, "joined")
        await page.goto(`${server.url}${project.path}`)
        await page.getByText("Send them to a team’s chat or a program").click()
        await page.getByLabel("Address of the webhook").fill(hook.url)
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: "Confirm the webhook" }).waitFor()
        await looks(page, "added")
        const [asked] = await sandbox.accepted(1, { channel: hook.id })
        const { confirmUrl } = (asked as Confirmation).payload.data
        await page.goto(`${server.url}/n/me`)
        await page.getByRole("button", { name: "Make a new link" }).click()
        await page.locator("#link").waitFor()
        await looks(page, "settings")
        const others = ["/n/join/x", "/n/confirm/x", new URL(confirmUrl).pathname]
        for (const path of others) {
          await page.goto(`${server.url}${path}`)
          await looks(page, path)
        }
      },
      { before: axe.source }
    )
  })
})
