import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { beforeAll } from "vitest"
import { iconPath } from "#src/notify/pages/NotifyPage.ts"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer, TestServer } from "#test/harness/TestServer.ts"
import { hostileBodies, mark } from "#test/notify/bodies/HostileBodies.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import type { SandboxClient } from "../sandbox/SandboxClient.ts"
import { api, makeStage, sent, type Stage } from "../Stage.ts"
import { joined, linkOf } from "../subscribers/SubscriberStage.ts"

/** Texts that a send takes, as the messages of one digest. Controls are dropped from them. */
const texts = hostileBodies.filter(
  (body) =>
    body.isWellFormed() && body.length <= 4_000 && /[^\p{Cc}\s]/u.test(body) && !body.includes("\u0000")
)

describeWith(chromiumPresent, "pages of digests, served and in Chromium,", () => {
  let server: typeof TestServer.Service
  let browser: Browser
  let sandbox: SandboxClient
  let stage: Stage

  const run = <A, E>(effect: Effect.Effect<A, E, TestServer>): Promise<A> =>
    Effect.runPromise(Effect.provideService(effect, TestServer, server))

  beforeAll(async () => {
    server = await sharedServer()
    browser = await sharedBrowser()
    sandbox = await run(sandboxOfServer)
    stage = await run(makeStage)
  })

  /** The page of the digest of these messages, which its subscriber asks for by wanting messages at once again. */
  const digestOf = async (projectName: string, messages: ReadonlyArray<object>): Promise<string> => {
    const project = await run(
      stage.project({ name: projectName, slug: `d${Math.random().toString(36).slice(2)}` })
    )
    const key = await run(stage.projectKey({ projects: [project], rateLimitPerMinute: 6_000 }))
    const { id: channel, ...push } = await sandbox.subscribe()
    const { token } = await run(
      joined(await run(linkOf(stage, project)), { name: "Ada", delivery: "daily", push })
    )
    for (const message of messages) await run(sent(key, message))
    await run(server.ask("PATCH", `${api}/subscriber`, { key: token, json: { delivery: "instant" } }))
    const [entry] = await sandbox.accepted(1, { channel })
    const { open, title } = (entry?.payload ?? {}) as { readonly open?: string; readonly title?: string }
    assert.strictEqual(title, `${messages.length} messages`)
    assert.match(open ?? "", new RegExp(`^${server.url}/n/d/[0-9A-Za-z]{40}$`))
    return open ?? ""
  }

  it("run no script and load nothing, whatever was sent, and read well light, dark and on a phone", async () => {
    const url = await digestOf(
      `Builds </h1><script>${mark}</script>`,
      texts.map((text) => ({
        app: `ci <b onclick=${mark}>`,
        message: text,
        title:
          text
            .replace(/\p{Cc}/gu, " ")
            .trim()
            .slice(0, 100)
            .toWellFormed() || "none",
        url: "https://ci.example.com/1?<script>"
      }))
    )
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
      const response = await page.goto(url)
      assert.strictEqual(response?.status(), 200)
      assert.match(
        response?.headers()["content-security-policy"] ?? "",
        /^default-src 'none'; style-src 'self'/
      )
      assert.isAtLeast(await page.locator(".digest > li").count(), Math.min(texts.length, 100))
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      assert.strictEqual(await page.locator("article :is(script, style, iframe, form, img, svg)").count(), 0)
      const schemes = await page.evaluate<ReadonlyArray<string>>(
        `[...new Set(Array.from(document.querySelectorAll("article a"), ({ protocol }) => protocol))]`
      )
      for (const scheme of schemes) assert.include(["http:", "https:"], scheme)
      for (const [width, colorScheme] of [
        [1280, "light"],
        [1280, "dark"],
        [320, "dark"],
        [390, "light"]
      ] as const) {
        await page.setViewportSize({ width, height: 900 })
        await page.emulateMedia({ colorScheme })
        assert.isAtMost(await overflowOf(page), 0, `${width} px`)
        const { violations } = await page.evaluate<AxeResults>(
          `${axe.source}; axe.run(document, { resultTypes: ["violations"] })`
        )
        assert.deepStrictEqual(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`),
          [],
          `${width} px, ${colorScheme}`
        )
        if (process.env["SHOTS"] !== undefined)
          await page.screenshot({ path: `${process.env["SHOTS"]}/digest-${width}-${colorScheme}.png` })
      }
      assert.deepStrictEqual(requests, [url.replace(server.url, ""), "/n/pages.css"])
      assert.deepStrictEqual(complaints, [])
    } finally {
      await context.close()
    }
  })

  it("lead to each message's own page, where that has more", async () => {
    const url = await digestOf("Backups", [
      { message: "Short" },
      { message: "Long", title: "Nightly", body: "All of it" }
    ])
    const context = await browser.newContext()
    const page = await context.newPage()
    try {
      await page.goto(url)
      await page.getByRole("heading", { name: "2 messages" }).waitFor()
      await page.getByRole("link", { name: "Show all of Nightly" }).press("Enter")
      await page.getByText("All of it").waitFor()
    } finally {
      await context.close()
    }
  })
})
