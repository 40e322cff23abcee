import { assert, describe, it } from "@effect/vitest"
import { acceptsPage, isPreviewer, looksFirst } from "#streams/files/links/Visitor.ts"

const visit = (headers: Readonly<Record<string, string>>) => ({
  method: "GET",
  header: (name: string) => headers[name] ?? ""
})

/** The names that they sent in November 2026. */
const previewers = {
  Slack: "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  "Slack's images": "Slack-ImgProxy (+https://api.slack.com/robots)",
  WhatsApp: "WhatsApp/2.23.20.0",
  Signal: "WhatsApp/2",
  Telegram: "TelegramBot (like TwitterBot)",
  Discord: "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
  Facebook: "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  iMessage:
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
  Skype: "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
  Teams: "Mozilla/5.0 (Windows NT 6.1; WOW64) MicrosoftPreview/2.0 +https://aka.ms/MicrosoftPreview",
  LinkedIn:
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Jakarta Commons-HttpClient/3.1 +http://www.linkedin.com)",
  X: "Twitterbot/1.0",
  Mastodon: "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.social/) Bot",
  Matrix: "Synapse (bot; +https://github.com/matrix-org/synapse)",
  Viber: "Viber/20.0.0",
  Google: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  Bing: "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
  "a scanner of mail": "Barracuda Sentinel (EE)",
  "a crawler": "example-crawler/1.0"
}

const programs = {
  curl: "curl/8.14.1",
  wget: "Wget/1.25.0",
  requests: "python-requests/2.32.3",
  fetch: "node",
  Go: "Go-http-client/2.0",
  "a download manager": "aria2/1.37.0",
  none: ""
}

const chrome =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"

describe("a visitor of a link that can be used up", () => {
  for (const [name, agent] of Object.entries(previewers))
    it(`${name} is shown a page, though it takes any type`, () => {
      assert.isTrue(isPreviewer(agent))
      assert.isTrue(looksFirst(visit({ "user-agent": agent, accept: "*/*" })))
    })

  for (const [name, agent] of Object.entries(programs))
    it(`${name} gets the bytes`, () =>
      assert.isFalse(looksFirst(visit({ "user-agent": agent, accept: "*/*" }))))

  it("a browser is shown a page, whoever drives it", () => {
    for (const accept of [
      "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
      "text/html",
      "application/xml, Text/HTML;q=0.1",
      "application/xhtml+xml"
    ])
      assert.isTrue(looksFirst(visit({ "user-agent": chrome, accept })), accept)
  })

  it("no page goes to who does not name its type, or refuses it", () => {
    for (const accept of [
      "*/*",
      "",
      "text/*",
      "application/json",
      "text/htmlx",
      "text/html;q=0",
      "text/html; q=0.0, */*"
    ])
      assert.isFalse(acceptsPage(visit({ accept })), accept)
  })

  for (const header of ["purpose", "sec-purpose", "x-purpose", "x-moz"])
    it(`a browser that fetches ahead (${header}) is shown a page`, () =>
      assert.isTrue(
        looksFirst(visit({ "user-agent": chrome, accept: "*/*", [header]: "prefetch;prerender" }))
      ))
})
