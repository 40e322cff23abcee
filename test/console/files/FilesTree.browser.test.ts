import { assert, it } from "@effect/vitest"
import { afterEach, beforeAll } from "vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { chromiumPresent } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { focusedIn, overflowOf } from "../ConsolePage.ts"
import { type FilesUser, newFilesUser } from "./FilesPage.ts"

describeWith(chromiumPresent, "the tree of shared files at /?room=files, in Chromium,", () => {
  let user: FilesUser

  beforeAll(async () => {
    user = await newFilesUser()
  })
  afterEach(() => user.closePages())

  it("begins empty, says what to do, and makes directories whose paths are in the address bar", async () => {
    const { entry, page, query } = await user.open()
    await page.getByText("They go to the directory uploads").or(entry("Inbox")).first().waitFor()
    await page.getByRole("button", { name: "New directory" }).click()
    const dialog = page.getByRole("dialog", { name: "New directory" })
    await dialog.getByLabel("Name").fill("no bucket")
    await dialog.getByRole("button", { name: "Make it" }).click()
    // The refusal is beside the field, in words.
    await dialog.getByRole("alert").filter({ hasText: "name: expected the name of a bucket" }).waitFor()
    assert.strictEqual(await dialog.getByLabel("Name").getAttribute("aria-invalid"), "true")
    await dialog.getByLabel("Name").fill("work")
    await page.keyboard.press("Enter")
    await dialog.waitFor({ state: "detached" })
    await entry("work").getByRole("link").click()
    await page.getByRole("heading", { name: "work", level: 1 }).waitFor()
    await page.getByText("This directory is empty").waitFor()
    assert.strictEqual(query(), "?room=files&path=work")

    await page.getByRole("button", { name: "New directory" }).click()
    await dialog.getByLabel("Name").fill("Übung 1 2")
    await page.keyboard.press("Enter")
    await entry("Übung 1 2").getByRole("link").click()
    await page.getByRole("heading", { name: "Übung 1 2", level: 1 }).waitFor()
    assert.strictEqual(new URLSearchParams(query()).get("path"), "work/Übung 1 2")
    // A link to it opens it, and the browser's back button leads up again.
    await page.reload()
    await page.getByRole("heading", { name: "Übung 1 2", level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole("heading", { name: "work", level: 1 }).waitFor()
    await page.getByRole("navigation", { name: "Path" }).getByRole("link", { name: "All files" }).click()
    await page.getByRole("heading", { name: "Files", level: 1 }).waitFor()
    const tree = page.getByRole("navigation", { name: "Directories" })
    await tree.getByRole("button", { name: "Directories in work" }).click()
    await tree.getByRole("link", { name: "Übung 1 2" }).click()
    await page.getByRole("heading", { name: "Übung 1 2", level: 1 }).waitFor()
  })

  it("says so where nothing is at a path, and where there is no such file", async () => {
    const { page } = await user.open("?room=files&path=nothing/here")
    await page.getByRole("heading", { name: "No such directory" }).waitFor()
    await page.getByRole("link", { name: "All files" }).last().click()
    await page.getByRole("heading", { name: "Files", level: 1 }).waitFor()
    await page.goto(`${user.server.url}/?room=files&file=fv_${"0".repeat(22)}`)
    await page.getByRole("heading", { name: "No such file" }).waitFor()
  })

  it("lists name, size, change and version, renames, moves and copies", async () => {
    await user.put("docs/a.txt", "one")
    await user.put("docs/a.txt", "one and two")
    await user.put("docs/b.txt", "b")
    await user.put("archive/a.txt", "there already")
    const { act, entry, page } = await user.open("?room=files&path=docs")
    await entry("a.txt").getByText("11 bytes").waitFor()
    assert.strictEqual(await entry("a.txt").locator(".entry-version").textContent(), "2")

    await act("b.txt", "Rename …")
    const rename = page.getByRole("dialog", { name: "Rename b.txt" })
    await rename.getByLabel("Name").fill("c.txt")
    await page.keyboard.press("Enter")
    await entry("c.txt").waitFor()
    await rename.waitFor({ state: "detached" })

    await act("a.txt", "Move …")
    const move = page.getByRole("dialog", { name: "Move a.txt" })
    await move.getByRole("button", { name: "docs" }).click()
    await move.getByRole("button", { name: "It is there already" }).waitFor()
    await move.getByRole("button", { name: "Up one level" }).click()
    await move.getByRole("button", { name: "archive" }).click()
    await move.getByRole("button", { name: "Move here" }).click()
    // A file of that name is there: the person says what is to be done.
    await move.getByRole("combobox").selectOption("rename")
    await move.getByRole("button", { name: "Move here" }).click()
    await move.waitFor({ state: "detached" })
    await entry("a.txt").waitFor({ state: "detached" })

    await act("c.txt", "Copy …")
    const copy = page.getByRole("dialog", { name: "Copy c.txt" })
    await copy.getByRole("button", { name: "archive" }).click()
    await copy.getByRole("button", { name: "Copy here" }).click()
    await copy.waitFor({ state: "detached" })
    await entry("c.txt").waitFor()
    const { files } = await user.read("/api/files?q=c.txt")
    assert.sameMembers(
      (files as ReadonlyArray<{ path: string }>).map(({ path }) => path),
      ["archive/c.txt", "docs/c.txt"]
    )
    assert.strictEqual(((await user.read("/api/files?q=a")).files as ReadonlyArray<unknown>).length, 2)
  })

  it("follows a directory that is renamed while it is open", async () => {
    await user.put("moving/inner/x.txt", "x")
    const { act, page, query } = await user.open("?room=files&path=moving/inner")
    await page.getByRole("heading", { name: "inner", level: 1 }).waitFor()
    await act("inner", "Rename …")
    await page.getByRole("dialog").getByLabel("Name").fill("outer")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "outer", level: 1 }).waitFor()
    assert.strictEqual(new URLSearchParams(query()).get("path"), "moving/outer")
  })

  it("deletes to the trash, takes it back, restores from the trash, deletes for good, and empties it", async () => {
    await user.put("bin/a.txt", "a")
    await user.put("bin/b.txt", "b")
    await user.put("bin/sub/c.txt", "c")
    const { act, entry, page } = await user.open("?room=files&path=bin")
    await act("a.txt", "Delete")
    await page.getByText("a.txt is in the trash.").waitFor()
    await entry("a.txt").waitFor({ state: "detached" })
    assert.strictEqual(await focusedIn(page), "Undo")
    await page.keyboard.press("Enter")
    await page.getByText("a.txt is back.").waitFor()
    await entry("a.txt").waitFor()
    for (const name of ["a.txt", "b.txt", "sub"]) {
      await act(name, "Delete")
      await entry(name).waitFor({ state: "detached" })
    }
    // A directory that is deleted while it is open gives way to the one above, where it can be taken back.
    await user.put("bin/open/d.txt", "d")
    await page.goto(`${user.server.url}/?room=files&path=bin/open`)
    await page.getByRole("heading", { name: "open", level: 1 }).waitFor()
    await act("open", "Delete")
    await page.getByRole("heading", { name: "bin", level: 1 }).waitFor()
    await page.getByRole("button", { name: "Undo" }).click()
    await entry("open").waitFor()
    await page.getByRole("link", { name: "Trash" }).click()
    const trash = page.getByRole("list", { name: "Trash" })
    await trash.getByText(/directory in bin · 1 byte · deleted/).waitFor()
    await page.getByRole("button", { name: "Restore sub" }).click()
    await trash.getByText("sub", { exact: true }).waitFor({ state: "detached" })
    await trash
      .getByRole("listitem")
      .filter({ hasText: "a.txt" })
      .getByRole("button", { name: "Delete for good" })
      .click()
    await trash.getByRole("button", { name: "Delete it" }).click()
    await trash.getByText("a.txt", { exact: true }).waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Empty the trash" }).click()
    await page.getByRole("button", { name: "Delete it all" }).click()
    await page.getByText("Nothing is in the trash.").waitFor()
    assert.deepStrictEqual((await user.read("/api/trash")).items, [])
    const { files } = await user.read("/api/files?q=c.txt")
    assert.include(JSON.stringify(files), "bin/sub/c.txt")
  })

  it("finds files by a part of their names, wherever they are", async () => {
    await user.put("deep/er/Quarterly Report.pdf", "%PDF-")
    const { entry, page, query } = await user.open()
    await page.getByRole("searchbox").fill("quarterly")
    await page.keyboard.press("Enter")
    await entry("Quarterly Report.pdf").getByText("deep/er").waitFor()
    assert.strictEqual(query(), "?room=files&q=quarterly")
    await page.getByRole("searchbox").fill("no such name")
    await page.keyboard.press("Enter")
    await page.getByText("No file has that in its name.").waitFor()
  })

  it("shows long lists to their ends, a page at a time: directories, files found, links", async () => {
    const many = await newFilesUser()
    const names = Array.from({ length: 501 }, (_, n) => `d${String(n).padStart(3, "0")}`)
    const form = new FormData()
    form.append("dir", "many")
    for (const name of names) {
      form.append("path", `${name}/found.txt`)
      form.append("files", new Blob([name]), "found.txt")
    }
    const headers = { authorization: `Bearer ${many.key}` }
    const answer = await fetch(`${many.server.url}/api/upload`, { method: "POST", headers, body: form })
    const { files } = (await answer.json()) as { files: ReadonlyArray<{ readonly fileId: string }> }
    for (const { fileId } of files.slice(0, 101)) {
      await ask(many.server, "POST", "/api/share-links", { key: many.key, json: { fileId } })
      await ask(many.server, "DELETE", `/api/files/${fileId}`, { key: many.key })
    }
    const { page } = await many.open("?room=files&path=many")
    /** the rows of a list, before and after all of it is asked for */
    const counted = async (rows: string, more: string, presses: number): Promise<ReadonlyArray<number>> => {
      const button = page.getByRole("button", { name: more, exact: true })
      const counts: Array<number> = []
      for (let press = 0; press < presses; press++) {
        await button.waitFor()
        counts.push(await page.locator(rows).count())
        await button.click()
        const before = counts.at(-1) ?? 0
        await until("more rows", async () =>
          (await page.locator(rows).count()) > before ? undefined : `${before} rows`
        )
      }
      await button.waitFor({ state: "detached" })
      return [...counts, await page.locator(rows).count()]
    }
    const below = ".tree ul ul > li"
    assert.deepStrictEqual(await counted(below, "Show more directories in many", 1), [500, 501])
    assert.deepStrictEqual(await counted(".entries tbody tr", "Show more files", 2), [200, 400, 501])
    await page.getByRole("searchbox").fill("found")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Files named “found”" }).waitFor()
    assert.deepStrictEqual(await counted(".entries tbody tr", "Show more files", 1), [200, 400])
    await page.getByRole("link", { name: "Links", exact: true }).click()
    assert.deepStrictEqual(await counted(".share-links > ul > li", "Show more links", 1), [100, 101])
    await many.closePages()
  })

  it("shows how much of the quota is used, and says when it is reached", async () => {
    const person = await newFilesUser()
    await person.put("full/a.bin", new Uint8Array(5_000))
    const change = { storage_quota_bytes: 10_000 }
    const path = `/api/v1/admin/users/${person.id}`
    assert.strictEqual((await ask(person.server, "PATCH", path, { json: change })).status, 200)
    const { page } = await person.open("?room=files&path=full")
    await page.getByText("5.0 kB of 10.0 kB used").waitFor()
    await page
      .locator("input[type=file]")
      .first()
      .setInputFiles({
        name: "b.bin",
        mimeType: "application/octet-stream",
        buffer: Buffer.alloc(6_000)
      })
    await page.getByText("Quota of 10000 bytes reached").waitFor()
    await page.getByRole("button", { name: "Cancel b.bin" }).click()
    await page.getByRole("heading", { name: "Uploads" }).waitFor({ state: "detached" })
    // The browser has forgotten it, too.
    await until("nothing is kept", async () => {
      const kept = await page.evaluate("indexedDB.databases().then((all) => all.length)")
      return kept === 0 ? undefined : `${String(kept)} databases`
    })
    await person.closePages()
  })

  it("does all by the keyboard: menus and dialogs take the focus and give it back", async () => {
    await user.put("keys/a.txt", "a")
    const { page } = await user.open("?room=files&path=keys", { width: 360 })
    const menu = page.getByRole("button", { name: "Actions for a.txt" })
    await menu.focus()
    await page.keyboard.press("Enter")
    assert.strictEqual(await focusedIn(page), "Download")
    await page.keyboard.press("ArrowDown")
    assert.strictEqual(await focusedIn(page), "Share …")
    await page.keyboard.press("Escape")
    assert.strictEqual(await focusedIn(page), "Actions for a.txt")
    await page.keyboard.press("Enter")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    const dialog = page.getByRole("dialog", { name: "Rename a.txt" })
    await dialog.waitFor()
    // The name is selected without its ending, and the focus stays inside.
    await page.keyboard.type("renamed")
    assert.strictEqual(await dialog.getByLabel("Name").inputValue(), "renamed.txt")
    for (let presses = 0; presses < 6; presses++) {
      await page.keyboard.press("Tab")
      // Beyond the last field is the browser's own bar.
      assert.isTrue(
        await page.evaluate(`document.activeElement.matches("body, dialog.modal, dialog.modal *")`)
      )
    }
    assert.isAtMost(await overflowOf(page), 0)
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    assert.strictEqual(await focusedIn(page), "Actions for a.txt")
  })
})
