import { assert, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { beforeAll } from "vitest"
import type { Attachment } from "#schemas/notify/Attachment.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer, type TestServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { iconPath } from "#src/notify/pages/NotifyPage.ts"
import { hostileBodies, mark } from "#test/notify/bodies/HostileBodies.ts"
import { samplePdf, samplePng, sampleWave } from "./TestMessages.ts"

const api = "/api/v1"
const formats = ["auto", "text", "markdown", "json", "log"] as const

/** Those that a send takes: no store keeps the others. */
const sendable = hostileBodies.filter((body) => body.isWellFormed() && !body.includes("\u0000"))

/** A page that was visited, and all that it did besides being shown. */
interface Visited {
  readonly page: Page
  readonly path: string
  /** addresses that were asked for, this server's without its name */
  readonly requests: ReadonlyArray<string>
  /** errors and violations of the policy, as the browser tells them */
  readonly complaints: ReadonlyArray<string>
}

describeWith(chromiumPresent, "pages of messages, served and in Chromium,", () => {
  let server: typeof TestServer.Service
  let browser: Browser
  let owner: Caller
  let key: string

  beforeAll(async () => {
    server = await sharedServer()
    browser = await sharedBrowser()
    owner = await makeCaller(server.server, 0)
    const project = { name: `Builds </h1><script>${mark}</script>`, slug: "builds" }
    await ask(server.server, "POST", `${api}/projects`, { key: owner.key, json: project })
    const json = { name: "sender", projects: "all", rateLimitPerMinute: 6_000 }
    key = textAt(await ask(server.server, "POST", `${api}/project-keys`, { key: owner.key, json }), "key")
  })

  const upload = async (name: string, bytes: string | Uint8Array, type = ""): Promise<Attachment> => {
    const response = await fetch(`${server.url}${api}/attachments?filename=${encodeURIComponent(name)}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, ...(type !== "" && { "content-type": type }) },
      body: Buffer.from(bytes)
    })
    assert.strictEqual(response.status, 200, name)
    return (await response.json()) as Attachment
  }

  const visit = async (fields: object, look: (visited: Visited) => Promise<void>): Promise<void> => {
    const answer = await ask(server.server, "POST", `${api}/messages`, {
      key,
      json: { app: "ci", message: "m", ...fields }
    })
    assert.strictEqual(answer.status, 201, JSON.stringify(answer.body))
    const { messages } = answer.body as { readonly messages: ReadonlyArray<{ readonly viewUrl: string }> }
    const url = messages[0]?.viewUrl ?? ""
    const context = await browser.newContext()
    const page = await context.newPage()
    const [requests, complaints]: [Array<string>, Array<string>] = [[], []]
    context.on("request", (request) => {
      const address = request.url().replace(server.url, "")
      if (address !== iconPath) requests.push(address)
    })
    page.on("console", (message) => void complaints.push(message.text()))
    page.on("pageerror", ({ message }) => void complaints.push(message))
    page.on("dialog", (dialog) => void complaints.push(`dialog ${dialog.message()}`))
    try {
      await page.goto(url)
      await look({ page, path: url.replace(server.url, ""), requests, complaints })
    } finally {
      await context.close()
    }
  }

  const assertWhole = async (page: Page): Promise<void> => {
    assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
    assert.strictEqual(
      await page.evaluate(`document.querySelector("article > :last-child").className`),
      "kept hint"
    )
    const active = `document.querySelectorAll("script, style, iframe, form, object, embed, base").length`
    assert.strictEqual(await page.evaluate(active), 0)
  }

  it("run no script and ask nobody else, whatever their fields and bodies are", async () => {
    const hostile = `"><img src=x onerror=${mark}><script>${mark}</script>`
    for (const bodyFormat of formats) {
      const fields = {
        app: hostile,
        title: hostile,
        message: sendable
          .filter((text) => text.length < 60)
          .join(" ")
          .slice(0, 4_000),
        url: `https://elsewhere.test/?${encodeURIComponent(hostile)}`,
        body: sendable.join("\n\n"),
        bodyFormat
      }
      await visit(fields, async ({ complaints, page, path, requests }) => {
        await assertWhole(page)
        assert.deepStrictEqual(requests, [path, "/n/pages.css"], bodyFormat)
        assert.deepStrictEqual(complaints, [], bodyFormat)
        await page.goto(`${server.url}${path}?source`)
        await assertWhole(page)
        assert.deepStrictEqual(complaints, [], bodyFormat)
      })
    }
  })

  it("show 1 MB of JSON down to its end", async () => {
    const items = Array.from({ length: 9_000 }, (_, at) => ({
      at,
      name: `<b>${"x".repeat(60)}</b>`,
      ok: true
    }))
    await visit({ body: [...items, "the end"] }, async ({ complaints, page }) => {
      await page.locator(".kept").scrollIntoViewIfNeeded({ timeout: 60_000 })
      await assertWhole(page)
      assert.include(
        await page.evaluate<string>(`document.querySelector("section.body").textContent`),
        "the end"
      )
      assert.deepStrictEqual(complaints, [])
    })
  })

  it("show files by their kinds; a picture's script does not run, PDF opens, others are downloaded", async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><script>${mark};fetch("/n/svg")</script>
      <image href="/n/image-in-svg" width="9" height="9"/><rect width="40" height="30" fill="teal"/></svg>`
    const foreign = `<script>${mark};fetch("/n/html")</script><img src="/n/image-in-html">text`
    const files = {
      svg: await upload("picture.svg", svg),
      png: await upload("photo \u202egpj.png", samplePng),
      wave: await upload("sound.wav", sampleWave),
      html: await upload("page.html", foreign),
      xml: await upload("page.xhtml", foreign, "application/xhtml+xml"),
      pdf: await upload("paper.pdf", samplePdf),
      zip: await upload("data.zip", new Uint8Array([1, 2, 3]))
    }
    const attachments = Object.values(files).map(({ id }) => id)
    await visit({ attachments }, async ({ complaints, page, path, requests }) => {
      const widths = `Promise.all(Array.from(document.images, async (image) => {
        image.loading = "eager"
        await image.decode()
        return image.naturalWidth
      }))`
      assert.deepStrictEqual(await page.evaluate(widths), [40, 2])
      await page.waitForFunction(`document.querySelector("audio").readyState > 0`)
      await page.locator("summary").first().click()
      assert.include(await page.locator("details pre").first().innerText(), foreign)
      await assertWhole(page)
      assert.isEmpty(requests.filter((url) => !url.startsWith(path) && url !== "/n/pages.css"))
      assert.isEmpty(complaints)
      await page.goto(`${server.url}${path}/a/${files.html.id}`)
      assert.include(await page.evaluate<string>("document.body.innerText"), foreign)
      assert.strictEqual(await page.evaluate("typeof globalThis.ran"), "undefined")
      await page.goto(`${server.url}${path}/a/${files.pdf.id}`)
      await until("a viewer of PDF", async () =>
        page.frames().some((frame) => frame.url().startsWith("chrome-extension://")) ? undefined : "its frame"
      )
      for (const [file, name] of [
        [`a/${files.svg.id}`, "picture.svg"],
        [`a/${files.xml.id}`, "page.xhtml"],
        [`a/${files.zip.id}`, "data.zip"]
      ] as const) {
        const download = page.waitForEvent("download")
        await page
          .goto(`${server.url}${path}/${file}`)
          .catch((error: Error) => assert.include(error.message, "Download"))
        assert.strictEqual((await download).suggestedFilename(), name)
      }
      assert.isEmpty(requests.filter((url) => /\/n\/(svg|html|image-in)/.test(url)))
    })
  })

  it("say in a browser, too, that there is nothing", async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const answer = await page.goto(`${server.url}/n/m/${"0".repeat(40)}`)
    assert.strictEqual(answer?.status(), 404)
    assert.strictEqual(await page.locator("h1").innerText(), "No message is here")
    await context.close()
  })
})
