import { type Bot, BotCategory } from "#schemas/analytics/Drops.ts"

/**
 * Bots by what they are there for, spelled as in their User-Agents, separated by commas. A name of one word is found as
 * a whole word, in upper or lower case; any other as it stands. Words that only a robots.txt has (`Google-Extended`,
 * `Applebot-Extended`) are in no User-Agent and not here.
 */
const names: Readonly<Record<Exclude<BotCategory, "other">, string>> = {
  search: `
    Googlebot, Googlebot-Image, Googlebot-News, Googlebot-Video, Google-InspectionTool, Storebot-Google, APIs-Google,
    Google-Site-Verification, Google-Safety, Google Favicon, DuplexWeb-Google, bingbot, BingPreview, msnbot, msnbot-media,
    Yahoo! Slurp, DuckDuckBot, DuckDuckGo-Favicons-Bot, Baiduspider, Baiduspider-image, Baiduspider-render, Baiduspider-video,
    YandexBot, YandexAccessibilityBot, YandexBlogs, YandexFavicons, YandexImages, YandexMedia, YandexMobileBot,
    YandexNews, YandexPagechecker, YandexRenderResourcesBot, YandexVideo, YandexWebmaster, Applebot, PetalBot,
    AspiegelBot, Sogou web spider, Sogou inst spider, Sogou Pic Spider, 360Spider, HaosouSpider, YisouSpider, Yeti,
    Daumoa, SeznamBot, SeznamHomepageCrawler, coccocbot-web, coccocbot-image, MojeekBot, Qwantbot, Qwantify, Exabot,
    search.marginalia.nu, Gigabot, Findxbot, Mail.RU_Bot, StackRambler, istellabot, Cliqzbot, SwiftypeBot, ZumBot,
    YoudaoBot, EasouSpider, JikeSpider, Googlebot-Mobile, VoilaBot, psbot, Google Web Preview`,
  ai: `
    GPTBot, OAI-SearchBot, OAI-AdsBot, ChatGPT-User, ClaudeBot, Claude-User, Claude-SearchBot, Claude-Web, anthropic-ai,
    PerplexityBot, Perplexity-User, GoogleOther, GoogleOther-Image, GoogleOther-Video, Google-CloudVertexBot,
    Google-NotebookLM, Gemini-Deep-Research, CCBot, Bytespider, TikTokSpider, Amazonbot, Amzn-SearchBot, Amzn-User,
    bedrockbot, NovaAct, meta-externalagent, meta-externalfetcher, meta-webindexer, FacebookBot, Diffbot, cohere-ai,
    cohere-training-data-crawler, MistralAI-User, DuckAssistBot, YouBot, AI2Bot, Ai2Bot-Dolma, Timpibot, PanguBot,
    ImagesiftBot, omgili, omgilibot, webzio-extended, Kangaroo Bot, SBIntuitionsBot, ICC-Crawler, img2dataset, Crawl4AI,
    FirecrawlAgent, Sidetrade indexer bot, VelenPublicWebCrawler, FriendlyCrawler, PhindBot, iaskspider, LinerBot,
    QualifiedBot, Andibot, bigsur.ai, Brightbot, Cotoyogi, aiHitBot, ChatGLM-Spider, KlaviyoAIBot,
    Poseidon Research Crawler, ApifyBot, LAIONDownloader, MyCentralAIScraperBot, EchoboxBot, Datenbank Crawler,
    Factset_spyderbot, Google-Firebase, AwarioBot, AwarioSmartBot, AwarioRssBot, TavilyBot, LinkupBot`,
  seo: `
    AhrefsBot, AhrefsSiteAudit, SemrushBot, SemrushBot-BA, SemrushBot-OCOB, SemrushBot-SA, SemrushBot-SI, SemrushBot-SWA,
    SiteAuditBot, SplitSignalBot, MJ12bot, DotBot, rogerbot, DataForSeoBot, BLEXBot, serpstatbot, SEOkicks,
    SEOkicks-Robot, SeekportBot, Screaming Frog SEO Spider, Barkrowler, Sitebulb, SISTRIX, RyteBot, DeepCrawl, Lipperhey,
    spbot, XoviBot, linkdexbot, MegaIndex.ru, SearchmetricsBot, Cocolyzebot, SeobilityBot, Linguee Bot, LinkpadBot,
    MauiBot, Domain Re-Animator Bot, SenutoBot, SiteCheckerBotCrawler, SE Ranking Bot, ZoominfoBot, Dataprovider.com,
    ev-crawler, trendictionbot, magpie-crawler, Mediatoolkitbot, TurnitinBot, DomainStatsBot, startmebot, W3C_Validator,
    W3C-checklink, Xenu Link Sleuth, LinkWalker, Ezooms, Chrome-Lighthouse`,
  ads: `
    AdsBot-Google, AdsBot-Google-Mobile, AdsBot-Google-Mobile-Apps, Mediapartners-Google, Google-Adwords-Instant,
    Google-Ads-Creatives-Assistant, adidxbot, YandexDirect, YandexDirectDyn, AdsTxtCrawler, ias_crawler, GrapeshotCrawler,
    proximic, CriteoBot, ADmantX, Taboolabot, peer39_crawler, AmazonAdBot, TTD-Content, Adbeat_bot`,
  preview: `
    facebookexternalhit, facebookcatalog, Facebot, Twitterbot, LinkedInBot, Slackbot, Slackbot-LinkExpanding,
    Slack-ImgProxy, Discordbot, TelegramBot, WhatsApp, SkypeUriPreview, MicrosoftPreview, Pinterestbot, Pinterest,
    redditbot, vkShare, Viber, Iframely, Embedly, Snap URL Preview Service, Mastodon, Pleroma, Akkoma, Misskey,
    SummalyBot, Friendica, Lemmy, Bluesky Cardyb, Synapse, Line-Poker, kakaotalk-scrap, XING-contenttabreceiver, Bitlybot,
    Tumblr, Google-PageRenderer, BufferLinkPreviewBot, OdklBot, FlipboardProxy, FlipboardRSS, Paper.li,
    GoogleImageProxy`,
  feed: `
    FeedFetcher-Google, Google-Podcast, Feedly, FeedlyBot, Inoreader, NewsBlur, Feedbin, Miniflux, FreshRSS,
    Tiny Tiny RSS, NetNewsWire, Liferea, NextCloud-News, theoldreader.com, BazQux, Feedspot, FeedBurner, Superfeedr,
    SimplePie, CommaFeed, Netvibes, UniversalFeedParser, feedparser, rss-parser, Akregator, QuiteRSS, RSSOwl, Newsboat,
    Blogtrottr, Overcast, iTMS, PocketParser, Readwise, Digg Feed Fetcher, LiveJournal.com`,
  monitor: `
    UptimeRobot, Pingdom.com_bot, PingdomPageSpeed, PingdomTMS, StatusCake, Site24x7, Uptime-Kuma, Better Uptime Bot,
    HetrixTools, NewRelicPinger, DatadogSynthetics, RuxitSynthetic, GTmetrix, PTST, DebugBear, Catchpoint, UptimeBot,
    NodePing, updown.io, FreshpingBot, montastic, Monitis, jetmon, check_http, Blackbox-Exporter, Blackbox Exporter,
    kube-probe, GoogleHC, ELB-HealthChecker, Amazon-Route53-Health-Check-Service, Cloudflare-Healthchecks,
    Cloudflare-Traffic-Manager, CloudflareDiagnostics, GoogleStackdriverMonitoring-UptimeChecks, Google-Cloud-Scheduler,
    OhDear.app, WormlyBot, AlertSite, SentryUptimeBot, PagePeeker, NetcraftSurveyAgent`,
  archive: `
    archive.org_bot, ia_archiver, special_archiver, heritrix, ArchiveTeam, ArchiveBot, Arquivo-web-crawler, Nicecrawler,
    HTTrack, WebCopier, WebZIP, BUbiNG, bnf.fr_bot, Browsertrix, Citoid, ZoteroTranslationServer, InternetArchiveBot,
    ArchiveBox, grab-site`,
  security: `
    CensysInspect, zgrab, Nuclei, Nmap Scripting Engine, masscan, InternetMeasurement, NetSystemsResearch, l9explore,
    l9tcpid, LeakIX, sqlmap, Nikto, WPScan, gobuster, feroxbuster, Fuzz Faster U Fool, DirBuster, Acunetix, Netsparker,
    OpenVAS, Detectify, getodin.com, ModatScanner, Palo Alto Networks, project25499, ISSCyberRiskCrawler, ZmEu, Jorgee,
    w3af, WhatWeb, SafeDNSBot, SiteLockSpider, BitSightBot`,
  library: `
    curl, libcurl, PycURL, Wget, aria2, HTTPie, PostmanRuntime, insomnia, python-requests, Python-urllib, python-urllib3,
    python-httpx, aiohttp, Scrapy, Nutch, Go-http-client, go-resty, colly, fasthttp, okhttp, Apache-HttpClient,
    Apache-HttpAsyncClient, Java-http-client, ReactorNetty, jsoup, libwww-perl, LWP::Simple, WWW-Mechanize, Mojolicious,
    GuzzleHttp, Symfony HttpClient, WordPress, Drupal, Faraday, HTTParty, http.rb, Typhoeus, rest-client, RestSharp,
    axios, node-fetch, undici, superagent, Deno, Bun, reqwest, ureq, CFNetwork, Alamofire, WinHTTP, PowerShell,
    WindowsPowerShell, lua-resty-http, hackney, ApacheBench, Gatling, JMeter, k6, wrk, Siege, autocannon, oha, vegeta,
    HTTP_Request2, Chef Client, AppEngine-Google, libfetch`,
  browser: `
    HeadlessChrome, HeadlessEdg, PhantomJS, SlimerJS, CasperJS, HtmlUnit, jsdom, Zombie.js, Puppeteer, Playwright,
    Selenium, Cypress, Prerender, Rendertron, Browserless, wkhtmltopdf, wkhtmltoimage, CutyCapt, Lightpanda`
}

