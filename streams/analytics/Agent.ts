import { createRequire } from "node:module"
import { isbot } from "isbot"
import type { Bot } from "#schemas/analytics/Drops.ts"
import { BoundedCache } from "./BoundedCache.ts"
import { isBotByName, namedBotOf, otherBot } from "./Bots.ts"

/** ua-parser-js 1.x, the last under MIT, has no types of its own: these are the parts in use. */
interface UserAgentParser {
  getBrowser(): { readonly name?: string; readonly version?: string }
  getDevice(): { readonly type?: string }
  getOS(): { readonly name?: string }
}
const UAParser: new (userAgent: string) => UserAgentParser = createRequire(import.meta.url)("ua-parser-js")

/** What a User-Agent says; '' for what it does not. */
export interface Agent {
  /** undefined: a browser, as far as is known */
  readonly bot: Bot | undefined
  readonly browser: string
  /** the major version */
  readonly version: string
  readonly os: string
  readonly device: "" | "desktop" | "mobile" | "tablet"
}

/** Longer ones are cut: what identifies a program stands at their beginning. */
export const userAgentLengthMax = 1024

const osNames: ReadonlyMap<string, string> = new Map([
  ["Mac OS", "macOS"],
  ["Chromium OS", "ChromeOS"]
])

export const parseAgent = (userAgent: string): Agent => {
  const parser = new UAParser(userAgent)
  const browser = parser.getBrowser()
  const name = (browser.name ?? "").replace(/^Mobile /, "")
  const osName = parser.getOS().name ?? ""
  return {
    bot: botOf(userAgent),
    browser: name,
    version: /^\d+/.exec(browser.version ?? "")?.[0] ?? "",
    os: osNames.get(osName) ?? osName,
    device: deviceOf(parser.getDevice().type, name, osName)
  }
}

/** isbot says whether it is one, the list who it is; and who is certainly one, though isbot does not know it. */
const botOf = (userAgent: string): Bot | undefined => {
  const named = namedBotOf(userAgent)
  if (named !== undefined && isBotByName(named)) return named
  return isbot(userAgent) ? (named ?? otherBot) : undefined
}

/** The contract knows three devices: a watch counts as mobile, a television as desktop. */
const deviceOf = (type: string | undefined, browser: string, os: string): Agent["device"] => {
  if (type === "tablet") return "tablet"
  if (type === "mobile" || type === "wearable") return "mobile"
  return browser === "" && os === "" ? "" : "desktop"
}

/** User-Agents repeat: a million visitors send a few thousand different ones. */
export const makeAgents = (entriesMax: number): BoundedCache<Agent> =>
  new BoundedCache(entriesMax, parseAgent)
