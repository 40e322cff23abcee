import { assert, describe, it } from "@effect/vitest"
import { BotCategory } from "#schemas/analytics/Drops.ts"
import { parseAgent } from "#streams/analytics/Agent.ts"
import { botCountedAs, isBotByName, namedBots, nameToCount, otherBot } from "#streams/analytics/Bots.ts"
import { chrome, fromBrowser } from "./Senders.ts"

/** User-Agents as they are sent, by the name that they are counted under. */
const examples: Readonly<Record<string, string>> = {
  Googlebot:
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.6723.69 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "Googlebot-Image": "Googlebot-Image/1.0",
  "AdsBot-Google": "AdsBot-Google (+http://www.google.com/adsbot.html)",
  "FeedFetcher-Google": "FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)",
  bingbot:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36",
  "Yahoo! Slurp": "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
  YandexBot: "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
  "Sogou web spider": "Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)",
  Yeti: "Mozilla/5.0 (compatible; Yeti/1.1; +https://naver.me/spd)",
  GPTBot:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
  "ChatGPT-User":
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ChatGPT-User/1.0; +https://openai.com/bot",
  "OAI-SearchBot":
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36; compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot",
  ClaudeBot:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
  "Claude-User":
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Claude-User/1.0; +Claude-User@anthropic.com)",
  PerplexityBot:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)",
  "Perplexity-User":
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)",
  GoogleOther:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GoogleOther) Chrome/130.0.0.0 Safari/537.36",
  CCBot: "CCBot/2.0 (https://commoncrawl.org/faq/)",
  Bytespider:
    "Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)",
  "meta-externalagent":
    "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
  "MistralAI-User":
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MistralAI-User/1.0; +https://docs.mistral.ai/robots)",
  Amazonbot:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot) Chrome/119.0.6045.214 Safari/537.36",
  AhrefsBot: "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
  "Screaming Frog SEO Spider": "Screaming Frog SEO Spider/20.1",
  "Chrome-Lighthouse":
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0.0.0 Safari/537.36 Chrome-Lighthouse",
  facebookexternalhit: "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  WhatsApp: "WhatsApp/2.23.20.0",
  Mastodon: "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.example/)",
  Feedly: "Feedly/1.0 (+http://www.feedly.com/fetcher.html; 12 subscribers; like FeedFetcher-Google)",
  UptimeRobot: "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
  "Pingdom.com_bot": "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
  GTmetrix:
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/117.0.0.0 Safari/537.36 GTmetrix",
  "archive.org_bot": "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)",
  CensysInspect: "Mozilla/5.0 (compatible; CensysInspect/1.1; +https://about.censys.io/)",
  curl: "curl/8.5.0",
  "python-requests": "python-requests/2.31.0",
  aiohttp: "Python/3.11 aiohttp/3.9.1",
  "Go-http-client": "Go-http-client/1.1",
  HeadlessChrome:
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/130.0.0.0 Safari/537.36",
  "Other bot": "Mozilla/5.0 (compatible; NobodyKnowsBot/0.1; +https://nobody.example/)"
}

const iphone =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
const android =
  "Mozilla/5.0 (Linux; Android 14; SM-S918B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0"

/** Browsers, and in-app browsers. */
const browsers = [
  chrome,
  `${chrome} Edg/130.0.0.0`,
  `${chrome} OPR/115.0.0.0`,
  `${chrome} Vivaldi/7.0`,
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
  "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
  `${iphone} Version/17.6 Mobile/15E148 Safari/604.1`,
  `${iphone} Mobile/15E148 DuckDuckGo/7 Safari/605.1.15`,
  `${iphone} Mobile/21G80 [FBAN/FBIOS;FBAV/480.0.0.30.107;FBBV/123;FBDV/iPhone15,2;FBMD/iPhone;FBSN/iOS;FBSV/17.6;FBSS/3;FBLC/de_DE]`,
  `${iphone} Mobile/21G80 Instagram 350.0.0.20.100 (iPhone15,2; iOS 17_6; de_DE; de; scale=3.00; 1179x2556)`,
  `${iphone} Mobile/15E148 Twitter for iPhone/10.60`,
  `${iphone} Mobile/15E148 Snapchat/13.8.0.37 (like Safari/8618.3.11, panda)`,
  `${iphone} GSA/340.3 Mobile/15E148 Safari/604.1`,
  `${iphone} Mobile/15E148 YaBrowser/24.10 YaApp_iOS/241 Safari/604.1`,
  `${iphone} Mobile/15E148 NAVER(inapp; search; 2000; 12.8.5; 15PRO)`,
  `${android} Chrome/130.0.6723.102 Mobile Safari/537.36 [LinkedInApp]/4.1.1000`,
  `${android} Chrome/130.0.6723.102 Mobile Safari/537.36 musical_ly_2023 JsSdk/1.0 NetType/WIFI BytedanceWebview/d8a21c6`,
  `${android} Chrome/130.0.6723.102 Mobile Safari/537.36 MicroMessenger/8.0.50 WeChat/arm64 NetType/WIFI`,
  `${android} Chrome/130.0.6723.102 Mobile Safari/537.36 Reddit/Version 2024.45/Android 14`,
  "Mozilla/5.0 (Linux; Android 9; CUBOT NOTE S) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36",
  "Mozilla/5.0 (Linux; U; Android 13; en-us; 23049PCD8G) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/112.0 Mobile Safari/537.36 XiaoMi/MiuiBrowser/14.20",
  "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; .NET4.0C; .NET4.0E; rv:11.0) like Gecko",
  "Mozilla/5.0 (Windows NT 10.0; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/78.0 Safari/537.36 SE 2.X MetaSr 1.0",
  "Mozilla/5.0 (PlayStation; PlayStation 5/9.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15",
  "Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) AppleWebKit/537.36 (KHTML, like Gecko) 94.0.4606.31/7.0 TV Safari/537.36",
  ...["Discovery", "Spider 8 Build/QP1A", "XBot_Senior", "M bot 60", "Scanner X1", "Feed 3"].map(
    (device) =>
      `Mozilla/5.0 (Linux; Android 11; ${device}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36`
  ),
  "Mozilla/5.0 (Linux; U; Android 10; zh-cn; MI 8) AppleWebKit/533.1 (KHTML, like Gecko) Version/4.0 SogouMSE,SogouMobileBrowser/5.28.11 Mobile Safari/533.1",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 15_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.0 SogouMobileBrowser/5.28 Mobile/15E148 Safari/604.1",
  "Opera/9.80 (Linux armv7l; HbbTV/1.2.1 (; Philips; 40HFL5010T12; ; PHILIPSTV; CE-HTML/1.0 NETTV/4.4.1 SmartTvA/3.0.0 Firmware/004.002.036.135 (PhilipsTV, 3.1.1,)en) ) Presto/2.12.407 Version/12.50",
  "HbbTV/1.2.1 (+DRM;Samsung;SmartTV2015;T-HKM6DEUC-1490.3;;) OsrTvViewer",
  "Opera/9.80 (Android; Opera Mini/36.2.2254/191.256; U; en) Presto/2.12.423 Version/12.16"
]

