import { assert, it } from "@effect/vitest"
import { afterEach, beforeAll } from "vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type FilesUser, newFilesUser } from "./FilesPage.ts"
import { recordFilm } from "./Film.ts"

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC",
  "base64"
)

/** A program that says on the page that it ran. */
const hostile = `<script>top.ran = true</script><img src=x onerror="top.ran = true">`

describeWith(chromiumPresent, "a shared file in the console, in Chromium,", () => {
  let user: FilesUser

  beforeAll(async () => {
    user = await newFilesUser()
  })
  afterEach(() => user.closePages())

  it("lists versions, restores an old one as a new one, and deletes one for good", async () => {
    await user.put("v/notes.txt", "first", "text/plain")
    const id = await user.put("v/notes.txt", "second", "text/plain")
    const { page, query } = await user.open(`?room=files&file=${id}`)
    await page.getByRole("heading", { name: "notes.txt", level: 1 }).waitFor()
    await page.getByText("second", { exact: true }).waitFor()
    const versions = page.getByRole("list", { name: "2 versions" })
    await versions.getByText("Version 2 (current)").waitFor()
    const href = await versions.getByRole("link", { name: "Download version 1" }).getAttribute("href")
    const bytes = await page.evaluate(`fetch(${JSON.stringify(href)}).then((answer) => answer.text())`)
    assert.strictEqual(bytes, "first")
    const download = page.waitForEvent("download")
    await versions.getByRole("link", { name: "Download version 2" }).click()
    assert.strictEqual((await download).suggestedFilename(), "notes.txt")

    await versions.getByRole("button", { name: "Restore" }).click()
    await versions.getByRole("button", { name: "Restore it" }).click()
    await page.getByText("Version 3 (current)").waitFor()
    await page.getByText("first", { exact: true }).waitFor()
    const row = page
      .getByRole("list", { name: "3 versions" })
      .getByRole("listitem")
      .filter({ hasText: "Version 2" })
    await row.getByRole("button", { name: "Delete" }).click()
    await row.getByRole("button", { name: "Delete it" }).click()
    await page.getByRole("heading", { name: "2 versions" }).waitFor()
    // The page is of the file, whatever version its address began with.
    const { file = "" } = Object.fromEntries(new URLSearchParams(query()))
    assert.match(file, /^fg_/)
    const { versions: left } = (await user.read(`/api/files/${file}/versions`)) as {
      versions: ReadonlyArray<{ version: number }>
    }
    assert.deepStrictEqual(
      left.map(({ version }) => version),
      [3, 1]
    )
  })

  it("is shown once, though its link is of a version", async () => {
    const id = await user.put("o/once.txt", "once", "text/plain")
    const { page } = await user.open()
    await page.addInitScript(`
      globalThis.shown = 0
      const count = ({ addedNodes }) => {
        for (const node of addedNodes)
          if (node.matches?.(".file-view") || node.querySelector?.(".file-view")) globalThis.shown++
      }
      new MutationObserver((changes) => changes.forEach(count)).observe(document, { childList: true, subtree: true })`)
    await page.goto(`${user.server.url}/?room=files&file=${id}`)
    await page.waitForURL(/file=fg_/)
    await page.getByText("once", { exact: true }).waitFor()
    assert.strictEqual(await page.evaluate("globalThis.shown"), 1)
  })

  it("shows an image, and says what it cannot show", async () => {
    const image = await user.put("p/a.png", png, "image/png")
    const { page } = await user.open(`?room=files&file=${image}`)
    await page.getByRole("img", { name: "a.png" }).waitFor()
    await until("the image is shown", async () => {
      const width = await page.evaluate(`document.querySelector(".preview-image").naturalWidth`)
      return width === 10 ? undefined : `${String(width)} pixels`
    })
    const broken = await user.put("p/broken.png", "no image", "image/png")
    await page.goto(`${user.server.url}/?room=files&file=${broken}`)
    await page.getByText("This browser cannot show it.").waitFor()
    const other = await user.put("p/a.bin", png, "application/octet-stream")
    await page.goto(`${user.server.url}/?room=files&file=${other}`)
    await page.getByText("Files of this type are not shown here.").waitFor()
  })

  it("shows HTML, SVG and scripts as text, and runs none of them", async () => {
    const files = {
      "page.html": ["text/html", hostile],
      "image.svg": [
        "image/svg+xml",
        `<svg xmlns="http://www.w3.org/2000/svg" onload="top.ran = true"><script>top.ran = true</script></svg>`
      ],
      "x.xml": ["application/xml", `<?xml version="1.0"?><x>${hostile}</x>`]
    } as const
    const { context, page } = await user.open()
    const alone = await (await sharedBrowser()).newContext()
    await alone.addCookies(await context.cookies())
    const tab = await alone.newPage()
    for (const [name, [type, text]] of Object.entries(files)) {
      const id = await user.put(`h/${name}`, text, type)
      await page.goto(`${user.server.url}/?room=files&file=${id}`)
      await page.getByLabel("Text of the file").filter({ hasText: "top.ran = true" }).waitFor()
      assert.isUndefined(await page.evaluate("globalThis.ran"), name)
      // Nor where it is opened by its address, of which the browser complains.
      assert.strictEqual((await tab.goto(`${user.server.url}/api/files/${id}`))?.status(), 200)
      assert.isUndefined(await tab.evaluate("globalThis.ran"), name)
    }
    await alone.close()
  })

  it("shows the beginning of a long text, of any script", async () => {
    const line = "Zeile mit Umlauten äöü und 日本語 😀\n"
    const text = line.repeat(20_000)
    const id = await user.put("t/long.txt", text, "text/plain; charset=utf-8")
    const { page } = await user.open(`?room=files&file=${id}`)
    await page.getByText("The first 262 kB of").waitFor()
    await page.locator('.preview-text[aria-busy="false"]').waitFor()
    const shown: string = await page.evaluate(`document.querySelector(".preview-text pre").textContent`)
    assert.isTrue(text.startsWith(shown))
    assert.isAbove(Buffer.byteLength(shown), 262_000)
  })

  it("plays a film from the middle, by a range of its bytes", async () => {
    const { page } = await user.open()
    const film = await recordFilm(page)
    const id = await user.put("films/long.webm", film, "video/webm")
    const ranges: Array<string> = []
    page.on("request", (request) => {
      const range = request.headers()["range"]
      if (range !== undefined && request.url().endsWith(id)) ranges.push(range)
    })
    await page.goto(`${user.server.url}/?room=files&file=${id}`)
    await until("the film is known", async () => {
      const state = await page.evaluate(`document.querySelector("video")?.readyState ?? 0`)
      return Number(state) >= 1 ? undefined : "not yet"
    })
    await page.evaluate(`new Promise((resolve) => {
      const video = document.querySelector("video")
      video.addEventListener("seeked", resolve, { once: true })
      video.currentTime = 50
    })`)
    assert.strictEqual(await page.evaluate(`document.querySelector("video").currentTime`), 50)
    // Chromium may have the middle already: it asks by ranges in any case, and may go anywhere.
    assert.isAbove(ranges.length, 0)
    assert.isAbove(Number(await page.evaluate(`document.querySelector("video").seekable.end(0)`)), 50)
  })

  it("says when the server refuses the bytes of a text", async () => {
    const id = await user.put("gone/a.txt", "a", "text/plain")
    const { page } = await user.open()
    await page.route(`**/api/files/${id}`, (route) => route.fulfill({ status: 503, json: { error: "away" } }))
    await page.goto(`${user.server.url}/?room=files&file=${id}`)
    await page.getByText("The server did not send the text.").waitFor()
  })

  it("goes to the trash from its own page, and back", async () => {
    const id = await user.put("own/a.txt", "a", "text/plain")
    const { act, page } = await user.open(`?room=files&file=${id}`)
    await act("a.txt", "Delete")
    await page.getByText("a.txt is in the trash.").waitFor()
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByRole("heading", { name: "a.txt", level: 1 }).waitFor()
    assert.strictEqual((await ask(user.server, "GET", `/api/files/${id}`, { key: user.key })).status, 200)
  })
})
