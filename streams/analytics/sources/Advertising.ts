import type { SourceList } from "./SourceList.ts"

/** Networks whose partners are paid for the visitors that they send. */
export const affiliates: SourceList = {
  Awin: "awin.com awin1.com zanox.com",
  "CJ Affiliate": "cj.com anrdoezrs.net dpbolvw.net jdoqocy.com kqzyfj.com tkqlhce.com",
  "Rakuten Advertising": "linksynergy.com linkshare.com",
  ShareASale: "shareasale.com",
  Impact: "impact.com impactradius.com",
  Partnerize: "partnerize.com prf.hn",
  Tradedoubler: "tradedoubler.com",
  Webgains: "webgains.com",
  Skimlinks: "skimlinks.com skimresources.com",
  Sovrn: "viglink.com sovrn.co",
  Admitad: "admitad.com",
  FlexOffers: "flexoffers.com",
  AvantLink: "avantlink.com",
  ClickBank: "clickbank.com clickbank.net",
  Digistore24: "digistore24.com",
  Kwanko: "kwanko.com metaffiliation.com",
  Effiliation: "effiliation.com",
  ADCELL: "adcell.de adcell.com",
  Belboon: "belboon.com belboon.de",
  Daisycon: "daisycon.com",
  TradeTracker: "tradetracker.net tradetracker.com",
  Adtraction: "adtraction.com",
  Affilinet: "affili.net"
}

/** Networks of paid visitors. */
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