describe("a bot", () => {
  it("is named after what its User-Agent says", () => {
    for (const [name, userAgent] of Object.entries(examples)) {
      assert.strictEqual(parseAgent(userAgent).bot?.name, name)
      assert.strictEqual(fromBrowser({}, { userAgent }), "bot", name)
    }
  })

  it("is one by its name alone, though it else looks like a browser", () => {
    for (const bot of namedBots.filter(isBotByName)) {
      assert.strictEqual(parseAgent(`${chrome} ${bot.name}/1.0`).bot, bot)
      assert.strictEqual(parseAgent(`${chrome} (compatible; ${bot.name.toUpperCase()})`).bot, bot)
    }
  })

  it("is not found in part of a word, nor in an app that carries a previewer's, reader's or library's name", () => {
    for (const userAgent of [
      `${chrome} Yetis/1.0`,
      `${chrome} GTmetrixed`,
      "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21A329 [Pinterest/iOS]",
      "Mozilla/5.0 (X11; Linux) AppleWebKit/605.1.15 (KHTML, like Gecko) Liferea/1.15 Safari/605.1.15",
      "Example/3 CFNetwork/1410 Darwin/22.6.0"
    ]) {
      assert.isUndefined(parseAgent(userAgent).bot, userAgent)
    }
  })

  it("is one with a telephone's User-Agent too, if more than the device looks like a bot", () => {
    const phone = (device: string, more: string) =>
      `Mozilla/5.0 (Linux; Android 11; ${device}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36${more}`
    for (const userAgent of [
      phone("Discovery", " (compatible; NobodyKnowsBot/2.1)"),
      phone("Pixel 8", " NobodyKnowsCrawler"),
      phone("Spider 8; +http://nobody.example/bot", ""),
      "HbbTV/1.2.1 (;;;;;) NobodyKnowsBot (+https://nobody.example/)"
    ]) {
      assert.strictEqual(parseAgent(userAgent).bot, otherBot, userAgent)
    }
  })

  it("is named rather than the library or browser that it is made with", () => {
    assert.strictEqual(parseAgent("curl/8.5 python-requests/2").bot?.name, "curl")
    assert.strictEqual(parseAgent("python-requests/2 (compatible; GPTBot/1.0)").bot?.name, "GPTBot")
    assert.strictEqual(
      parseAgent(`${chrome} HeadlessChrome/1 Screaming Frog SEO Spider/20`).bot?.category,
      "seo"
    )
  })

  it("is listed once, in a category of the contract", () => {
    const known = new Set(namedBots.map(({ name }) => name.toLowerCase()))
    assert.strictEqual(known.size, namedBots.length)
    assert.isFalse(known.has(""))
    const categories = new Set(namedBots.map(({ category }) => category))
    assert.deepStrictEqual([...categories, "other"], [...BotCategory.literals])
  })

  it("is counted under a name from which it is known again", () => {
    for (const bot of [...namedBots, otherBot]) assert.strictEqual(botCountedAs(nameToCount(bot)), bot)
  })
})

describe("a browser", () => {
  it("is never named as a bot", () => {
    for (const userAgent of browsers) assert.isUndefined(parseAgent(userAgent).bot, userAgent)
  })
})
