import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, ManagedRuntime } from "effect"
import { afterAll, beforeAll } from "vitest"
import { postgresMigrations } from "#src/Migrations.ts"
import { rooms } from "#src/Rooms.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { notes } from "#test/rooms/notes/Room.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { openConsole } from "./ConsolePage.ts"

const root = normalize(join(import.meta.dirname, "../.."))
const pageOf = "src/console/page"

/** The console as it is built once the new room's file is in its folder; answers where it is. */
const buildWithNotes = (directory: string): string => {
  const sources = join(directory, "page")
  cpSync(join(root, pageOf), sources, { recursive: true })
  mkdirSync(join(sources, "notes"))
  const file = readFileSync(join(root, "test/rooms/notes/page/Room.tsx"), "utf8")
  writeFileSync(join(sources, "notes/Room.tsx"), file.replaceAll(`#${pageOf}/`, "../"))
  const home = join(directory, "console")
  const builder = join(root, "deploy/setup/buildConsole.mjs")
  const env = { ...process.env, NODE_ENV: "production" }
  const { status, stderr } = spawnSync(process.execPath, [builder, sources, home, "notes"], {
    cwd: root,
    env
  })
  assert.strictEqual(status, 0, String(stderr))
  return home
}

describeWith(chromiumPresent, "a new room's page, in Chromium,", () => {
  const list = [...rooms, notes(postgresMigrations.length + 1)]
  const runtime = ManagedRuntime.make(
    TestServer.own({ rooms: new Set(["accounts", "notes"]) }, { rooms: list })
  )
  // Inside the project, where the build finds its packages.
  const directory = mkdtempSync(join(root, ".runtime/new-room-"))
  let server: typeof TestServer.Service

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = Context.get(await runtime.context(), TestServer)
  })
  afterAll(async () => {
    rmSync(directory, { recursive: true, force: true })
    await runtime.dispose()
  })

  it("lists, makes and deletes its noun, from a file of its own alone", async () => {
    const home = buildWithNotes(directory)
    const browser = await sharedBrowser()
    const { adminKey, url } = server
    const console = await openConsole(browser, `${url}/healthz`, [adminKey])
    const { page } = console
    // The server's own answers, with the page that was built with the new room in the place of the one without it.
    await page.route(/\/(console\/[^/]+)?(\?.*)?$/, async (route) => {
      const { pathname } = new URL(route.request().url())
      const name = pathname === "/" ? "index.html" : pathname.slice("/console/".length)
      await route.fulfill({ path: join(home, name) })
    })
    await page.goto(`${url}/?room=notes`)
    await page
      .getByRole("listitem")
      .filter({ hasText: /Notes.*up$/ })
      .waitFor()
    await console.enterKey(adminKey)
    await page.getByRole("heading", { name: "Notes", level: 1 }).waitFor()
    assert.strictEqual(await page.title(), "Notes · Signalbox")
    await page.getByText("No notes yet.").waitFor()
    for (const text of ["one", "two"]) {
      await page.getByLabel("Text").fill(text)
      await page.getByRole("button", { name: "Make a note" }).click()
      await page.getByRole("row").filter({ hasText: text }).waitFor()
    }
    const one = page.getByRole("row").filter({ hasText: "one" })
    await one.getByRole("button", { name: "Delete" }).click()
    await one.getByRole("button", { name: "Delete it" }).click()
    await one.waitFor({ state: "detached" })
    await page.getByRole("row").filter({ hasText: "two" }).waitFor()
    await page.getByRole("link", { name: "Notes" }).and(page.locator("[aria-current]")).waitFor()
  })
})
