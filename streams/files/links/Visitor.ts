/**
 * A request to a link, as far as it tells who asks. Chats, mail scanners and browsers look at links before a person does; what
 * they are shown must not use one up. Source: contract/files#previews.
 */
export interface Visit {
  readonly method: string
  /** by lower-case name; "" when absent */
  readonly header: (name: string) => string
}

/** Programs that fetch links for a preview, an index or a scan, by the names that they give themselves. */
const previewers = [
  "slack-imgproxy",
  "slackbot",
  "facebookexternalhit",
  "facebookcatalog",
  "meta-externalagent",
  "meta-externalfetcher",
  "whatsapp",
  "telegrambot",
  "discordbot",
  "skypeuripreview",
  "microsoftpreview",
  "teamsbot",
  "ms search",
  "snap url preview",
  "kakaotalk-scrap",
  "line-poker",
  "viber",
  "vkshare",
  "mattermost",
  "rocket.chat",
  "zulipurlpreview",
  "synapse",
  "mastodon",
  "pleroma",
  "misskey",
  "nextcloud server",
  "nextcloud-talk",
  "embedly",
  "iframely",
  "notion",
  "google-pagerenderer",
  "google-safety",
  "googleimageproxy",
  "google-read-aloud",
  "bingpreview",
  "yahoo link preview",
  "yahoomailproxy",
  "proofpoint",
  "mimecast",
  "barracuda",
  "trendmicro",
  "forcepoint",
  "symantec",
  "urlscan",
  "virustotal",
  "safelinks",
  "w3c_validator",
  "curebot"
]

/** Robots call themselves so: Twitterbot, LinkedInBot, a crawler, a spider. */
const robot = /bot\b|crawler|spider|unfurl|link ?preview|linkcheck|mailscanner/

export const isPreviewer = (agent: string): boolean => {
  const name = agent.toLowerCase()
  return robot.test(name) || previewers.some((known) => name.includes(known))
}

/** A browser fetches it before anyone has asked to see it. */
const isAhead = ({ header }: Visit): boolean =>
  ["purpose", "sec-purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|prerender|preview/i.test(header(name))
  )

/** A person at a browser, or what passes for one: it names the type, any type at all will not do. */
export const acceptsPage = ({ header }: Visit): boolean =>
  /(?:^|[,\s])(?:text\/html|application\/xhtml\+xml)\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*[,;]|$))/i.test(
    header("accept")
  )

/** Whether a link that can be used up answers with a page, whose button downloads, in the place of the bytes. */
export const looksFirst = (visit: Visit): boolean =>
  acceptsPage(visit) || isAhead(visit) || isPreviewer(visit.header("user-agent"))
