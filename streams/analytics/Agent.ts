import { createRequire } from "node:module"
import { isbot } from "isbot"
import type { Bot } from "#schemas/analytics/Drops.ts"
import { browserName, systemName } from "./AgentNames.ts"
import { BoundedCache } from "./BoundedCache.ts"
import { isBotByName, namedBotOf, otherBot } from "./Bots.ts"

/** ua-parser-js 1.x, the last under MIT, has no types of its own: these are the parts in use. */
interface UserAgentParser {
  getBrowser(): { readonly name?: string; readonly version?: string }
  getDevice(): { readonly type?: string }
  getOS(): { readonly name?: string }
}
const UAParser: new (userAgent: string) => UserAgentParser = createRequire(import.meta.url)("ua-parser-js")

/** The parts of a User-Agent; '' for those that it lacks. */
export interface Agent {
  /** undefined: a browser, as far as is known */
  readonly bot: Bot | undefined
  readonly browser: string
  /** the major version */
  readonly version: string
  readonly os: string
  readonly device: "" | "desktop" | "mobile" | "tablet"
}

/** Longer ones are cut: the part that identifies a program stands at their beginning. */
export const userAgentLengthMax = 1024

export const parseAgent = (userAgent: string): Agent => {
  const parser = new UAParser(userAgent)
  const browser = parser.getBrowser()
  const os = systemName(parser.getOS().name ?? "", userAgent)
  const name = browserName(browser.name ?? "", os, userAgent)
  return {
    bot: botOf(userAgent),
    browser: name,
    version: /^\d+/.exec(browser.version ?? "")?.[0] ?? "",
    os,
    device: deviceOf(parser.getDevice().type, name, os)
  }
}

/** isbot says whether it is one, the list who it is; and who is certainly one, though isbot does not know it. */
const botOf = (userAgent: string): Bot | undefined => {
  const named = namedBotOf(userAgent)
  if (named !== undefined && isBotByName(named)) return named
  return isbot(userAgent) && (named !== undefined || !isPersons(userAgent)) ? (named ?? otherBot) : undefined
}

/**
 * Whether only the name of a device, of a browser or a television's list of abilities makes an agent look like a bot:
 * telephones are called Discovery and Spider 8. One that gives an address to complain at is no person's.
 */
const isPersons = (userAgent: string): boolean => {
  if (userAgent.includes("+http")) return false
  if (/HbbTV\/\d/.test(userAgent)) return true
  const neutral = userAgent
    .replace(/\((?:Linux; )?(?:U; )?Android[^()]*\)/i, "(Linux; Android 10; K)")
    .replace(/Sogou(?:MSE|MobileBrowser|Explorer|Search)\b/gi, "Browser")
  return neutral !== userAgent && !isbot(neutral)
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
