const searchEngines = new Set([
  "Baidu",
  "Bing",
  "Brave",
  "DuckDuckGo",
  "Ecosia",
  "Google",
  "Kagi",
  "Qwant",
  "Startpage",
  "Yahoo",
  "Yandex"
])
const socialPlaces = new Set([
  "Bluesky",
  "Discord",
  "Facebook",
  "Hacker News",
  "Instagram",
  "LinkedIn",
  "Lobsters",
  "Medium",
  "Pinterest",
  "Product Hunt",
  "Reddit",
  "Stack Overflow",
  "Telegram",
  "TikTok",
  "WhatsApp",
  "X",
  "YouTube"
])
const assistants = new Set(["ChatGPT", "Claude", "Gemini", "Perplexity"])

/** The kind of place that an event came from, by its medium and the name of its source. */
export const channelOf = (medium: string, source: string): string => {
  return mediumChannel(medium.toLowerCase()) ?? sourceChannel(source)
}

const mediumChannel = (kind: string): string | undefined => {
  if (kind === "") return undefined
  if (/^(?:ppc|paid.*|.*cp[cmav]|display|banner|retargeting)$/.test(kind)) return "Paid"
  if (/^e-?mail$|^newsletter$/.test(kind)) return "Email"
  if (kind.startsWith("affiliate")) return "Affiliates"
  if (kind.startsWith("social")) return "Social"
  return kind === "organic" ? "Search" : undefined
}

const sourceChannel = (source: string): string => {
  if (source === "") return "Direct"
  if (source === "Gmail") return "Email"
  if (socialPlaces.has(source)) return "Social"
  if (searchEngines.has(source)) return "Search"
  return assistants.has(source) ? "AI" : "Referral"
}
