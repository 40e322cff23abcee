import { assert, describe, it } from "@effect/vitest"
import { bareHostname, isWithin } from "#streams/analytics/PageUrl.ts"
import { sourceOfHostname, sources } from "#streams/analytics/Sources.ts"
import { spamReferrers } from "#streams/analytics/SpamReferrers.ts"
import { fromBrowser, fromServer, stored } from "./Senders.ts"

const places = sources.flatMap(({ name, places }) => places.map((place) => ({ name, place })))
const apps = places.filter(({ place }) => place.startsWith("android-app://"))
const domains = places.filter(({ place }) => !place.startsWith("android-app://") && place.includes("."))
const words = places.filter(({ place }) => !place.includes("."))

const twice = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.filter((text, index) => texts.indexOf(text) !== index)

/** A visitor's source, as it is stored. */
const from = (r: string | null, query = "") => {
  const { channel, referrer, source } = stored(fromBrowser({ r, u: `https://example.org/${query}` }))
  return { referrer, source, channel }
}
const channelOf = (query: string, r: string | null = null) => from(r, query).channel

describe("the list of sources", () => {
  it("has every name once, and so one channel for it", () => {
    assert.deepStrictEqual(twice(sources.map(({ name }) => name.toLowerCase())), [])
  })

  it("has every domain, app and word once, spam included, and no word that is another source's name", () => {
    assert.deepStrictEqual(twice([...domains, ...apps].map(({ place }) => place).concat(spamReferrers)), [])
    assert.deepStrictEqual(
      twice(sources.map(({ name }) => name.toLowerCase()).concat(words.map(({ place }) => place))),
      []
    )
  })

  it("has domains as hostnames come: lower case, punycode, without www. and a final dot", () => {
    for (const domain of [...domains.map(({ place }) => place), ...spamReferrers]) {
      const hostname = domain.replace(/\.\*$/, ".com")
      assert.match(hostname, /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/, domain)
      assert.strictEqual(URL.parse(`https://${hostname}/`)?.hostname, hostname)
      assert.strictEqual(bareHostname(hostname), hostname)
    }
    for (const { place } of apps) assert.match(place, /^android-app:\/\/[a-z]\w*(?:\.[a-z]\w*)+$/i)
    for (const { place } of words) assert.match(place, /^[a-z0-9_-]+$/)
  })

  it("has no domain that its source has already, being part of another of its domains", () => {
    for (const { name, place } of domains) {
      const parent = place.replace(/\.\*$/, ".de").replace(/^[^.]+\./, "")
      assert.notStrictEqual(sourceOfHostname(parent).name, name, place)
    }
  })

  it("has no spam within a source, nor a source within spam", () => {
    const mixed = spamReferrers.filter((spam) =>
      domains.some(({ place }) => isWithin(spam, place) || isWithin(place, spam))
    )
    assert.deepStrictEqual(mixed, [])
  })

  it("finds every listed domain and every part of it", () => {
    for (const { name, place } of domains) {
      const hostname = place.replace(/\.\*$/, ".de")
      assert.strictEqual(sourceOfHostname(hostname).name, name)
      assert.strictEqual(sourceOfHostname(`a.b-c.${hostname}`).name, name)
      assert.notStrictEqual(sourceOfHostname(`x${hostname}`).name, name)
    }
  })
})

