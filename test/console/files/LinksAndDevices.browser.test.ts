import { assert, it } from "@effect/vitest"
import { afterEach, beforeAll } from "vitest"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { focusedIn, overflowOf } from "../ConsolePage.ts"
import { type FilesUser, newFilesUser } from "./FilesPage.ts"

interface Link {
  readonly token: string
  readonly url: string
  readonly maxRequests: number | null
  readonly expiresAt: string | null
  readonly passwordProtected: boolean
  readonly pinned: boolean
  readonly label: string | null
  readonly createdAt: string
}

describeWith(chromiumPresent, "links and devices of shared files in the console, in Chromium,", () => {
  let user: FilesUser

  beforeAll(async () => {
    user = await newFilesUser()
  })
  afterEach(() => user.closePages())

  const linksOf = async (query: string): Promise<ReadonlyArray<Link>> =>
    (await user.read(`/api/share-links${query}`)).links as ReadonlyArray<Link>

  it("makes a link that works once for a day, shows its address and its use, and revokes it", async () => {
    const id = await user.put("share/a.txt", "shared", "text/plain")
    const { act, page } = await user.open("?room=files&path=share")
    await act("a.txt", "Share …")
    const dialog = page.getByRole("dialog", { name: "Share a.txt" })
    await dialog.getByText("No links lead here yet.").waitFor()
    await dialog.getByRole("button", { name: "Make a link" }).click()
    await dialog.getByText("The link is made.").waitFor()
    const [link] = await linksOf(`?fileId=${id}`)
    if (link === undefined) return assert.fail("no link")
    assert.strictEqual(await dialog.locator(".share-made code").textContent(), link.url)
    assert.strictEqual(link.maxRequests, 1)
    assert.strictEqual(Date.parse(link.expiresAt ?? "") - Date.parse(link.createdAt), 24 * 3_600_000)
    await dialog.getByRole("button", { name: "Copy the new link" }).click()
    await dialog.getByText(/Copied|Selected/).waitFor()

    const taken = await fetch(link.url)
    assert.deepStrictEqual([taken.status, await taken.text()], [200, "shared"])
    assert.strictEqual((await fetch(link.url)).status, 410)
    await page.keyboard.press("Escape")
    await page.getByRole("link", { name: "Links" }).click()
    const all = page.getByRole("region", { name: "All links" })
    await all.getByText("1 of 1 download").waitFor()
    await all.getByText("a.txt", { exact: true }).waitFor()
    await all.getByText("Downloads", { exact: true }).click()
    await all.getByText(/6 bytes · 127\.0\.0\.1 · node/).waitFor()
    // By the keyboard alone: the focus is never lost, neither with the question nor with the row.
    await all.getByRole("button", { name: "Revoke" }).focus()
    await page.keyboard.press("Enter")
    assert.strictEqual(await focusedIn(page), "Keep it")
    await page.keyboard.press("Escape")
    assert.strictEqual(await focusedIn(page), "Revoke")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await all.getByText("No links yet.").waitFor()
    assert.strictEqual(await page.evaluate("document.activeElement.id"), "main")
    assert.strictEqual((await fetch(link.url)).status, 404)
  })

  it("makes links of every kind: some downloads or any number, hours or no end, a password, a label, one version", async () => {
    const id = await user.put("kinds/b.txt", "b", "text/plain")
    const { page } = await user.open(`?room=files&file=${id}`, { width: 360, colorScheme: "dark" })
    await page.getByRole("button", { name: "Actions for b.txt" }).click()
    await page.getByRole("button", { name: "Share …" }).click()
    const dialog = page.getByRole("dialog", { name: "Share b.txt" })
    const make = async (): Promise<Link> => {
      const before = (await linksOf(`?fileId=${id}`)).length
      await dialog.getByRole("button", { name: "Make a link" }).click()
      await until("the link is there", async () =>
        (await linksOf(`?fileId=${id}`)).length > before ? undefined : "not yet"
      )
      return (await linksOf(`?fileId=${id}`))[0] ?? assert.fail("no link")
    }
    await dialog.getByLabel("3 times").check()
    await dialog.getByLabel("1 hour").check()
    await dialog.getByLabel(/^Password/).fill("open sesame")
    await dialog.getByLabel(/^Label/).fill("for Ada")
    await dialog.getByLabel(/^This version for ever/).check()
    const three = await make()
    assert.deepInclude(three, { maxRequests: 3, passwordProtected: true, pinned: true, label: "for Ada" })
    assert.strictEqual(Date.parse(three.expiresAt ?? "") - Date.parse(three.createdAt), 3_600_000)
    // The password is not there for the next one.
    assert.strictEqual(await dialog.getByLabel(/^Password/).inputValue(), "")
    assert.isAtMost(await overflowOf(page), 0)

    await dialog.getByLabel("10 times").check()
    await dialog.getByLabel("8 hours").check()
    assert.deepInclude(await make(), { maxRequests: 10, passwordProtected: false })
    await dialog.getByLabel("Any number").check()
    await dialog.getByLabel("No end").check()
    await dialog.getByLabel(/^This version for ever/).uncheck()
    assert.deepInclude(await make(), { maxRequests: null, expiresAt: null, pinned: false })
  })

  it("shares a directory, which has no version to hold on to", async () => {
    await user.put("folder/in/c.txt", "c", "text/plain")
    const { act, page } = await user.open("?room=files&path=folder")
    await act("in", "Share …")
    const dialog = page.getByRole("dialog", { name: "Share in" })
    assert.strictEqual(await dialog.getByLabel(/^This version/).count(), 0)
    await dialog.getByRole("button", { name: "Make a link" }).click()
    await dialog.getByText("The link is made.").waitFor()
    const url = (await dialog.locator(".share-made code").textContent()) ?? ""
    const taken = await fetch(url)
    assert.deepStrictEqual([taken.status, taken.headers.get("content-type")], [200, "application/x-gzip"])
    await taken.arrayBuffer()
  })

  it("lists devices, changes their names and folders, and removes one", async () => {
    const { page } = await user.open("?room=files&show=devices")
    await page.getByText("No devices yet.").waitFor()
    await page.getByText(`signalbox login ${user.server.url}`).waitFor()
    const json = { name: "Laptop", platform: "desktop" }
    await ask(user.server, "POST", "/api/devices", { key: user.key, json })
    await page.reload()
    await page.getByRole("button", { name: "Change Laptop" }).click()
    const dialog = page.getByRole("dialog", { name: "Change Laptop" })
    await dialog.getByLabel(/^Name/).fill("Old laptop")
    await dialog.getByLabel(/^Folder/).fill("~/files")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    const list = page.getByRole("list", { name: "Devices" })
    await list.getByText("Old laptop").waitFor()
    await list.getByText(/computer · ~\/files · seen/).waitFor()
    await list.getByRole("button", { name: "Remove" }).click()
    await list.getByRole("button", { name: "Remove it" }).click()
    await page.getByText("No devices yet.").waitFor()
  })

  it("flags a file for all devices, for chosen ones and for none, and tells what a directory above decides", async () => {
    const make = async (name: string): Promise<string> =>
      textAt(
        await ask(user.server, "POST", "/api/devices", { key: user.key, json: { name, platform: "mobile" } }),
        "id"
      )
    const phone = await make("Phone")
    await make("Tablet")
    await user.put("flags/sub/d.txt", "d", "text/plain")
    const { act, entry, page } = await user.open("?room=files&path=flags")
    const flags = () => user.read("/api/sync/subscriptions")

    await act("sub", "Devices …")
    const ofSub = page.getByRole("dialog", { name: "Devices of sub" })
    assert.isTrue(await ofSub.getByLabel("None").isChecked())
    await ofSub.getByLabel(/^All devices/).check()
    await ofSub.getByRole("button", { name: "Save" }).click()
    await ofSub.waitFor({ state: "detached" })
    const { subscriptions } = await flags()
    assert.deepInclude((subscriptions as ReadonlyArray<object>)[0], {
      resourceType: "directory",
      scope: "all"
    })

    await entry("sub").getByRole("link").click()
    await act("d.txt", "Devices …")
    const ofFile = page.getByRole("dialog", { name: "Devices of d.txt" })
    await ofFile.getByText("So far the choice for flags/sub holds.").waitFor()
    assert.isTrue(await ofFile.getByLabel(/^All devices/).isChecked())
    await ofFile.getByLabel("Chosen devices").check()
    await ofFile.getByLabel("Phone").check()
    await ofFile.getByRole("button", { name: "Save" }).click()
    await ofFile.waitFor({ state: "detached" })
    assert.include(JSON.stringify(await flags()), `"deviceIds":["${phone}"]`)

    await act("d.txt", "Devices …")
    assert.isTrue(await ofFile.getByLabel("Phone").isChecked())
    assert.isFalse(await ofFile.getByLabel("Tablet").isChecked())
    await ofFile.getByLabel("None").check()
    await ofFile.getByRole("button", { name: "Save" }).click()
    await ofFile.waitFor({ state: "detached" })
    const { excluded } = await flags()
    assert.deepInclude((excluded as ReadonlyArray<object>)[0], { resourceType: "file" })
    await act("d.txt", "Devices …")
    assert.isTrue(await ofFile.getByLabel("None").isChecked())
  })
})
