import type { SourceList } from "./SourceList.ts"

/** Networks whose visitors somebody paid for. */
export const advertising: SourceList = {
  "Google Ads":
    "doubleclick.net googleadservices.com googlesyndication.com adservice.google.* syndicatedsearch.goog adwords googleads " +
    "google_ads google-ads adsense gads",
  "Microsoft Ads": "bingads microsoftads bing_ads bing-ads",
  "Meta Ads": "facebook_ads facebook-ads facebookads fb_ads fb-ads fbads fbad instagram_ads ig_ads meta_ads",
  "LinkedIn Ads": "linkedin_ads linkedin-ads linkedinads",
  "TikTok Ads": "tiktok_ads tiktok-ads tiktokads",
  "Apple Search Ads": "searchads.apple.com apple_search_ads",
  "Yandex Direct": "direct.yandex.ru an.yandex.ru yabs.yandex.ru yandex_direct yandexdirect",
  "Amazon Ads": "amazon-adsystem.com amazon_ads",
  Taboola: "taboola.com taboolanews.com",
  Outbrain: "outbrain.com",
  Criteo: "criteo.com criteo.net",
  MGID: "mgid.com",
  RevContent: "revcontent.com",
  Plista: "plista.com",
  Teads: "teads.tv",
  AdRoll: "adroll.com",
  PopAds: "popads.net",
  PropellerAds: "propellerads.com",
  "The Trade Desk": "adsrvr.org",
  Xandr: "adnxs.com",
  Carbon: "carbonads.com carbonads.net buysellads.com",
  EthicalAds: "ethicalads.io"
}
