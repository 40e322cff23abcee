import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { Effect } from "effect"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { beforeAll } from "vitest"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer, TestServer } from "#test/harness/TestServer.ts"
import { hostileBodies, mark } from "#test/notify/bodies/HostileBodies.ts"
import { makeStage, type Stage } from "../Stage.ts"
import { joined, linkOf, settingsOf, subscription } from "./SubscriberStage.ts"

/** Names that a project may have: one line of 1 to 100 characters. */
const hostileNames = [
  ...new Set(
    hostileBodies
      .filter((body) => body.isWellFormed())
      .map((body) =>
        body
          .replace(/\p{Cc}/gu, " ")
          .trim()
          .slice(0, 100)
      )
      .filter((name) => name.isWellFormed() && name !== "")
  )
]

interface Visited {
  readonly page: Page
  readonly token: string
  /** waits for a confirmation */
  readonly told: (text: string | RegExp) => Promise<void>
}

describeWith(chromiumPresent, "the settings page, in Chromium,", () => {
  let server: typeof TestServer.Service
  let browser: Browser
  let stage: Stage

  const run = <A, E>(effect: Effect.Effect<A, E, TestServer>): Promise<A> =>
    Effect.runPromise(Effect.provideService(effect, TestServer, server))

  const newProject = async (name: string) => {
    const slug = `p${Math.random().toString(36).slice(2)}`
    const id = await run(stage.project({ name, slug, description: `About ${name}` }))
    return { id, link: await run(linkOf(stage, id)) }
  }

  beforeAll(async () => {
    server = await sharedServer()
    browser = await sharedBrowser()
    stage = await run(makeStage)
  })

  /** The page of a subscriber of these projects, who set this while joining. It asks no other server and breaks no policy. */
  const visit = async (
    names: ReadonlyArray<string>,
    look: (visited: Visited) => Promise<void>,
    settings: object = {},
    shape: BrowserContextOptions = {}
  ): Promise<void> => {
    const projects: Array<Awaited<ReturnType<typeof newProject>>> = []
    for (const name of names) projects.push(await newProject(name))
    const [first, ...others] = projects
    const { token } = await run(
      joined(first?.link ?? "", { name: "Ada", push: subscription(), timezone: "Europe/Berlin", ...settings })
    )
    for (const { link } of others) await run(joined(link, {}, token))
    const context = await browser.newContext({ timezoneId: "Europe/Berlin", locale: "en-GB", ...shape })
    const page = await context.newPage()
    const complaints: Array<string> = []
    const requests: Array<string> = []
    context.on("request", (request) => void requests.push(request.url()))
    page.on("pageerror", ({ message }) => void complaints.push(message))
    page.on("dialog", (dialog) => void complaints.push(`dialog ${dialog.message()}`))
    page.on("console", (message) => {
      if (message.type() === "error" && !/^Failed to load resource|net::ERR/.test(message.text()))
        complaints.push(message.text())
    })
    try {
      await page.goto(`${server.url}/n/me#${token}`)
      await page.getByRole("heading", { name: "When messages come" }).waitFor()
      const status = page.getByRole("status")
      await look({ page, token, told: (text) => status.filter({ hasText: text }).waitFor() })
      for (const address of requests) assert.strictEqual(new URL(address).origin, new URL(server.url).origin)
      assert.deepStrictEqual(complaints, [])
    } finally {
      await context.close()
    }
  }

  it("saves each choice at once, confirms it, and says what it means", async () => {
    await visit(["Backups"], async ({ page, told, token }) => {
      const meaning = page.locator("#meaning")
      const saved = async (expected: object) => assert.deepInclude(await run(settingsOf(token)), expected)
      assert.strictEqual(await meaning.textContent(), "Messages come at once.")
      await page.getByLabel("Messages come", { exact: true }).selectOption("hourly")
      await told(/^Saved\. The next digest comes (today|tomorrow) at \d\d:00\.$/)
      await saved({ delivery: "hourly" })
      assert.isFalse(await page.getByLabel("Once a day at").isVisible())
      await page.getByLabel("Messages come", { exact: true }).selectOption("daily")
      await told(/^Saved\. The next digest comes (today|tomorrow) at 09:00\.$/)
      await page.getByLabel("Once a day at").fill("18:30")
      await told(/^Saved\. The next digest comes (today|tomorrow) at 18:30\.$/)
      await saved({ delivery: "daily", digestAt: "18:30" })
      await page.getByLabel("Quiet hours").check()
      await told(/Quiet (from 22:00 to|until) 07:00\.$/)
      await saved({ quietFrom: "22:00", quietTo: "07:00" })
      await page.getByLabel("Quiet from").fill("00:00")
      await page.getByLabel("Until").fill("23:59")
      await told(/Quiet (until|from 00:00 to) 23:59\.$/)
      await saved({ quietFrom: "00:00", quietTo: "23:59" })
      await page.getByLabel("Urgent messages come at once all the same").uncheck()
      await until("the answer", async () =>
        (await run(settingsOf(token))).highPasses ? "it is not saved" : undefined
      )
      await page.getByLabel("Quiet hours").uncheck()
      await told(/comes (today|tomorrow) at 18:30\.$/)
      await saved({ quietFrom: null, quietTo: null, highPasses: false })
      await page.getByLabel("Time zone").fill("Asia/Tokyo")
      await page.keyboard.press("Enter")
      await told(/at 18:30 \(Asia\/Tokyo\)\.$/)
      await saved({ timezone: "Asia/Tokyo" })
      // The browser's own zone is one press away.
      await page.getByText("This browser’s zone is Europe/Berlin.").waitFor()
      await page.getByRole("button", { name: "Use it" }).click()
      await told(/at 18:30\.$/)
      await saved({ timezone: "Europe/Berlin" })
      assert.isFalse(await page.getByRole("button", { name: "Use it" }).isVisible())
      // It shows the state of the server.
      await page.goto("about:blank")
      await page.goto(`${server.url}/n/me#${token}`)
      await page.getByLabel("Once a day at").waitFor()
      assert.strictEqual(await page.getByLabel("Once a day at").inputValue(), "18:30")
      assert.isFalse(await page.getByLabel("Urgent messages come at once all the same").isChecked())
    })
  })

  it("lets each project have its own, also a daily one beside those that come at once", async () => {
    await visit(["First", "Second"], async ({ page, told, token }) => {
      assert.isFalse(await page.getByLabel("Once a day at").isVisible())
      const first = page.getByLabel("Messages of First come")
      await first.focus()
      await first.selectOption("daily")
      await told("Saved. Messages of First come once a day, all in one.")
      await page.getByLabel("Once a day at").waitFor()
      assert.match(
        (await page.locator("#meaning").textContent()) ?? "",
        /^Messages come at once, where their project has no digests\. The next digest comes (today|tomorrow) at 09:00\.$/
      )
      // The keyboard stays where it was.
      assert.strictEqual(await page.evaluate("document.activeElement?.ariaLabel"), "Messages of First come")
      for (const [choice, words] of [
        ["hourly", "every hour, all in one"],
        ["instant", "at once"],
        ["muted", "not at all"],
        ["inherit", "as set above"]
      ] as const) {
        await first.selectOption(choice)
        await told(`Saved. Messages of First come ${words}.`)
        const { projects } = await run(settingsOf(token))
        assert.sameDeepMembers(
          projects.map(({ delivery, name }) => [name, delivery]),
          [
            ["First", choice],
            ["Second", "inherit"]
          ]
        )
      }
    })
  })

  it("tells a fault at its field, keeps what was typed, and takes back what was not saved", async () => {
    await visit(
      ["Faults"],
      async ({ page, told, token }) => {
        const problem = (field: string) => page.locator(`#${field}-problem`)
        const isInvalid = (field: string) => page.locator(`#${field}`).getAttribute("aria-invalid")
        await page.getByLabel("Time zone").fill("Mars/Olympus")
        await page.keyboard.press("Tab")
        await problem("timezone")
          .filter({ hasText: "Expected an IANA time zone, such as Europe/Berlin." })
          .waitFor()
        assert.strictEqual(await page.getByLabel("Time zone").inputValue(), "Mars/Olympus")
        assert.strictEqual(await isInvalid("timezone"), "true")
        await page.getByLabel("Until").fill("22:00")
        await problem("quietTo")
          .filter({ hasText: /^Is the same as quietFrom/ })
          .waitFor()
        await page.getByLabel("Until").fill("")
        await page.keyboard.press("Tab")
        await problem("quietTo").filter({ hasText: "A time is missing." }).waitFor()
        assert.deepInclude(await run(settingsOf(token)), {
          timezone: "Europe/Berlin",
          quietFrom: "22:00",
          quietTo: "07:00"
        })
        await page.getByLabel("Until").fill("06:00")
        await told(/^Saved\./)
        assert.strictEqual(await problem("quietTo").textContent(), "")
        assert.strictEqual(await isInvalid("quietTo"), "false")
        assert.deepInclude(await run(settingsOf(token)), { quietTo: "06:00" })
        // The server is away.
        await page.route("**/api/v1/**", (route) => route.abort())
        const choice = page.getByLabel("Messages come", { exact: true })
        await choice.selectOption("daily")
        await problem("delivery").filter({ hasText: /\w/ }).waitFor()
        assert.strictEqual(await choice.inputValue(), "instant")
        const ofProject = page.getByLabel("Messages of Faults come")
        await ofProject.selectOption("muted")
        await page.locator(".choice .problem").filter({ hasText: /\w/ }).waitFor()
        assert.strictEqual(await ofProject.inputValue(), "inherit")
        await page.unroute("**/api/v1/**")
        await choice.selectOption("daily")
        await told(/^Saved\. The next digest/)
        assert.strictEqual(await problem("delivery").textContent(), "")
      },
      { quietFrom: "22:00", quietTo: "07:00" }
    )
  })

  it("finds every zone by typing, its browser's first", async () => {
    await visit(
      ["Zones"],
      async ({ page }) => {
        const zones = await page.evaluate<ReadonlyArray<string>>(
          `[...document.getElementById(document.getElementById("timezone").getAttribute("list")).options].map(({ value }) => value)`
        )
        assert.strictEqual(zones[0], "Australia/Lord_Howe")
        assert.include(zones, "UTC")
        assert.isAbove(zones.length, 400)
        assert.strictEqual(new Set(zones).size, zones.length)
        await page.getByText("This browser’s zone is Australia/Lord_Howe.").waitFor()
      },
      {},
      { timezoneId: "Australia/Lord_Howe" }
    )
  })

  it("has words for each state, on the clocks of the subscriber's zone", async () => {
    await visit(["Words"], async ({ page }) => {
      const words = (settings: object, now = "2026-11-28T12:00:00Z") =>
        page.evaluate<string>(
          `import("/n/times.js").then(({ wordsOf }) => wordsOf(${JSON.stringify({
            delivery: "instant",
            held: 0,
            nextDigestAt: null,
            projects: [],
            quietFrom: null,
            quietTo: null,
            quietUntil: null,
            timezone: "Europe/Berlin",
            ...settings
          })}, ${Date.parse(now)}, "Europe/Berlin"))`
        )
      const daily = { delivery: "daily", nextDigestAt: "2026-11-28T17:00:00Z" }
      const night = { quietFrom: "22:00", quietTo: "07:00" }
      const cases: ReadonlyArray<readonly [object, string, string?]> = [
        [{}, "Messages come at once."],
        [night, "Messages come at once. Quiet from 22:00 to 07:00."],
        [daily, "The next digest comes today at 18:00."],
        [{ ...daily, held: 1 }, "The next digest comes today at 18:00. One message waits for it."],
        [{ ...daily, held: 50 }, "The next digest comes today at 18:00. 50 messages wait for it."],
        [{ ...daily, timezone: "Asia/Tokyo" }, "The next digest comes tomorrow at 02:00 (Asia/Tokyo)."],
        [daily, "The next digest comes on Saturday 28 November at 18:00.", "2026-11-26T12:00:00Z"],
        // A day of 25 hours, and one of 23.
        [
          { ...daily, nextDigestAt: "2026-10-26T08:00:00Z" },
          "The next digest comes tomorrow at 09:00.",
          "2026-10-24T22:30:00Z"
        ],
        [
          { ...daily, nextDigestAt: "2026-03-29T22:10:00Z" },
          "The next digest comes tomorrow at 00:10.",
          "2026-03-28T23:30:00Z"
        ],
        [daily, "The next digest is on its way.", "2026-11-28T17:00:01Z"],
        [
          { ...night, quietUntil: "2026-11-28T06:00:00Z", nextDigestAt: "2026-11-28T06:00:00Z", held: 2 },
          "Quiet until 07:00. What comes meanwhile, comes then. 2 messages wait."
        ],
        [
          { ...daily, ...night, quietUntil: "2026-11-29T06:00:00Z" },
          "The next digest comes today at 18:00. Quiet until 07:00."
        ],
        [
          { nextDigestAt: "2026-11-28T13:00:00Z", projects: [{ delivery: "hourly" }] },
          "Messages come at once, where their project has no digests. The next digest comes today at 14:00."
        ]
      ]
      for (const [settings, text, now] of cases) assert.strictEqual(await words(settings, now), text)
    })
  })

  it("shows names as text, whatever is in them", async () => {
    const names = hostileNames.slice(0, 60)
    await visit(names, async ({ page }) => {
      const choices = page.locator("#projects select")
      assert.strictEqual(await choices.count(), names.length)
      assert.strictEqual(await page.locator("#projects li").count(), names.length)
      assert.isUndefined(await page.evaluate("globalThis.ran"))
      const elements = await page.evaluate<ReadonlyArray<string>>(
        `[...new Set([...document.querySelectorAll("#projects *")].map(({ localName }) => localName))]`
      )
      assert.sameMembers([...elements], ["li", "div", "strong", "bdi", "span", "select", "option", "button"])
      // Its confirmation names it too.
      await choices.first().selectOption("hourly")
      await page.getByRole("status").filter({ hasText: "Saved. Messages of" }).waitFor()
      assert.isUndefined(await page.evaluate("globalThis.ran"))
      assert.strictEqual(await page.locator("#status *").count(), 0)
      for (const width of [320, 390, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        assert.isAtMost(await overflowOf(page), 0, `${width} px`)
      }
    })
    assert.isTrue(names.some((name) => name.includes(mark)))
  })

  it("can be used with the keyboard alone", async () => {
    await visit(["Keys"], async ({ page, told, token }) => {
      await page.getByLabel("Messages come", { exact: true }).focus()
      await page.keyboard.press("ArrowDown")
      await told(/^Saved\. The next digest/)
      await page.keyboard.press("ArrowDown")
      await told(/at 09:00\.$/)
      await page.keyboard.press("Tab")
      await page.keyboard.press("ArrowUp")
      await told(/at 10:00\.$/)
      await page.getByLabel("Quiet hours").press("Space")
      await page.getByLabel("Quiet from").waitFor()
      await page.keyboard.press("Tab")
      await page.keyboard.press("ArrowUp")
      await told(/23:00 to 07:00|until 07:00/)
      await until("it is saved", async () => {
        const { quietFrom } = await run(settingsOf(token))
        return quietFrom === "23:00" ? undefined : `${quietFrom}`
      })
      assert.deepInclude(await run(settingsOf(token)), {
        delivery: "daily",
        digestAt: "10:00",
        quietFrom: "23:00",
        quietTo: "07:00"
      })
    })
  })

  it("breaks no rule of axe and scrolls downwards alone, light, dark and on a phone", async () => {
    await visit(
      ["x".repeat(100), "Backups"],
      async ({ page, told }) => {
        await page.evaluate(axe.source)
        await page.getByLabel("Messages of Backups come").selectOption("muted")
        await told("not at all")
        await page.getByLabel("Time zone").fill("Mars/Olympus")
        await page.keyboard.press("Tab")
        await page.locator("#timezone-problem").filter({ hasText: /\w/ }).waitFor()
        for (const [width, colorScheme] of [
          [1280, "light"],
          [1280, "dark"],
          [390, "light"],
          [320, "dark"]
        ] as const) {
          await page.setViewportSize({ width, height: 900 })
          await page.emulateMedia({ colorScheme })
          const { violations } = await page.evaluate<AxeResults>(
            `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
          )
          const found = violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join("; ")}`
          )
          assert.deepStrictEqual(found, [], `${width} px, ${colorScheme}`)
          assert.isAtMost(await overflowOf(page), 0, `${width} px`)
          if (process.env["SHOTS"] !== undefined)
            await page.screenshot({
              path: `${process.env["SHOTS"]}/settings-${width}-${colorScheme}.png`,
              fullPage: true
            })
        }
      },
      { delivery: "daily", quietFrom: "22:00", quietTo: "07:00" }
    )
  })
})
