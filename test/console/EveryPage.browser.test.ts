import { assert, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { ask, createSite, type TestSite, textAt } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sandboxNamedBy } from "#test/notify/Sandbox.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { overflowOf } from "./ConsolePage.ts"

interface Place {
  readonly name: string
  /** without the address of the server */
  readonly path: () => string
  /** the text visible once the page is complete */
  readonly sign: (page: Page) => Promise<void>
  /** the console is there without a user, or it is no part of the console */
  readonly isOpen?: boolean
  /** axe takes many seconds for it, and looks at it once */
  readonly isLong?: boolean
}

const heading = (name: string) => (page: Page) =>
  page.getByRole("heading", { name, level: 1, exact: true }).waitFor()

/** Links and buttons that are no words of a text are at least so high and wide. Source: WCAG 2.2, 2.5.8. */
const targetPixels = 24

const smallTargets = `Array.from(document.querySelectorAll("a, button, summary, input"))
  .filter((element) => element.checkVisibility() && getComputedStyle(element).display !== "inline")
  .filter((element) => !element.matches(".skip"))
  .map((element) => ({ element, box: element.getBoundingClientRect() }))
  .filter(({ box }) => box.width > 0 && (box.height < ${targetPixels} - 0.5 || box.width < ${targetPixels} - 0.5))
  .filter(({ element }) => !element.matches("input[type=checkbox]"))
  .map(({ element, box }) => element.outerHTML.slice(0, 120) + " " + box.width + "x" + box.height)`

/** The colours in which an element, or what stands before it, is seen on the page's ground: of its face and its edge. */
const colorsOf = (selector: string): string => {
  const [element = "", part] = selector.split("::")
  return `(() => {
    const style = getComputedStyle(document.querySelector(${JSON.stringify(element)}), ${JSON.stringify(part ?? null)})
    const ground = getComputedStyle(document.documentElement).backgroundColor
    const edge = parseFloat(style.borderBottomWidth) > 0 ? [style.borderBottomColor] : []
    return [style.backgroundColor, ...edge].filter((color) => color !== ground && color !== "rgba(0, 0, 0, 0)")
  })()`
}

/** Files, one of them with a very long name, and one in the trash. */
const putFiles = async (server: ServerProcess): Promise<void> => {
  const long = `a-name-without-a-space-${"that-goes-on-".repeat(15)}.txt`
  for (const path of ["papers/notes.txt", `papers/${long}`, "papers/below/deep.txt", "papers/old.txt"]) {
    const asked = { body: "One line.\n", headers: { "content-type": "text/plain" } }
    const { status } = await ask(server, "PUT", `/api/upload/${path}`, asked)
    assert.strictEqual(status, 201, path)
  }
  const found = await ask(server, "GET", "/api/files?q=old.txt")
  await ask(server, "DELETE", `/api/files/${textAt(found, "files", "0", "id")}`)
  const json = { name: "Laptop", platform: "desktop" }
  await ask(server, "POST", "/api/devices", { json })
}

