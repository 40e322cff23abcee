import type { Campaign } from "./Campaign.ts"
import { sourceOfCampaign, type Channel, type Source } from "./Sources.ts"

/**
 * The channel of an event: what its campaign's medium says, else the kind of source that the campaign names, else the
 * kind of place that the visitor came from. A source that nobody has heard of refers.
 */
export const channelOf = (campaign: Campaign, from: Source): Channel =>
  mediumChannel(campaign.medium.toLowerCase()) ??
  (campaign.source === "" ? from.channel : campaignChannel(campaign.source, from))

const mediumChannel = (medium: string): Channel | undefined => {
  if (medium === "") return undefined
  if (paidMedium.test(medium)) return "Paid"
  if (/^(?:e[-_ ]?mail|newsletter)$/.test(medium)) return "Email"
  if (medium.startsWith("affiliate")) return "Affiliates"
  if (medium.startsWith("social") || medium === "sm") return "Social"
  return medium === "organic" ? "Search" : undefined
}

const paidMedium = /^(?:ppc|paid.*|.*cp[cmav]|ads?|sem|display|banner|retargeting|remarketing|sponsored)$/

const campaignChannel = (utmSource: string, from: Source): Channel =>
  sourceOfCampaign(utmSource)?.channel ?? (from.channel === "Direct" ? "Referral" : from.channel)
