import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { html } from "#src/http/Html.ts"
import { fileHeaders } from "#src/notify/pages/AttachmentPreview.ts"
import { messagePage, type ShownMessage } from "#src/notify/pages/MessagePage.ts"
import {
  iconPath,
  goneFilePage,
  goneMessagePage,
  noMessagePage,
  notifyPage
} from "#src/notify/pages/NotifyPage.ts"
import type { RenderedBody, ShownFormat } from "#streams/notify/bodies/Body.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderMarkdown } from "#streams/notify/bodies/RenderMarkdown.ts"
import { renderSource } from "#streams/notify/bodies/RenderText.ts"
import { overflowOf } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { hostileBodies, mark } from "#test/notify/bodies/HostileBodies.ts"
import { type PageServer, startPageServer } from "./PageServer.ts"
import { everyFormat, fileWith, messageWith, samplePdf, samplePng, sampleWave } from "./TestMessages.ts"

const formats = ["text", "markdown", "json", "log"] as const

const renderedAs = (text: string, format: ShownFormat): RenderedBody =>
  format === "markdown" ? renderMarkdown(text) : renderBody(text, format)

/** All elements of the body with the names of their attributes, as Chromium read them. */
const elementsOf = `[...new Set(Array.from(document.querySelectorAll("section.body > :not(.head) , section.body > :not(.head) *"), (one) =>
  [one.localName, ...one.getAttributeNames().sort()].join(" ")))].sort()`

const known = new Set([
  ..."blockquote br code div em h2 h3 h4 h5 h6 hr li ol p s small strong summary table tbody td th thead tr ul".split(
    " "
  ),
  ..."a href rel,details open,div class,div dir,div class dir,div aria-label class role tabindex,ol start,pre,pre class,pre class dir,span class,td class,th class".split(
    ","
  )
])

