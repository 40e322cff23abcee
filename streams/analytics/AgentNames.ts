/**
 * Programs and systems under one name each. The parser answers most names as the User-Agent spells them, and some that
 * say how a page is shown rather than what shows it.
 */

const byLowerCase = (names: string): ReadonlyMap<string, string> =>
  new Map(names.split(",").map((name) => [name.trim().toLowerCase(), name.trim()]))

const browsers = byLowerCase(`
  Chrome, Chromium, Safari, Firefox, Opera, Opera Mini, Opera Mobi, Opera Tablet, IE, IEMobile, Mozilla, WebKit, Vivaldi,
  Brave, DuckDuckGo, Silk, Kindle, Maxthon, NetFront, Lunascape, Sleipnir, Epiphany, Midori, Falkon, Iridium, Iron,
  Puffin, Whale, Klar, Dragon, Electron, Tesla, QQBrowser, QQBrowserLite, QQ, LBBROWSER, LinkedIn, Klarna, KakaoTalk,
  KakaoStory, NAVER, Daum, Line, Alipay, Twitter, Instagram, Snapchat, Weibo, LibreWolf, Wolvic, SeaMonkey, PaleMoon,
  Basilisk, Waterfox, Iceweasel, Fennec, Lynx, w3m, Links, NetSurf, Cobalt`)

const systems = byLowerCase(`
  Windows, Windows Phone, Windows Mobile, iOS, Android, Linux, KaiOS, HarmonyOS, OpenHarmony, Tizen, webOS, BlackBerry,
  Bada, Symbian, Sailfish, MeeGo, Maemo, QNX, Chromecast, Nintendo, PlayStation, Xbox, FreeBSD, OpenBSD, NetBSD,
  DragonFly, Haiku, Solaris, OpenSolaris, AIX, Fuchsia`)

/** The parser's names that differ from the common ones. */
const renamed: ReadonlyMap<string, string> = new Map([
  ["mac os", "macOS"],
  ["chromium os", "ChromeOS"],
  ["firefox os", "Firefox OS"]
])

/** A distribution says less about a visitor than it splits the figure. */
const linuxes: ReadonlySet<string> = new Set(
  (
    "ubuntu,kubuntu,xubuntu,lubuntu,nubuntu,debian,suse,opensuse,gentoo,arch,slackware,fedora,mandriva,centos,pclinuxos," +
    "red hat,redhat,zenwalk,linpus,raspbian,deepin,manjaro,elementary os,sabayon,linspire,mint,mageia,vectorlinux,joli,gnu"
  ).split(",")
)

export const systemName = (parsed: string, userAgent: string): string => {
  // It calls itself an Android too, for the sites that ask for one.
  if (/kaios/i.test(userAgent)) return "KaiOS"
  const name = parsed.toLowerCase()
  if (linuxes.has(name)) return "Linux"
  return renamed.get(name) ?? systems.get(name) ?? parsed
}

/** Apps that show pages in the system's view, by what they add to its User-Agent. */
const viewApps: ReadonlyArray<readonly [text: string, name: string]> = [
  ["[pinterest/", "Pinterest"],
  ["bytedancewebview", "TikTok"],
  ["musical_ly", "TikTok"]
]

const views: ReadonlySet<string> = new Set(["Chrome WebView", "WebKit", "Android Browser", ""])

/** `system`: as `systemName` answers it. */
export const browserName = (parsed: string, system: string, userAgent: string): string => {
  const bare = parsed.replace(/^mobile /i, "")
  const name = browsers.get(bare.toLowerCase()) ?? bare
  if (name === "GSA") return "Google App"
  if (!views.has(name)) return name
  const text = userAgent.toLowerCase()
  const app = viewApps.find(([added]) => text.includes(added))
  if (app !== undefined) return app[1]
  return name === "WebKit" && system === "iOS" ? "Safari WebView" : name
}
