/** The campaign in a page address's query: the utm fields, '' for absent ones. The first value of a name counts. */
export interface Campaign {
  readonly source: string
  readonly medium: string
  readonly campaign: string
  readonly term: string
  readonly content: string
  /** whether an advertising network has marked the click as one of its own */
  readonly isPaidClick: boolean
}

/** Longer values are cut. */
const utmLengthMax = 256

const none: Campaign = { source: "", medium: "", campaign: "", term: "", content: "", isPaidClick: false }

export const campaignOf = (query: string): Campaign => {
  // Most pages carry none, and reading a query costs more than the rest of the page's address.
  if (!mayTell.test(query)) return none
  const params = new URLSearchParams(query)
  const value = (name: string): string => (params.get(name) ?? "").trim().slice(0, utmLengthMax)
  return {
    source: value("utm_source"),
    medium: value("utm_medium"),
    campaign: value("utm_campaign"),
    term: value("utm_term"),
    content: value("utm_content"),
    isPaidClick: clickIds.some((name) => value(name) !== "")
  }
}

/** The names under which networks pass the number of a paid click. */
const clickIds = ["gclid", "gbraid", "wbraid", "dclid", "msclkid", "fbclid", "ttclid", "twclid", "yclid"]

/** In every query that has one of the names. */
const mayTell = /utm_|clk?id=|braid=/
