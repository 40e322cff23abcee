/** The utm fields of a page's query, '' where it has none. The first value of a name counts. */
export interface Campaign {
  readonly source: string
  readonly medium: string
  readonly campaign: string
  readonly term: string
  readonly content: string
}

/** Longer values are cut. */
export const utmLengthMax = 256

const none: Campaign = { source: "", medium: "", campaign: "", term: "", content: "" }

export const campaignOf = (query: string): Campaign => {
  // Most pages carry none, and reading a query costs more than the rest of the page's address.
  if (!query.includes("utm_")) return none
  const params = new URLSearchParams(query)
  const value = (name: string): string => (params.get(name) ?? "").trim().slice(0, utmLengthMax)
  return {
    source: value("utm_source"),
    medium: value("utm_medium"),
    campaign: value("utm_campaign"),
    term: value("utm_term"),
    content: value("utm_content")
  }
}
