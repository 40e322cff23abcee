import { readFile } from "node:fs/promises"
import { assert, it } from "@effect/vitest"
import { afterAll, afterEach, beforeAll } from "vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { chromiumPresent } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { focusedIn, overflowOf } from "../ConsolePage.ts"
import { linesOf, type MailUser, newMailUser } from "./MailPage.ts"

const main = "Sent"

describeWith(chromiumPresent, "the console's room of mail, in Chromium,", () => {
  let user: MailUser

  beforeAll(async () => {
    user = await newMailUser()
  })
  afterEach(() => user.closePages())
  afterAll(() => user?.dispose())

  it("sends a mail, names the field at fault, and shows how a deferral turns into sent", async () => {
    const console = await user.open()
    const { page } = console
    const form = page.getByRole("form", { name: "Send a mail" })
    await form.getByLabel("From").fill("shop@example.com")
    await form.getByLabel("To", { exact: false }).first().fill("defer@example.org, bob@")
    await form.getByLabel("Subject").fill("Your invoice")
    await form.getByLabel("Text").fill("Ten euros, please.")
    await form.getByRole("button", { name: "Send" }).click()
    await form.getByText('to[1]: "bob@" is not an address').waitFor()
    const to = form.getByRole("textbox", { name: /^To/ })
    assert.strictEqual(await to.getAttribute("aria-invalid"), "true")
    await to.fill("defer@example.org, bounce@example.org")
    await form.getByRole("button", { name: "Send" }).click()
    await page.getByText("Accepted as eml_").waitFor()
    assert.strictEqual(await form.getByLabel("Subject").inputValue(), "")

    await linesOf(console, main).filter({ hasText: "1 deferred, 1 bounced" }).getByRole("link").click()
    await page.getByRole("heading", { name: "Your invoice", level: 1 }).waitFor()
    const ada = linesOf(console, "Recipients").filter({ hasText: "defer@example.org" })
    await ada.getByText(/deferred · 451 4\.3\.0 try again: defer · again /).waitFor()
    await linesOf(console, "Recipients").getByText("bounced · 550 5.1.1 no such mailbox").waitFor()
    // The page is not touched from here on.
    await user.hurry()
    await ada.getByText("deferred · 2 attempts").waitFor()
    await user.hurry()
    await ada.getByText("sent · 3 attempts · 250").waitFor()
    assert.strictEqual(await linesOf(console, "Attempts").filter({ hasText: "defer@" }).count(), 3)
  })

  it("cancels what waits, and downloads the source", async () => {
    const id = await user.send({
      to: "ada@example.org",
      send_at: new Date(Date.now() + 3_600_000).toISOString()
    })
    const console = await user.open(`&mail=${id}`)
    const { page } = console
    await page.getByText("It has not been tried yet.").waitFor()
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Its source" }).click()
    ])
    assert.strictEqual(download.suggestedFilename(), `${id}.eml`)
    assert.include(await readFile(await download.path(), "utf8"), `Message-ID: <${id}@example.com>`)
    await page.getByRole("button", { name: "Cancel what waits" }).click()
    await page.getByRole("button", { name: "Cancel it" }).click()
    await linesOf(console, "Recipients").getByText("canceled").waitFor()
    await page.getByRole("button", { name: "Cancel what waits" }).waitFor({ state: "detached" })
  })

  it("says that a mail is not there", async () => {
    const { page } = await user.open("&mail=eml_none")
    await page.getByRole("heading", { name: "No such mail" }).waitFor()
    await page.getByRole("link", { name: "Inbox" }).click()
    await page.getByRole("heading", { name: "Inbox of the sandbox" }).waitFor()
  })

  it("shows the inbox as mail comes, and a copy by its parts", async () => {
    const console = await user.open("&show=inbox", { width: 360 })
    const { page } = console
    await page.getByRole("heading", { name: "Inbox of the sandbox" }).waitFor()
    await user.send({
      to: "Ada <ada@example.org>",
      subject: "Reset your password",
      html: '<p style="color: rgb(1, 2, 3)">Grüße, <a href="https://shop.example/reset?t=1">reset it</a></p>',
      text: "Grüße",
      headers: { "X-Campaign-ID": "resets" },
      attachments: [{ filename: "terms.html", content: Buffer.from("<script>1</script>").toString("base64") }]
    })
    await linesOf(console, "Inbox").filter({ hasText: "Reset your password" }).getByRole("link").click()
    const mail = page.frameLocator("iframe.mail-html").frameLocator("iframe")
    await mail.getByText("Grüße, reset it").waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    const part = (name: string) =>
      page.getByRole("navigation", { name: "Parts of the mail" }).getByText(name).click()
    await part("Text")
    await page.getByLabel("Text of the mail").getByText("Grüße", { exact: true }).waitFor()
    await part("Headers")
    await page.getByLabel("Headers of the mail").getByText("X-Campaign-ID: resets").waitFor()
    await part("Source")
    await page.getByLabel("Source of the mail").getByText("Content-Transfer-Encoding").waitFor()
    await part("Links (1)")
    const link = page.getByRole("link", { name: "https://shop.example/reset?t=1" })
    assert.strictEqual(await link.getAttribute("rel"), "noopener noreferrer nofollow")
    await part("Attachments (1)")
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "terms.html" }).click()
    ])
    assert.strictEqual(await readFile(await download.path(), "utf8"), "<script>1</script>")
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByRole("link", { name: "The inbox" }).click()
    await page.getByRole("button", { name: "Empty the inbox" }).click()
    await page.getByRole("button", { name: "Empty it" }).click()
    await page.getByText("No mail came yet.").waitFor()
  })

  it("adds, finds and removes suppressions, and takes and gives files of them", async () => {
    const console = await user.open("&show=suppressions")
    const { page } = console
    const form = page.getByRole("form", { name: "New suppression" })
    await form.getByLabel("Address").fill("no address")
    await form.getByRole("button", { name: "Suppress it" }).click()
    await form.getByText(/^address: /).waitFor()
    assert.strictEqual(await form.getByLabel("Address").getAttribute("aria-invalid"), "true")
    await form.getByLabel("Address").fill("*@Spam.example")
    await form.getByLabel("Note").fill("asked by phone")
    await form.getByRole("button", { name: "Suppress it" }).click()
    const lines = linesOf(console, "Suppressions")
    await lines.filter({ hasText: "*@spam.example" }).getByText("asked by phone").waitFor()

    await page.getByLabel("Add those of a file").setInputFiles({
      name: "old.csv",
      mimeType: "text/csv",
      buffer: Buffer.from(
        "address,reason\none@example.org,complaint\nnot an address,manual\n*@spam.example,manual\n"
      )
    })
    await page.getByText("1 added, 1 were there, 1 not taken.").waitFor()
    await page.getByText(/^Line 3: /).waitFor()
    await lines.filter({ hasText: "one@example.org" }).getByText("complained").waitFor()
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download all" }).click()
    ])
    const rows = (await readFile(await download.path(), "utf8")).split("\n")
    assert.strictEqual(rows.filter((row) => /one@example\.org|spam\.example/.test(row)).length, 2)

    await page.getByRole("searchbox", { name: "Search by address" }).fill("ada@spam.example")
    await page.keyboard.press("Enter")
    await lines.filter({ hasText: "one@example.org" }).waitFor({ state: "detached" })
    await lines.filter({ hasText: "*@spam.example" }).getByRole("button", { name: "Remove" }).click()
    await page.getByRole("button", { name: "Remove it" }).click()
    await page.getByText("None holds for ada@spam.example.").waitFor()
  })

  it("adds a domain, looks its records up, and rotates and deletes it", async () => {
    const console = await user.open("&show=domains")
    const { page, context } = console
    await context.grantPermissions(["clipboard-read", "clipboard-write"])
    const form = page.getByRole("form", { name: "New domain" })
    await form.getByLabel("Domain").fill("localhost")
    await form.getByRole("button", { name: "Add the domain" }).click()
    await form.getByText(/^name: /).waitFor()
    await form.getByLabel("Domain").fill("shop.example")
    await form.getByRole("button", { name: "Add the domain" }).click()
    const records = linesOf(console, "Records of shop.example")
    await records.filter({ hasText: "DKIM" }).getByText("TXT · not looked up yet · needed").waitFor()
    await page.getByRole("button", { name: "Copy the value of DKIM" }).click()
    await page.getByText("Copied").waitFor()
    const key: string = await page.evaluate("navigator.clipboard.readText()")
    assert.match(key, /^v=DKIM1; k=rsa; p=/)

    user.dns.txt("shop.example", "v=spf1 ip4:198.51.100.7 -all")
    const verify = () => page.getByRole("button", { name: "Verify" }).click()
    await verify()
    await records.filter({ hasText: "DKIM" }).getByText("missing").waitFor()
    await records.filter({ hasText: "SPF" }).getByText("different").waitFor()
    await page.getByText("Found: v=spf1 ip4:198.51.100.7 -all").waitFor()
    user.dns.txt("sb1._domainkey.shop.example", [key.slice(0, 200), key.slice(200)])
    await verify()
    await records.filter({ hasText: "DKIM" }).getByText("TXT · ok").waitFor()
    await page.getByText(/^verified /).waitFor()

    await page.getByRole("button", { name: "Rotate the key" }).click()
    await page.getByRole("button", { name: "Make another key" }).click()
    await page.getByText("Keys: sb1 signing, sb2 awaited").waitFor()
    await page.getByRole("button", { name: "Delete the domain" }).click()
    await page.getByRole("button", { name: "Delete it" }).click()
    await page.getByText("No domains yet.").waitFor()
    const { body } = await ask(user.server, "GET", "/api/v1/emails/domains", { key: user.key })
    assert.deepStrictEqual(body, { domains: [] })
  })

  it("is used with the keyboard alone", async () => {
    const console = await user.open()
    const { page } = console
    const { keyboard } = page
    await page.getByRole("link", { name: "Domains" }).focus()
    const type = async (text: string): Promise<void> => {
      await keyboard.press("Tab")
      await keyboard.type(text)
    }
    await type("shop@example.com")
    await type("keys@example.org")
    await type("By keyboard")
    await type("No mouse.")
    await keyboard.press("Tab")
    assert.strictEqual(await focusedIn(page), "More fields")
    await keyboard.press("Tab")
    assert.strictEqual(await focusedIn(page), "Send")
    await keyboard.press("Enter")
    await page.getByText("Accepted as eml_").waitFor()
    await linesOf(console, main).filter({ hasText: "By keyboard" }).filter({ hasText: "1 sent" }).waitFor()
    await keyboard.press("Tab")
    await keyboard.press("Enter")
    await page.getByRole("heading", { name: "By keyboard", level: 1 }).waitFor()
    await linesOf(console, "Recipients").getByText("keys@example.org").waitFor()
    assert.strictEqual(await focusedIn(page), "By keyboard")
  })
})
