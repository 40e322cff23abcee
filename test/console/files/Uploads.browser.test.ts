import { assert, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { join } from "node:path"
import type { CDPSession, Page, Request } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { chromiumPresent } from "#test/harness/Browser.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { drop, filesOnDisk, type FilesPage, type FilesUser, newFilesUser } from "./FilesPage.ts"

interface Listed {
  readonly id: string
  readonly path: string
  readonly fileSize: number
  readonly fileHash: string
  readonly modifiedAt: string
}

/** Bytes of which no two pieces are equal, by a number of the file. */
const distinct = (bytes: number, file: number): Buffer =>
  Buffer.from(Uint32Array.from({ length: bytes / 4 }, (_, index) => index * 4 + file).buffer)

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const megabyte = 1_000_000

/** A script by which the page does not hear the answer to its next upload; the server's status is kept. */
const loseOneAnswer = `{
  const { open } = XMLHttpRequest.prototype
  XMLHttpRequest.prototype.open = function (...given) {
    XMLHttpRequest.prototype.open = open
    const lose = (event) => {
      event.stopImmediatePropagation()
      document.body.dataset.lost = this.status
      this.dispatchEvent(new Event("error"))
    }
    this.addEventListener("load", lose, { once: true })
    open.apply(this, given)
  }
}`

describeWith(chromiumPresent, "uploads in the console, in Chromium,", () => {
  let user: FilesUser
  let removals: Array<() => Promise<void>> = []

  beforeAll(async () => {
    user = await newFilesUser()
  })
  afterEach(async () => {
    await user.closePages()
    for (const remove of removals.splice(0)) await remove()
  })

  const onDisk = async (files: Readonly<Record<string, string | Uint8Array>>): Promise<string> => {
    const { directory, remove } = await filesOnDisk(files)
    removals.push(remove)
    return directory
  }
  const filesNamed = async (name: string): Promise<ReadonlyArray<Listed>> => {
    const { files } = await user.read(`/api/files${name === "" ? "" : `?q=${encodeURIComponent(name)}`}`)
    return files as ReadonlyArray<Listed>
  }

  /** bytes a second that the page may send; 0: as many as it can */
  const throttle = async (session: CDPSession, bytes: number): Promise<void> => {
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: bytes === 0 ? -1 : bytes
    })
  }
  const offsets = async (): Promise<ReadonlyArray<number>> => {
    const { uploads } = (await user.read("/api/uploads")) as { uploads: ReadonlyArray<{ offset: number }> }
    return uploads.map(({ offset }) => offset)
  }
  const reaches = (bytes: number): Promise<void> =>
    until(`the server has ${bytes} bytes`, async () => {
      const [offset = 0] = await offsets()
      return offset >= bytes ? undefined : `${offset} bytes`
    })
  /** where requests began that sent bytes of an upload */
  const sentFrom = (requests: ReadonlyArray<Request>): ReadonlyArray<number> =>
    requests
      .filter((request) => request.method() === "PATCH" && request.url().includes("/api/uploads/"))
      .map((request) => Number(request.headers()["upload-offset"]))
  /** The last words of the list are in the error. */
  const isDone = (page: Page, words: string): Promise<void> =>
    until(`the list says "${words}"`, async () => {
      const shown = (await page.locator(".uploads").allInnerTexts()).join()
      return shown.includes(words) ? undefined : shown
    })

  /** Uploads a file slowly, and leaves the page when the server has some of it. */
  const leaveInTheMiddle = async (
    directory: string,
    begin: (console: FilesPage) => Promise<void>
  ): Promise<{
    readonly console: FilesPage
    readonly session: CDPSession
    /** requests until then that sent bytes */
    readonly before: number
  }> => {
    const console = await user.open(`?room=files&path=${directory}`)
    const session = await console.context.newCDPSession(console.page)
    await throttle(session, 2 * megabyte)
    await begin(console)
    await reaches(megabyte)
    const before = sentFrom(console.requests).length
    await console.page.reload()
    await console.page.getByRole("navigation", { name: "Parts of this room" }).waitFor()
    return { console, session, before }
  }

  it("takes a folder that is dropped, with all that is below it, empty directories too", async () => {
    const big = distinct(3 * megabyte, 1)
    const directory = await onDisk({
      "trip/big.bin": big,
      "trip/zero.txt": "",
      "trip/nothing/in it/": "",
      "trip/day 1/日記.txt": "hello",
      "trip/day 1/deep/er/x.txt": "x"
    })
    await ask(user.server, "POST", "/api/directories", { key: user.key, json: { name: "dropped" } })
    const { entry, page } = await user.open("?room=files&path=dropped")
    await page.getByText("This directory is empty").waitFor()
    await drop(page, [join(directory, "trip")])
    await isDone(page, "4 files uploaded")
    await entry("trip").waitFor()
    const files = await filesNamed("")
    const found = new Map(files.map((file) => [file.path, file]))
    assert.strictEqual(found.get("dropped/trip/big.bin")?.fileHash, sha256(big))
    assert.strictEqual(found.get("dropped/trip/zero.txt")?.fileSize, 0)
    assert.isDefined(found.get("dropped/trip/day 1/日記.txt"))
    assert.isDefined(found.get("dropped/trip/day 1/deep/er/x.txt"))
    await until("the empty directory is there", async () => {
      const path = "/api/directories?path=dropped/trip/nothing/in%20it"
      const { status } = await ask(user.server, "GET", path, { key: user.key })
      return status === 200 ? undefined : String(status)
    })
    // A browser that gives no handles gives entries.
    await page.evaluate("delete DataTransferItem.prototype.getAsFileSystemHandle")
    await drop(page, [join(directory, "trip/day 1")])
    await isDone(page, "6 files uploaded")
    await until("the other folder is there", async () => {
      const paths = (await filesNamed("x.txt")).map(({ path }) => path)
      return paths.includes("dropped/day 1/deep/er/x.txt") ? undefined : paths.join()
    })
    await page.getByRole("button", { name: "Clear the list" }).click()
    await page.getByRole("heading", { name: "Uploads" }).waitFor({ state: "detached" })
  })

  it("stays where it is when a file is dropped beside the list", async () => {
    const directory = await onDisk({ "beside.txt": "beside" })
    await user.put("beside/other.txt", "other")
    const { entry, page, query } = await user.open("?room=files&path=beside")
    await entry("other.txt").waitFor()
    // A driven browser opens no file that is dropped; a person's does where the page lets it.
    await page.evaluate(`addEventListener("dragover", ({ dataTransfer, defaultPrevented }) => {
      document.body.dataset.dropped = defaultPrevented + " " + dataTransfer.dropEffect
    })`)
    await drop(page, [join(directory, "beside.txt")], ".files-bar")
    assert.strictEqual(await page.locator("body").getAttribute("data-dropped"), "true none")
    await drop(page, [join(directory, "beside.txt")])
    await isDone(page, "1 file uploaded")
    assert.strictEqual(query(), "?room=files&path=beside")
    const [file, ...others] = await filesNamed("beside.txt")
    assert.deepStrictEqual([file?.path, others], ["beside/beside.txt", []])
  })

  it("goes on by itself after a reload in the middle, from where the server was, and sends nothing twice", async () => {
    const bytes = distinct(6 * megabyte, 2)
    const directory = await onDisk({ "folder/middle.bin": bytes })
    await user.put("reload/other.txt", "other")
    const { before, console, session } = await leaveInTheMiddle("reload", ({ page }) =>
      drop(page, [join(directory, "folder")])
    )
    await until("another request goes on", async () =>
      sentFrom(console.requests).length > before ? undefined : "none"
    )
    await throttle(session, 0)
    await isDone(console.page, "1 file uploaded")
    const [from = 0] = sentFrom(console.requests).slice(before)
    assert.isAtLeast(from, megabyte)
    const [file, ...others] = await filesNamed("middle.bin")
    assert.deepStrictEqual(others, [])
    assert.strictEqual(file?.fileHash, sha256(bytes))
    assert.strictEqual(file?.path, "reload/folder/middle.bin")
    assert.deepStrictEqual(await offsets(), [])
  })

  it("says after a reload which files to choose again, refuses others, and goes on with the right ones", async () => {
    const bytes = distinct(6 * megabyte, 3)
    const directory = await onDisk({ "chosen.bin": bytes, "small.txt": "small", "else/chosen.bin": "other" })
    await user.put("again/other.txt", "other")
    const { console, session } = await leaveInTheMiddle("again", ({ page }) =>
      page
        .locator("input[aria-label='Upload files']")
        .setInputFiles([join(directory, "chosen.bin"), join(directory, "small.txt")])
    )
    const { page, requests } = console
    await page.getByText("1 file was on the way when this page was left.").waitFor()
    await page.getByText(/^[1-9][0-9]% is there, choose it again$/).waitFor()
    const field = page.locator("input[aria-label='Choose files again']")
    await field.setInputFiles(join(directory, "else/chosen.bin"))
    await page.getByText("None of these is a file that was on its way").waitFor()
    await throttle(session, 0)
    const before = sentFrom(requests).length
    await field.setInputFiles(join(directory, "chosen.bin"))
    await isDone(page, "2 files uploaded")
    assert.isAtLeast(sentFrom(requests)[before] ?? 0, megabyte)
    const [file, ...others] = await filesNamed("chosen.bin")
    assert.deepStrictEqual(others, [])
    assert.strictEqual(file?.fileHash, sha256(bytes))
    // The file that was done before is not sent again.
    assert.strictEqual((await filesNamed("small.txt")).length, 1)
  })

  it("pauses and goes on, cancels on the server too, and tries again what failed", async () => {
    const bytes = distinct(6 * megabyte, 4)
    const directory = await onDisk({ "paused.bin": bytes })
    await user.put("pauses/other.txt", "other")
    const { context, page, requests } = await user.open("?room=files&path=pauses")
    const session = await context.newCDPSession(page)
    const choose = () =>
      page.locator("input[aria-label='Upload files']").setInputFiles(join(directory, "paused.bin"))
    await throttle(session, 2 * megabyte)
    await choose()
    await reaches(megabyte)
    await page.getByRole("button", { name: "Pause paused.bin" }).click()
    await page.getByText(/% · paused/).waitFor()
    // Another tab of the same browser leaves it alone.
    const other = await context.newPage()
    await other.goto(page.url())
    await other.getByText("other.txt").waitFor()
    assert.strictEqual(await other.getByRole("heading", { name: "Uploads" }).count(), 0)
    await other.close()
    await throttle(session, 0)
    await page.getByRole("button", { name: "Go on with paused.bin" }).click()
    await isDone(page, "1 file uploaded")
    assert.isAtLeast(sentFrom(requests).at(-1) ?? 0, megabyte)
    assert.strictEqual((await filesNamed("paused.bin"))[0]?.fileHash, sha256(bytes))

    await throttle(session, 2 * megabyte)
    await choose()
    await reaches(megabyte)
    await page.getByRole("button", { name: "Cancel paused.bin" }).click()
    await until("the upload is gone", async () =>
      (await offsets()).length === 0 ? undefined : "it is there"
    )
    assert.strictEqual((await filesNamed("paused.bin")).length, 1)

    await throttle(session, 0)
    await page.route("**/api/uploads", (route) =>
      route.fulfill({ status: 400, json: { error: "path: too long" } })
    )
    await choose()
    await page.getByText("path: too long").waitFor()
    await page.unroute("**/api/uploads")
    await page.getByRole("button", { name: "Try paused.bin" }).click()
    await isDone(page, "2 files uploaded")
  })

  it("waits for a server that does not answer, and goes on by itself", async () => {
    const directory = await onDisk({ "late.txt": "late" })
    await user.put("late/other.txt", "other")
    const { page } = await user.open("?room=files&path=late")
    await page.route("**/api/uploads", (route) => route.abort())
    await page.locator("input[aria-label='Upload files']").setInputFiles(join(directory, "late.txt"))
    await page.getByText("The server does not answer, goes on by itself").waitFor()
    await page.unroute("**/api/uploads")
    await isDone(page, "1 file uploaded")
  })

  it("sends nothing twice that is on its way, or whose answer was lost", async () => {
    const directory = await onDisk({ "lost.txt": "lost", "twice.bin": distinct(6 * megabyte, 7) })
    await user.put("once/other.txt", "other")
    const { context, page } = await user.open("?room=files&path=once")
    const session = await context.newCDPSession(page)
    // The server has the file, and the browser does not hear of it.
    await page.evaluate(loseOneAnswer)
    const choose = (name: string) =>
      page.locator("input[aria-label='Upload files']").setInputFiles(join(directory, name))
    await choose("lost.txt")
    await isDone(page, "1 file uploaded")
    assert.strictEqual(await page.locator("body").getAttribute("data-lost"), "201")
    await throttle(session, 2 * megabyte)
    await choose("twice.bin")
    await reaches(megabyte)
    await choose("twice.bin")
    await throttle(session, 0)
    await isDone(page, "2 files uploaded")
    for (const name of ["lost.txt", "twice.bin"]) {
      const [file] = await filesNamed(name)
      const { versions } = await user.read(`/api/files/${file?.id}/versions`)
      assert.lengthOf(versions as ReadonlyArray<unknown>, 1, name)
    }
  })

  it("holds uploads when the session ends, asks to sign in, and goes on where it was", async () => {
    const bytes = distinct(6 * megabyte, 5)
    const directory = await onDisk({ "held.bin": bytes })
    await user.put("ends/other.txt", "other")
    const console = await user.open("?room=files&path=ends")
    const { context, enterKey, page, query, requests } = console
    const session = await context.newCDPSession(page)
    await throttle(session, 2 * megabyte)
    await page.locator("input[aria-label='Upload files']").setInputFiles(join(directory, "held.bin"))
    await reaches(megabyte)
    await ask(user.server, "DELETE", "/api/session?everywhere=true", {
      key: "",
      headers: { cookie: (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ") }
    })
    await page.getByText("Your session has ended").first().waitFor()
    await throttle(session, 0)
    await enterKey(user.key)
    await isDone(page, "1 file uploaded")
    assert.strictEqual(query(), "?room=files&path=ends")
    assert.isAtLeast(sentFrom(requests).at(-1) ?? 0, megabyte)
    assert.strictEqual((await filesNamed("held.bin"))[0]?.fileHash, sha256(bytes))
  })

  it("makes buckets of what is dropped at the top, keeps times, and goes on while another room is looked at", async () => {
    const directory = await onDisk({ "holiday/a.txt": "a", "loose.bin": distinct(4 * megabyte, 6) })
    const { context, page } = await user.open()
    await page.getByRole("heading", { name: "Files", level: 1 }).waitFor()
    const session = await context.newCDPSession(page)
    await throttle(session, 2 * megabyte)
    await drop(page, [join(directory, "holiday"), join(directory, "loose.bin")])
    await page.getByRole("heading", { name: "Uploads" }).waitFor()
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor()
    await throttle(session, 0)
    await until("both are there", async () => {
      const found = [...(await filesNamed("a.txt")), ...(await filesNamed("loose.bin"))].map(
        ({ path }) => path
      )
      return ["holiday/a.txt", "uploads/loose.bin"].every((path) => found.includes(path))
        ? undefined
        : found.join()
    })
    await page.getByRole("link", { name: "Files" }).click()
    await isDone(page, "2 files uploaded")
    const [file] = await filesNamed("loose.bin")
    assert.isAtMost(Math.abs(Date.parse(file?.modifiedAt ?? "") - Date.now()), 600_000)
    assert.notStrictEqual(file?.modifiedAt, "")
  })
})
