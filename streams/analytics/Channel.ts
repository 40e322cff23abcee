import type { Campaign } from "./Campaign.ts"
import { sourceOfCampaign, type Channel, type Source } from "./Sources.ts"

/**
 * The channel of an event: what its campaign's medium says, else Paid for a click that a network has marked, else the
 * kind of source that the campaign names, else the kind of place that the visitor came from. A source that is not known
 * refers.
 */
export const channelOf = (campaign: Campaign, from: Source): Channel =>
  mediumChannel(campaign.medium.toLowerCase()) ??
  (campaign.isPaidClick
    ? "Paid"
    : campaign.source === ""
      ? from.channel
      : campaignChannel(campaign.source, from))

const mediumChannel = (medium: string): Channel | undefined => {
  if (medium === "") return undefined
  if (paidMedium.test(medium)) return "Paid"
  if (/^(?:e[-_ ]?mail|newsletter)$/.test(medium)) return "Email"
  if (medium.startsWith("affiliate")) return "Affiliates"
  if (medium.startsWith("social") || medium === "sm") return "Social"
  return mediumChannels.get(medium)
}

const mediumChannels: ReadonlyMap<string, Channel> = new Map([
  ["organic", "Search"],
  ["referral", "Referral"],
  ["link", "Referral"],
  ["audio", "Audio"],
  ["podcast", "Audio"],
  ["video", "Video"],
  ["sms", "SMS"],
  ["push", "Push"],
  ["notification", "Push"],
  ["shopping", "Shopping"]
])

const paidMedium = /^(?:ppc|paid.*|.*cp[cmav]|ads?|sem|display|banner|retargeting|remarketing|sponsored)$/

const campaignChannel = (utmSource: string, from: Source): Channel =>
  sourceOfCampaign(utmSource)?.channel ?? (from.channel === "Direct" ? "Referral" : from.channel)
