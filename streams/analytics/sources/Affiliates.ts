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
