import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Browser, Locator, Page } from "playwright-core"
import { ask, type Reachable } from "#test/harness/ApiClient.ts"
import { sharedBrowser } from "#test/harness/Browser.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { ensureConsoleBuilt } from "../BuiltConsole.ts"
import { type ConsolePage, openConsole } from "../ConsolePage.ts"

/** A user of the worker's server with files, and the page of them. */
export interface FilesPage extends ConsolePage {
  /** a row of the table of files and directories, by its name */
  readonly entry: (name: string) => Locator
  /** opens the menu of a row, or of what is open, and chooses an action */
  readonly act: (name: string, action: string) => Promise<void>
}

export interface FilesUser {
  readonly server: Reachable
  readonly id: string
  readonly key: string
  /** opens the page at a query such as `?room=files&path=a` */
  readonly open: (query?: string, shape?: Parameters<typeof openConsole>[3]) => Promise<FilesPage>
  /** puts a file at a path such as `bucket/a/b.txt`; answers the id of its version */
  readonly put: (path: string, content: string | Uint8Array<ArrayBuffer>, type?: string) => Promise<string>
  /** reads an endpoint */
  readonly read: (path: string) => Promise<Record<string, unknown>>
  /** closes the pages, having seen that nothing went wrong in them */
  readonly closePages: () => Promise<void>
}

export const filesPageOf = (console: ConsolePage): FilesPage => {
  const { page } = console
  return {
    ...console,
    entry: (name) => page.locator(".entries tbody tr").filter({ has: page.getByText(name, { exact: true }) }),
    act: async (name, action) => {
      await page.getByRole("button", { name: `Actions for ${name}`, exact: true }).click()
      await page.locator(".menu:popover-open").getByText(action, { exact: true }).click()
    }
  }
}

/** A new user, with a browser. */
export const newFilesUser = async (): Promise<FilesUser> => {
  await ensureConsoleBuilt()
  const shared = await sharedServer()
  const { id, key } = await Effect.runPromise(shared.makeUser())
  const browser: Browser = await sharedBrowser()
  const { server } = shared
  let opened: Array<ConsolePage> = []
  return {
    server,
    id,
    key,
    open: async (query = "?room=files", shape = {}) => {
      const console = await openConsole(browser, `${server.url}/${query}`, [key], shape)
      opened.push(console)
      await console.enterKey(key)
      await console.page.getByRole("navigation", { name: "Parts of this room" }).waitFor()
      return filesPageOf(console)
    },
    put: async (path, content, type = "application/octet-stream") => {
      const answer = await ask(server, "PUT", `/api/upload/${path}`, {
        key,
        body: content,
        headers: { "content-type": type }
      })
      assert.oneOf(answer.status, [200, 201], path)
      return JSON.stringify(answer.body).match(/fv_[0-9A-Za-z]{22}/)?.[0] ?? assert.fail(path)
    },
    read: async (path) => {
      const answer = await ask(server, "GET", path, { key })
      assert.strictEqual(answer.status, 200, path)
      return answer.body as Record<string, unknown>
    },
    closePages: async () => {
      const pages = opened
      opened = []
      for (const console of pages) await console.close()
    }
  }
}

/** Files on the disk of the browser, below a directory of their own, and how to remove them. `a/`: a directory. */
export const filesOnDisk = async (
  files: Readonly<Record<string, string | Uint8Array>>
): Promise<{ readonly directory: string; readonly remove: () => Promise<void> }> => {
  const directory = await mkdtemp(join(tmpdir(), "console-files-"))
  for (const [path, content] of Object.entries(files)) {
    const isDirectory = path.endsWith("/")
    await mkdir(isDirectory ? join(directory, path) : dirname(join(directory, path)), { recursive: true })
    if (!isDirectory) await writeFile(join(directory, path), content)
  }
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) }
}

/** Drops files and directories of the disk on the list, or on another element, as a person does with a file manager. */
export const drop = async (
  page: Page,
  paths: ReadonlyArray<string>,
  on: string = ".drop-zone"
): Promise<void> => {
  const box = (await page.locator(on).boundingBox()) ?? assert.fail("no place to drop")
  const session = await page.context().newCDPSession(page)
  const at = { x: box.x + box.width / 2, y: box.y + Math.min(40, box.height / 2) }
  const data = { items: [], files: [...paths], dragOperationsMask: 1 }
  for (const type of ["dragEnter", "dragOver", "drop"] as const)
    await session.send("Input.dispatchDragEvent", { type, ...at, data })
  await session.detach()
}
