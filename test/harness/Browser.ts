import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { type Browser, type BrowserContext, type CDPSession, chromium } from "playwright-core"
import { requirement } from "./Requirement.ts"

const executablePath = (process.env["PATH"] ?? "")
  .split(delimiter)
  .map((directory) => join(directory, "chromium"))
  .find((path) => existsSync(path))

export const chromiumPresent = requirement("chromium", () =>
  executablePath === undefined ? "no chromium on the PATH" : undefined
)

/** The User-Agent of a person's browser: a headless one counts as the bot that it is. */
const userAgent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"

/** Every name under `.test` and `example.com` (RFC 2606) is this machine. Nothing else is reached. */
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--host-resolver-rules=MAP *.test 127.0.0.1, MAP *.example.com 127.0.0.1",
  `--user-agent=${userAgent}`
]

/**
 * Without a locale Chromium cannot read a dropped file whose name is not ASCII, and says that it changed. Tests may run
 * where there is none, and a person's desktop has one.
 */
const env = { ...process.env, LC_ALL: "C.UTF-8" }

let shared: Promise<Browser> | undefined

/**
 * The Chromium of this worker, started once for all files. A file has its own contexts and closes them; the browser ends
 * with the worker.
 */
export const sharedBrowser = (): Promise<Browser> => {
  shared ??= chromium.launch({
    executablePath: executablePath ?? "chromium",
    args,
    env,
    // Tests of the back/forward cache need one.
    ignoreDefaultArgs: ["--disable-back-forward-cache"]
  })
  return shared
}

/**
 * A browser that shows a page without a driver: Chromium prerenders nothing while it is driven. The page acts by its
 * own scripts. Answers how to close it.
 */
export const openUndriven = async (url: string): Promise<() => Promise<void>> => {
  const profile = await mkdtemp(join(tmpdir(), "chromium-"))
  const child = spawn(
    executablePath ?? "chromium",
    ["--headless", "--no-first-run", `--user-data-dir=${profile}`, ...args, url],
    // A group of its own, because the browser is many processes.
    { stdio: "ignore", detached: true, env }
  )
  const gone = new Promise((resolve) => child.once("exit", resolve))
  return async () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
    await gone
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A browser with a profile of its own, and so with pages such as chrome://downloads; the caller closes it. */
export const openProfile = (profile: string, downloads: string): Promise<BrowserContext> =>
  chromium.launchPersistentContext(profile, {
    executablePath: executablePath ?? "chromium",
    args,
    env,
    downloadsPath: downloads
  })

/**
 * Tabs as a person has them: one is seen, the others are hidden. Pages of Playwright think that they are all seen, so
 * these are not its own, and act by what is in them.
 */
export interface Tabs {
  /** opens a tab, in front of the others or behind them; answers its id */
  readonly open: (url: string, options?: { readonly background: boolean }) => Promise<string>
  readonly activate: (tab: string) => Promise<void>
  readonly close: (tab: string) => Promise<void>
}

export const tabsOf = async (browser: Browser): Promise<Tabs> => {
  const session: CDPSession = await browser.newBrowserCDPSession()
  return {
    open: async (url, { background } = { background: false }) => {
      const { targetId } = await session.send("Target.createTarget", { url, background })
      return targetId
    },
    activate: async (targetId) => {
      await session.send("Target.activateTarget", { targetId })
    },
    close: async (targetId) => {
      await session.send("Target.closeTarget", { targetId })
    }
  }
}