describe("a referrer's source", () => {
  it("has the name and channel of the nearest listed domain", () => {
    const expected = {
      "www.google.com": "Google, Search",
      "google.com.br": "Google, Search",
      "images.google.co.uk": "Google, Search",
      "mail.google.com": "Gmail, Email",
      "mail.google.co.jp": "Gmail, Email",
      "news.google.com": "Google News, News",
      "gemini.google.com": "Gemini, AI",
      "accounts.google.de": "Google Accounts, Referral",
      "accounts.google.com": "Google Accounts, Referral",
      "googleads.g.doubleclick.net": "Google Ads, Paid",
      "yandex.com.tr": "Yandex, Search",
      "ya.ru": "Yandex, Search",
      "search.yahoo.co.jp": "Yahoo, Search",
      "news.yahoo.co.jp": "Yahoo News, News",
      "cn.bing.com": "Bing, Search",
      "edgeservices.bing.com": "Copilot, AI",
      "m.facebook.com": "Facebook, Social",
      "lm.facebook.com": "Facebook, Social",
      "t.co": "X, Social",
      "out.reddit.com": "Reddit, Social",
      "news.ycombinator.com": "Hacker News, Social",
      "pinterest.co.uk": "Pinterest, Social",
      "away.vk.com": "VK, Social",
      "statics.teams.cdn.office.net": "Microsoft Teams, Social",
      "hachyderm.io": "Mastodon, Social",
      "outlook.live.com": "Outlook, Email",
      "nam12.safelinks.protection.outlook.com": "Outlook, Email",
      "us1.campaign-archive.com": "Mailchimp, Email",
      "chatgpt.com": "ChatGPT, AI",
      "chat.openai.com": "ChatGPT, AI",
      "www.perplexity.ai": "Perplexity, AI",
      "copilot.microsoft.com": "Copilot, AI",
      "someone.substack.com": "Substack, News",
      "github.com": "GitHub, Referral",
      "stackoverflow.com": "Stack Overflow, Social",
      "de.m.wikipedia.org": "Wikipedia, Referral",
      "www.amazon.co.uk": "Amazon, Referral",
      "awin1.com": "Awin, Affiliates",
      "someone.github.io": "someone.github.io, Referral",
      "notgoogle.com": "notgoogle.com, Referral",
      "google.evil.com": "google.evil.com, Referral",
      "google.com.evil.example": "google.com.evil.example, Referral",
      "blog.google": "blog.google, Referral",
      localhost: "localhost, Referral",
      "[2001:db8::1]": "[2001:db8::1], Referral"
    }
    for (const [hostname, text] of Object.entries(expected)) {
      const { channel, source } = from(`https://${hostname}/x?y=z`)
      assert.strictEqual(`${source}, ${channel}`, text, hostname)
    }
  })

  it("is an Android app's name, else its package; what follows the package is not kept", () => {
    const app = (referrer: string, source: string, channel: string) => ({ referrer, source, channel })
    assert.deepStrictEqual(
      from("android-app://com.google.android.gm/"),
      app("android-app://com.google.android.gm", "Gmail", "Email")
    )
    assert.deepStrictEqual(
      from("android-app://com.google.android.googlequicksearchbox/https/www.google.com?q=private"),
      app("android-app://com.google.android.googlequicksearchbox", "Google", "Search")
    )
    assert.deepStrictEqual(from("android-app://com.Slack"), app("android-app://com.Slack", "Slack", "Social"))
    assert.deepStrictEqual(
      from("android-app://com.example.Reader"),
      app("android-app://com.example.Reader", "com.example.Reader", "Referral")
    )
    for (const { name, place } of apps) assert.strictEqual(from(place).source, name)
  })

  it("is unknown where the referrer is neither http(s) nor an app", () => {
    for (const r of [
      "android-app://",
      "android-app://example",
      "android-app://com.example?q=private",
      "android-app://com..example",
      `android-app://com.${"a".repeat(250)}`,
      "ios-app://123/",
      "about:client",
      "chrome://newtab/",
      "google.com"
    ]) {
      assert.deepStrictEqual(from(r), { referrer: "", source: "", channel: "Direct" }, r)
    }
  })
})

