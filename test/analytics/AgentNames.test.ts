import { assert, describe, it } from "@effect/vitest"
import { parseAgent } from "#streams/analytics/Agent.ts"
import { chrome } from "./Senders.ts"

const iphone =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 16_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
const android =
  "Mozilla/5.0 (Linux; Android 13; SM-A536B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/120.0 Mobile Safari/537.36"
const linux = (system: string) =>
  `Mozilla/5.0 (X11; ${system}Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0`
const kaios = "Mozilla/5.0 (Mobile; Nokia_2720; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5.2"

/** Browser and system of agents that name one thing in several ways. */
const named: ReadonlyArray<readonly [userAgent: string, browser: string, os: string]> = [
  [kaios, "Firefox", "KaiOS"],
  [kaios.replace("Nokia_2720", "LYF/F90M;Android"), "Firefox", "KaiOS"],
  [kaios.replace("KAIOS", "KaiOS"), "Firefox", "KaiOS"],
  [chrome, "Chrome", "Windows"],
  [chrome.toLowerCase(), "Chrome", "Windows"],
  [android.replace("; wv", "").replace("Version/4.0 ", ""), "Chrome", "Android"],
  [android.replace("; wv", "").replace("Version/4.0 ", "").toLowerCase(), "Chrome", "Android"],
  [linux(""), "Firefox", "Linux"],
  [linux("Ubuntu; "), "Firefox", "Linux"],
  [linux("Fedora; "), "Firefox", "Linux"],
  [linux("").toLowerCase(), "Firefox", "Linux"],
  [`${iphone} GSA/340.3 Mobile/15E148 Safari/604.1`, "Google App", "iOS"],
  [`${iphone} Version/16.0 Mobile/15E148 Safari/604.1`, "Safari", "iOS"],
  [`${iphone} Mobile/15E148`, "Safari WebView", "iOS"],
  [`${iphone} Mobile/15E148 [Pinterest/iOS]`, "Pinterest", "iOS"],
  [`${android} [Pinterest/Android]`, "Pinterest", "Android"],
  [`${android} trill_300 BytedanceWebview/d8a21c6`, "TikTok", "Android"],
  [`${android} musical_ly_2023 JsSdk/1.0`, "TikTok", "Android"],
  [android, "Chrome WebView", "Android"]
]

describe("browsers and systems", () => {
  it("have one name each, however a User-Agent spells it and wherever it shows a page", () => {
    assert.deepStrictEqual(
      named.map(([userAgent]) => {
        const { browser, os } = parseAgent(userAgent)
        return [userAgent, browser, os] as const
      }),
      named
    )
  })
})
