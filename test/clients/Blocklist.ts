import { getDomain } from "tldts"

/** A request as a blocker of a browser sees it. */
export interface Asked {
  readonly url: string
  /** `ping` is what `sendBeacon` makes */
  readonly type: string
  /** the page that asks */
  readonly page: string
}

/**
 * The rules of EasyPrivacy (2026-08-13) that meet a self-hosted counter, verbatim: two by address, for any request, and
 * one against every beacon that leaves its site.
 */
const rules = ["/stats.*/event", "://analytics.*/event", "$ping,third-party"]

const partyOf = (url: string): string | null => getDomain(url) ?? new URL(url).hostname

/** The syntax of these rules: `*` stands for any text, and behind `$` are kinds of requests. */
const isMet = (rule: string, { page, type, url }: Asked): boolean => {
  const [pattern = "", options = ""] = rule.split("$")
  const address = pattern
    .split("*")
    .map((text) => text.replace(/[^\w]/g, "\\$&"))
    .join(".*")
  return (
    new RegExp(address, "i").test(url) &&
    options
      .split(",")
      .every((option) =>
        option === "third-party" ? partyOf(url) !== partyOf(page) : option === "" || option === type
      )
  )
}

/** Whether one of the rules forbids the request. */
export const isBlocked = (asked: Asked): boolean => rules.some((rule) => isMet(rule, asked))