/** Every bot that has a name. */
export const namedBots: ReadonlyArray<Bot> = BotCategory.literals.flatMap((category) =>
  category === "other" ? [] : names[category].split(",").map((name) => ({ name: name.trim(), category }))
)

/** All bots whose User-Agent contains no listed name. */
export const otherBot: Bot = { name: "Other bot", category: "other" }

const byName: ReadonlyMap<string, Bot> = new Map(namedBots.map((bot) => [bot.name.toLowerCase(), bot]))
const phrases: ReadonlyArray<readonly [string, Bot]> = Array.from(byName).filter(
  ([name]) => !/^[a-z0-9][\w-]*$/.test(name)
)

/** The name under which a bot is counted: '' for none and for the one without a name. */
export const nameToCount = (bot: Bot | undefined): string =>
  bot === undefined || bot === otherBot ? "" : bot.name

/** The bot that is counted under a name; one that is no longer listed keeps its name. */
export const botCountedAs = (name: string): Bot =>
  name === "" ? otherBot : (byName.get(name.toLowerCase()) ?? { name, category: "other" })

/** The first bot that a User-Agent names: rather a named service than the library it is made with. */
export const namedBotOf = (userAgent: string): Bot | undefined => {
  const text = userAgent.toLowerCase()
  let tool: Bot | undefined
  for (const [word] of text.matchAll(/[a-z0-9][\w-]*/g)) {
    const bot = byName.get(word)
    if (bot === undefined) continue
    if (bot.category !== "library" && bot.category !== "browser") return bot
    tool ??= bot
  }
  return phrases.find(([phrase]) => text.includes(phrase))?.[1] ?? tool
}

/**
 * Whether the name alone makes a bot. Previewers, feed readers and libraries are also parts of apps in which a person
 * looks at a page: whether those are bots is for the rest of the User-Agent to say.
 */
export const isBotByName = (bot: Bot): boolean =>
  bot.category !== "preview" && bot.category !== "feed" && bot.category !== "library"
