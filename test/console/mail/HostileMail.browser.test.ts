import { type AddressInfo, createServer, type Server } from "node:net"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type MailUser, newMailUser } from "./MailPage.ts"

/** All that a document can ask of a browser, at an address of the sender's. */
const hostile = (elsewhere: string): string => `<!doctype html>
<html><head>
<base href="${elsewhere}/base/">
<meta http-equiv="refresh" content="0; url=${elsewhere}/refresh">
<meta http-equiv="x-dns-prefetch-control" content="on">
<link rel="stylesheet" href="${elsewhere}/a.css"><LINK
rel=preconnect href="${elsewhere}"><link/rel=prefetch href="${elsewhere}/prefetch"><link rel="dns-prefetch" href="${elsewhere}">
<style>@import url(${elsewhere}/import.css); @font-face { font-family: F; src: url(${elsewhere}/font) }
p { background: rgb(0, 128, 0) url(${elsewhere}/background.png); font-family: F }</style>
<script>fetch("${elsewhere}/script"); top.location = "${elsewhere}/top"; document.title = "ran"</script>
<script src="${elsewhere}/script.js"></script>
</head><body onload="location = '${elsewhere}/onload'">
<p style="width: 200px; height: 100px">Green</p>
<img src="${elsewhere}/pixel.gif" onerror="location = '${elsewhere}/onerror'" srcset="${elsewhere}/set.gif 2x">
<img id="own" alt="" width="10" height="10" src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">
<svg onload="fetch('${elsewhere}/svg')"><image href="${elsewhere}/svg.png"/><script>fetch("${elsewhere}/svgs")</script></svg>
<video autoplay poster="${elsewhere}/poster" src="${elsewhere}/video"></video>
<iframe src="${elsewhere}/frame"></iframe><iframe src="/api/v1/accounts/me"></iframe>
<iframe srcdoc="<script>parent.location = '${elsewhere}/srcdoc'</script>"></iframe>
<object data="${elsewhere}/object"></object><embed src="${elsewhere}/embed">
<form action="${elsewhere}/form"><input name="q" autofocus onfocus="this.form.submit()"><button>Send</button></form>
<p><a href="${elsewhere}/plain" ping="${elsewhere}/ping">plain</a> <a href="${elsewhere}/top" target="_top">whole page</a>
<a href="javascript:top.location='${elsewhere}/js'">script</a></p>
<p><a href="${elsewhere}/self" target="_self">this frame</a></p>
</body></html>`

describeWith(chromiumPresent, "a hostile mail in the inbox of the sandbox, in Chromium,", () => {
  let user: MailUser
  let copy = ""
  let listener: Server
  let connections = 0
  let elsewhere = ""

  beforeAll(async () => {
    user = await newMailUser()
    listener = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
    elsewhere = `http://sender.test:${(listener.address() as AddressInfo).port}`
    await user.sent({ html: hostile(elsewhere) })
    const { body } = await ask(user.server, "GET", "/api/v1/emails/inbox", { key: user.key })
    copy = textAt({ status: 200, headers: new Headers(), body }, "emails", "0", "id")
  })
  afterAll(async () => {
    await user?.dispose()
    await new Promise((resolve) => listener.close(resolve))
  })

  const frameOf = (page: Page) => page.frameLocator("iframe[src]").frameLocator("iframe[srcdoc]")

  /** Clicks each link and presses the button, and looks at what became of it. */
  const tryAll = async (page: Page, frame: ReturnType<typeof frameOf>): Promise<void> => {
    const before = page.url()
    await frame.getByText("Green").waitFor()
    for (const name of ["plain", "whole page", "script", "this frame"])
      await frame.getByText(name, { exact: true }).click()
    await frame.getByRole("button", { name: "Send" }).click()
    // It is still there.
    await frame.getByText("Green").waitFor()
    const green = await frame.getByText("Green").evaluate((element) => {
      const style = element.ownerDocument.defaultView?.getComputedStyle(element)
      return [style?.backgroundColor, style?.width]
    })
    assert.deepStrictEqual(green, ["rgb(0, 128, 0)", "200px"])
    assert.strictEqual(
      await frame
        .locator("#own")
        .evaluate((image) => ("naturalWidth" in image ? image.naturalWidth : undefined)),
      1
    )
    assert.strictEqual(page.url(), before)
    assert.notStrictEqual(await page.title(), "ran")
  }

  it("shows its own styles and images, and runs, loads and opens nothing", async () => {
    const { page, context, requests } = await user.open(`&show=inbox&mail=${copy}`)
    await tryAll(page, frameOf(page))
    assert.strictEqual(context.pages().length, 1)
    // The browser tells of requests that a policy stopped, too.
    const left = requests.filter((request) => request.failure() === null).map((request) => request.url())
    assert.deepStrictEqual(
      left.filter((url) => url.startsWith(elsewhere) || url.endsWith("/accounts/me")),
      []
    )
    assert.strictEqual(connections, 0)
    await context.close()
  })
})