/** A project with a subscriber, a key and a message; answers its id. */
const makeProject = async (server: ServerProcess): Promise<string> => {
  const made = await ask(server, "POST", "/api/v1/projects", { json: { name: "Nightly builds" } })
  const sandbox = sandboxNamedBy((await ask(server, "GET", "/readyz")).body)
  const { id: _id, ...push } = await sandbox.subscribe()
  const link = textAt(made, "joinUrl").replace(/.*\//, "")
  const joined = await ask(server, "POST", `/api/v1/join/${link}`, {
    key: "",
    json: { name: "Ada", timezone: "UTC", push }
  })
  assert.strictEqual(joined.status, 201)
  const id = textAt(made, "id")
  await ask(server, "POST", "/api/v1/project-keys", { json: { name: "ci", projects: [id] } })
  await ask(server, "POST", `/api/v1/projects/${id}/test`)
  return id
}

describeWith(chromiumPresent, "every page, in Chromium,", () => {
  let server: ServerProcess
  let browser: Browser
  let own: TestSite
  let shared: TestSite
  let silent: TestSite
  let session = ""
  let project = ""

  const console = (query: string) => () => `/${query}`
  const places: ReadonlyArray<Place> = [
    { name: "the form to sign in", path: console(""), sign: heading("Sign in"), isOpen: true },
    {
      name: "a login link",
      path: () => "/login#ticket",
      sign: (page) => page.getByText("This login link signs you in").waitFor(),
      isOpen: true
    },
    {
      name: "the account menu",
      path: console("?room=agents"),
      sign: async (page) => {
        await page.getByRole("button", { name: "Account: " }).click()
        await page.getByRole("button", { name: "Sign out everywhere" }).click()
        await page.getByRole("button", { name: "Stay signed in" }).waitFor()
      }
    },
    { name: "the sites", path: console(""), sign: heading("Sites") },
    {
      name: "figures",
      path: () => `/?site=${own.id}&period=7d&country=(none)`,
      sign: (page) => page.locator("[data-figure=visitors]", { hasText: "3" }).waitFor()
    },
    {
      name: "a site without events",
      path: () => `/?site=${silent.id}`,
      sign: (page) => page.getByText("Waiting for the first event").waitFor()
    },
    {
      name: "models",
      path: console("?room=models"),
      sign: (page) => page.getByRole("row").filter({ hasText: "sandbox/free" }).waitFor()
    },
    { name: "agents", path: console("?room=agents"), sign: heading("Agents") },
    {
      name: "a session",
      path: () => `/?room=agents&session=${session}`,
      sign: (page) => page.getByText("say Done.").first().waitFor()
    },
    { name: "notifications", path: console("?room=notify"), sign: heading("Notifications") },
    {
      name: "a project",
      path: () => `/?room=notify&project=${project}`,
      sign: async (page) => {
        await page.locator("summary").filter({ hasText: "This is a test." }).click()
        await page.getByRole("list", { name: "Subscribers" }).getByText("Ada").waitFor()
      }
    },
    {
      name: "a directory of files, and the menu of one",
      path: console("?room=files&path=papers"),
      sign: async (page) => {
        await page.getByRole("button", { name: "Actions for notes.txt" }).click()
        await page.getByRole("button", { name: "Rename …" }).waitFor()
      }
    },
    {
      name: "a file",
      path: console("?room=files&q=notes.txt"),
      sign: async (page) => {
        await page.getByRole("link", { name: "notes.txt" }).click()
        await page.getByText("One line.").waitFor()
        await page.getByText("1 version").waitFor()
      }
    },
    {
      name: "files in the trash",
      path: console("?room=files&show=trash"),
      sign: (page) => page.getByText("old.txt").waitFor()
    },
    {
      name: "devices",
      path: console("?room=files&show=devices"),
      sign: (page) => page.getByText("Laptop").waitFor()
    },
    {
      name: "a shared site",
      path: () => `/?site=${shared.id}&period=30d`,
      sign: (page) => page.getByText("Shared view").waitFor(),
      isOpen: true
    },
    { name: "the API", path: () => "/docs", sign: heading("API"), isOpen: true, isLong: true },
    {
      name: "the protocol",
      path: () => "/docs/agent",
      sign: heading("Agent protocol 1"),
      isOpen: true,
      isLong: true
    },
    { name: "nothing", path: () => "/nothing", sign: heading("Nothing is here"), isOpen: true }
  ]

  const visit = async (place: Place, shape: BrowserContextOptions, look: (page: Page) => Promise<void>) => {
    const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", ...shape })
    const page = await context.newPage()
    try {
      await page.goto(`${server.url}${place.path()}`)
      if (place.isOpen !== true) {
        await page.getByLabel("API key").fill(server.adminKey())
        await page.getByRole("button", { name: "Sign in", exact: true }).click()
      }
      await place.sign(page)
      // Data still being loaded is dimmed.
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" })
      await look(page)
    } finally {
      await context.close()
    }
  }
  const axeOn = async (page: Page): Promise<ReadonlyArray<string>> => {
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate<AxeResults>(
      `axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } })`
    )
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, target }) => `${String(target)} ${html.slice(0, 160)}`).join("; ")}`
    )
  }

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = await startServer()
    browser = await sharedBrowser()
    own = await createSite(server)
    shared = await createSite(server)
    silent = await createSite(server)
    await ask(server, "PATCH", `/api/v1/sites/${shared.id}`, { json: { public: true } })
    const json = ["a", "b", "c"].flatMap((visitor) => [
      { url: "/", visitor, referrer: "https://www.google.com/" },
      { url: `/a-page-with-a-rather-long-path/${"word-".repeat(20)}`, visitor },
      { url: "/", visitor, name: "Signup" }
    ])
    for (const { secret: key } of [own, shared]) {
      assert.strictEqual((await ask(server, "POST", "/api/v1/collect", { key, json })).status, 202)
    }
    const question = { model: "sandbox/free", messages: [{ role: "user", content: "hello" }] }
    await ask(server, "POST", "/api/v1/chat/completions", { json: question })
    const workspace = { root: "/home/ada/project", name: "project" }
    const socket = await AgentSocket.open(server.url, server.adminKey(), {
      model: "sandbox/coder-free",
      workspace
    })
    socket.say({ type: "prompt", id: "p-1", text: "say Done." })
    await socket.hear("prompt.done")
    session = socket.sessionId
    socket.leave()
    project = await makeProject(server)
    await putFiles(server)
  })
  afterAll(async () => {
    await server?.dispose()
  })

  it.each(places.map((place) => [place.name, place] as const))(
    "breaks no rule of axe, scrolls downwards alone, has targets to hit and a head to skip: %s",
    async (_name, place) => {
      await visit(place, { viewport: { width: 1280, height: 900 } }, async (page) => {
        for (const [width, colorScheme] of [
          [1280, "light"],
          [320, "dark"]
        ] as const) {
          const where = `at ${width} px, ${colorScheme}`
          await page.setViewportSize({ width, height: 900 })
          await page.emulateMedia({ colorScheme })
          if (place.isLong !== true || width === 320) assert.deepStrictEqual(await axeOn(page), [], where)
          assert.isAtMost(await overflowOf(page), 0, where)
          assert.deepStrictEqual(await page.evaluate(smallTargets), [], where)
        }
        // The first thing that the keyboard finds leads past the head.
        assert.isTrue(await page.evaluate(`document.querySelector("a, button, input").matches(".skip")`))
        await page.getByRole("link", { name: "Skip to the content" }).focus()
        await page.keyboard.press("Enter")
        assert.strictEqual(await page.evaluate("document.activeElement?.tagName"), "MAIN")
      })
    }
  )

  it("shows marks where the reader's own colours are forced: legend, bars and lights", async () => {
    const marks = {
      models: [".series::before", ".rooms-light .light"],
      figures: [
        ".series::before",
        ".series + .series::before",
        ".minute-bars .minute:last-child",
        ".rows .bar"
      ]
    }
    for (const [name, selectors] of Object.entries(marks)) {
      const place = places.find((one) => one.name === name) ?? assert.fail(name)
      await visit(place, { forcedColors: "active" }, async (page) => {
        await page.locator(".series").first().waitFor()
        for (const selector of selectors) {
          const seen: ReadonlyArray<string> = await page.evaluate(colorsOf(selector))
          assert.isAtLeast(seen.length, 1, `${name}: ${selector}`)
        }
      })
    }
  })
})