describe("the channel", () => {
  it("is what the campaign's medium says, whatever the source", () => {
    const google = "https://www.google.com/"
    for (const medium of [
      "cpc",
      "PPC",
      "paid",
      "paidsocial",
      "paid-search",
      "cpm",
      "display",
      "banner",
      "retargeting"
    ]) {
      assert.strictEqual(channelOf(`?utm_source=google&utm_medium=${medium}`, google), "Paid", medium)
    }
    assert.strictEqual(channelOf("?utm_medium=cpc", google), "Paid")
    assert.strictEqual(channelOf("?utm_source=facebook&utm_medium=cpc"), "Paid")
    for (const medium of ["email", "E-Mail", "newsletter"]) {
      assert.strictEqual(channelOf(`?utm_source=x&utm_medium=${medium}`), "Email", medium)
    }
    assert.strictEqual(channelOf("?utm_source=blog&utm_medium=affiliates"), "Affiliates")
    assert.strictEqual(channelOf("?utm_source=blog&utm_medium=social-media"), "Social")
    assert.strictEqual(channelOf("?utm_source=blog&utm_medium=organic"), "Search")
  })

  it("is else that of the source that utm_source means: by name, by a word for it, or by domain", () => {
    const expected = {
      google: "Search",
      Bing: "Search",
      fb: "Social",
      IG: "Social",
      twitter: "Social",
      hn: "Social",
      "Hacker%20News": "Social",
      newsletter: "Email",
      mailchimp: "Email",
      "chatgpt.com": "AI",
      perplexity: "AI",
      "l.facebook.com": "Social",
      "google.de": "Search",
      googlenews: "News",
      adwords: "Paid",
      awin: "Affiliates",
      github: "Referral",
      constructor: "Referral"
    }
    for (const [source, channel] of Object.entries(expected)) {
      assert.strictEqual(channelOf(`?utm_source=${source}`), channel, source)
    }
  })

  it("is else the referrer's; a campaign that nobody has heard of is no direct visit", () => {
    assert.strictEqual(channelOf("?utm_source=spring", "https://t.co/abc"), "Social")
    assert.strictEqual(channelOf("?utm_source=spring"), "Referral")
    assert.strictEqual(channelOf("?utm_campaign=spring"), "Direct")
    assert.strictEqual(channelOf("?utm_medium=unheard", "https://www.bing.com/"), "Search")
    assert.strictEqual(channelOf("", "https://blog.example/"), "Referral")
    assert.strictEqual(channelOf(""), "Direct")
  })

  it("is paid for where a network has marked the click, unless the medium says something else", () => {
    const google = "https://www.google.com/"
    for (const id of "gclid gbraid wbraid dclid msclkid fbclid ttclid twclid yclid".split(" ")) {
      assert.strictEqual(channelOf(`?${id}=abc`, google), "Paid", id)
      assert.strictEqual(channelOf(`?a=b&${id}=abc&utm_source=google`), "Paid", id)
      assert.strictEqual(channelOf(`?${id}=abc&utm_medium=email`), "Email", id)
      assert.strictEqual(channelOf(`?${id}=`, google), "Search", id)
    }
    assert.strictEqual(channelOf("?notgclid=abc", google), "Search")
  })

  it("knows the media of other products, and sources in all the ways in which they are written", () => {
    const media = {
      referral: "Referral",
      audio: "Audio",
      video: "Video",
      sms: "SMS",
      push: "Push",
      shopping: "Shopping"
    }
    for (const [medium, channel] of Object.entries(media)) {
      assert.strictEqual(channelOf(`?utm_medium=${medium}`), channel, medium)
      assert.strictEqual(
        channelOf(`?utm_medium=${medium.toUpperCase()}`, "https://www.bing.com/"),
        channel,
        medium
      )
    }
    for (const [utmSource, source, channel] of [
      ["fbad", "Meta Ads", "Paid"],
      ["Reddit-ads", "Reddit", "Paid"],
      ["twitter_ads", "X", "Paid"],
      ["yt-ads", "YouTube", "Paid"],
      ["Spring-Ad", "Spring-Ad", "Paid"],
      ["threads", "Threads", "Social"],
      ["Newsletter-UK", "Newsletter-UK", "Email"],
      ["weekly_newsletter", "weekly_newsletter", "Email"],
      ["GOOGLE", "Google", "Search"],
      ["fb", "Facebook", "Social"],
      ["ChatGPT.com", "ChatGPT", "AI"],
      ["Spring", "Spring", "Referral"]
    ] as const) {
      assert.deepInclude(from(null, `?utm_source=${utmSource}`), { source, channel }, utmSource)
    }
    assert.deepInclude(from("https://copilot.com/"), { source: "Copilot", channel: "AI" })
    assert.deepInclude(from("https://word-edit.officeapps.live.com/we/"), { source: "Office" })
    assert.deepInclude(from("android-app://free.reddit.news/"), { source: "Reddit", channel: "Social" })
  })
})

describe("spam", () => {
  it("drops an event with a referrer that is known for it, sub-domains included, whoever the visitor is", () => {
    for (const domain of spamReferrers) assert.strictEqual(fromBrowser({ r: `http://${domain}/` }), "spam")
    assert.strictEqual(fromBrowser({ r: "https://forum.topic1234.darodar.com/x?y" }), "spam")
    assert.strictEqual(fromBrowser({ r: "http://WWW.Semalt.COM/crawler.php?u=example.org" }), "spam")
    assert.strictEqual(fromServer({ referrer: "http://semalt.com/", visitor: "v1" }), "spam")
    assert.strictEqual(fromServer({ referrer: "http://semalt.com/", url: "/?utm_source=news" }), "spam")
  })

  it("is the next member of a series of it, and nothing that only shares a word", () => {
    for (const domain of [
      "1-best-seo.com",
      "www.27-best-seo.net",
      "cookie-law-enforcement-zz.xyz",
      "eu-cookie-law-enforcement7.xyz",
      "scanner-anton.top",
      "bottraffic12345.xyz",
      "traffic-bot.example",
      "social-traffic-9.xyz",
      "free-share-buttons9.top",
      "x.social-buttons-iii.xyz"
    ]) {
      assert.strictEqual(fromBrowser({ r: `https://${domain}/` }), "spam", domain)
    }
    for (const domain of [
      "best-seo.example",
      "seo-agency.com",
      "social-buttons.example",
      "scanner-shop.de",
      "cookie-law.org",
      "robottraffic.com",
      "trafficnews.com",
      `${"share-".repeat(40)}x.com`
    ]) {
      assert.strictEqual(typeof fromBrowser({ r: `https://${domain}/` }), "object", domain)
    }
  })

  it("is neither a domain that looks like it nor one that only names it", () => {
    for (const r of [
      "https://notsemalt.com/",
      "https://semalt.com.example/",
      "https://semalt.example/",
      "https://blog.example/semalt.com"
    ]) {
      assert.strictEqual(typeof fromBrowser({ r }), "object", r)
    }
  })

  it("is told after what is wrong with the event, and after a bot", () => {
    const spam = { referrer: "http://semalt.com/" }
    assert.match(String(fromServer({ ...spam, ip: "1.2.3" })), /^ip: /)
    assert.strictEqual(fromServer({ ...spam, userAgent: "curl/8.0" }), "bot")
  })
})