describeWith(chromiumPresent, "pages of messages, in Chromium,", () => {
  let server: PageServer
  let browser: Browser

  /** All that a page did besides being shown. */
  interface Seen {
    /** addresses that were asked for, this server's without its name */
    readonly requests: Array<string>
    /** errors and violations of the policy, as the browser tells them */
    readonly complaints: Array<string>
  }

  const serve = (path: string, message: Partial<ShownMessage>): string => {
    server.answers.set(path, messagePage(messageWith({ ...message, path: path as `/${string}` })))
    return path
  }

  const visit = async (
    path: string,
    look: (page: Page, seen: Seen) => Promise<void>,
    options: BrowserContextOptions = {}
  ): Promise<void> => {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const seen: Seen = { requests: [], complaints: [] }
    context.on("request", (request) => {
      const address = request.url().replace(server.url, "")
      if (address !== iconPath) seen.requests.push(address)
    })
    page.on("console", (message) => void seen.complaints.push(message.text()))
    page.on("pageerror", ({ message }) => void seen.complaints.push(message))
    page.on("dialog", (dialog) => void seen.complaints.push(`dialog ${dialog.message()}`))
    try {
      await page.goto(`${server.url}${path}`)
      await look(page, seen)
    } finally {
      await context.close()
    }
  }

  /** Its page ends as it was written: nothing in the body ended an element around it. */
  const assertWhole = async (page: Page): Promise<void> => {
    assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
    assert.strictEqual(
      await page.evaluate(`document.querySelector("article > :last-child").className`),
      "kept hint"
    )
    assert.strictEqual(
      await page.evaluate(`document.querySelectorAll("script, style, iframe, form").length`),
      0
    )
  }

  beforeAll(async () => {
    server = await startPageServer()
    browser = await sharedBrowser()
  })
  afterAll(async () => {
    await server?.close()
  })

  it("run no script and load nothing, whatever the body is, in every format", async () => {
    for (const format of formats) {
      const bodies = hostileBodies.map((text) => renderedAs(text, format).html).join("")
      const path = serve(`/n/m/hostile-${format}`, { body: { format, html: bodies, remark: undefined } })
      await visit(path, async (page, { complaints, requests }) => {
        const elements: ReadonlyArray<string> = await page.evaluate(elementsOf)
        assert.deepStrictEqual(
          elements.filter((element) => !known.has(element)),
          [],
          format
        )
        const schemes: ReadonlyArray<string> = await page.evaluate(
          `[...new Set(Array.from(document.querySelectorAll("section.body > :not(.head) a"), (link) => link.protocol))]`
        )
        for (const scheme of schemes) assert.include(["http:", "https:", "mailto:"], scheme)
        await assertWhole(page)
        assert.deepStrictEqual(requests, [path, "/n/pages.css"], format)
        assert.deepStrictEqual(complaints, [], format)
      })
    }
  })

  it("would not run one if it came through, and say so", async () => {
    const main = html`${{
      html: `<h1>x</h1><script>${mark}</script><img src=x onerror=${mark}><img src="${server.url.replace("127.0.0.1", "elsewhere.test")}/n/elsewhere"><p style="color:red">x</p>
        <a href="javascript:${mark}" id="link">x</a><form action="/x"><button id="go">x</button></form>`
    }}`
    server.answers.set("/n/m/open", notifyPage({ status: 200, title: "x", project: undefined, main }))
    await visit("/n/m/open", async (page, { complaints }) => {
      await page.evaluate("for (const id of ['link', 'go']) document.getElementById(id).click()")
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      await until("violations of the policy", async () => {
        const violations = complaints.filter((text) => text.includes("Content Security Policy"))
        return violations.length >= 4 ? undefined : violations.join("\n")
      })
      assert.notInclude(server.asked, "/n/elsewhere")
    })
  })

  it("can be used at 1 MB of each format: all of it is there, down to its end", async () => {
    const megabyte = 1024 * 1024
    const filled = (text: string, bytes = megabyte): string => text.repeat(Math.floor(bytes / text.length))
    const texts = {
      text: filled("The quick brown fox jumps over the lazy dog, see https://example.com/ for more.\n"),
      "one line": "x".repeat(megabyte),
      log: filled("2026-11-23T04:00:00.123Z \u001b[31mERROR\u001b[0m http://localhost:8080/ failed\n"),
      json: `[${Array.from({ length: 18_000 }, (_, id) => `{"id":${id},"name":"item ${id}","tags":["a","b"]}`).join(",")}]`,
      markdown: filled(
        "# Head\n\nSome *text* with `code`, [a link](https://example.com/).\n\n- a\n- b\n\n",
        megabyte / 4
      )
    }
    for (const [name, text] of Object.entries(texts)) {
      const format = name === "one line" ? "text" : (name as ShownFormat)
      const path = serve(`/n/m/large-${format}`, { body: renderedAs(text, format) })
      await visit(path, async (page) => {
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await page.locator(".kept").scrollIntoViewIfNeeded({ timeout: 60_000 })
        assert.isTrue(await page.locator(".kept").isVisible())
        assert.isAtMost(await overflowOf(page), 0, name)
        assert.isAtLeast(
          await page.evaluate<number>(`document.querySelector("section.body").textContent.length`),
          // Half of the Markdown is marks and addresses.
          text.length * (format === "markdown" ? 0.5 : 0.85),
          name
        )
        await assertWhole(page)
      })
    }
  })

  it("show files by their kinds; a picture's script does not run, and a document is downloaded", async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><script>${mark};fetch("/n/svg")</script>
      <image href="/n/image-in-svg" width="9" height="9"/><rect width="40" height="30" fill="teal"/></svg>`
    const page404 = `<script>${mark};fetch("/n/html")</script><img src="/n/image-in-html">text`
    const files = [
      [fileWith("picture.svg", "image/svg+xml"), Buffer.from(svg)],
      [fileWith("photo.png", "image/png"), samplePng],
      [fileWith("sound.wav", "audio/wav"), sampleWave],
      [fileWith("clip.mp4", "video/mp4"), Buffer.from("no video")],
      [
        fileWith("page.html", "text/html", {
          head: { html: renderBody(page404, "text").html, isWhole: true }
        }),
        Buffer.from(page404)
      ],
      [fileWith("paper.pdf", "application/pdf"), samplePdf],
      [fileWith("data.bin", "application/octet-stream"), Buffer.from([1, 2, 3])]
    ] as const
    const path = serve("/n/m/files", { files: files.map(([file]) => file) })
    const at = (name: string): string => `${path}/a/${files.find(([file]) => file.filename === name)?.[0].id}`
    for (const [{ contentType, filename, id }, bytes] of files)
      server.answers.set(`${path}/a/${id}`, { ...fileHeaders(contentType, filename), bytes })
    await visit(path, async (page, { complaints, requests }) => {
      const widths = async (): Promise<unknown> =>
        await page.evaluate(`Promise.all(Array.from(document.images, async (image) => {
          image.loading = "eager"
          await image.decode()
          return image.naturalWidth
        }))`)
      assert.deepStrictEqual(await widths(), [40, 2])
      await page.waitForFunction(`document.querySelector("audio").readyState > 0`)
      assert.closeTo(await page.evaluate<number>(`document.querySelector("audio").duration`), 0.1, 0.01)
      await page.locator("summary").click()
      assert.include(await page.locator("details pre").innerText(), page404)
      await assertWhole(page)
      assert.isEmpty(requests.filter((url) => !url.startsWith("/n/m/files") && url !== "/n/pages.css"))
      assert.isEmpty(complaints)
      // Opened by itself a page is its source, a picture with scripts a download.
      await page.goto(`${server.url}${at("page.html")}`)
      assert.include(await page.evaluate<string>("document.body.innerText"), page404)
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      await page.goto(`${server.url}${at("paper.pdf")}`)
      await until("a viewer of PDF", async () =>
        page.frames().some((frame) => frame.url().startsWith("chrome-extension://")) ? undefined : "its frame"
      )
      for (const name of ["picture.svg", "data.bin"]) {
        const download = page.waitForEvent("download")
        await page
          .goto(`${server.url}${at(name)}`)
          .catch((error: Error) => assert.include(error.message, "Download"))
        assert.strictEqual((await download).suggestedFilename(), name)
      }
    })
    const strange = ["/n/svg", "/n/html", "/n/image-in-svg", "/n/image-in-html"]
    assert.isEmpty(server.asked.filter((url) => strange.includes(url)))
  })

  it("break no rule of axe, scroll downwards alone, and can be used with the keyboard, wide, dark and on a phone", async () => {
    serve("/n/m/every", everyFormat("markdown"))
    serve("/n/m/log", everyFormat("log"))
    serve("/n/m/json", everyFormat("json"))
    serve("/n/m/source", { body: { source: { html: renderSource("raw \u001b[31m text") } } })
    server.answers.set("/n/m/none", noMessagePage())
    server.answers.set("/n/m/gone", goneMessagePage(90))
    server.answers.set("/n/m/gone-file", goneFilePage("Builds", "core.dump", 0))
    for (const path of ["every", "log", "json", "source", "none", "gone", "gone-file"]) {
      await visit(`/n/m/${path}`, async (page) => {
        for (const [width, colorScheme] of [
          [1280, "light"],
          [320, "dark"],
          [390, "light"]
        ] as const) {
          const where = `${path} at ${width} px, ${colorScheme}`
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
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        assert.strictEqual(await page.evaluate("document.activeElement?.tagName"), "MAIN")
      })
    }
    await visit("/n/m/json", async (page) => {
      assert.strictEqual(await page.locator(".button").innerText(), "Open ci.example.com")
      const summary = page.locator("section.body summary").first()
      await summary.focus()
      await page.keyboard.press("Enter")
      assert.isFalse(await page.locator(".in").first().isVisible())
      await page.keyboard.press("Enter")
      assert.isTrue(await page.locator(".in").first().isVisible())
    })
  })
})
