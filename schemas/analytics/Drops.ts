import { Schema } from "effect"

/**
 * The reason why a sent event is in no figure; `property`: it is in them, without an invalid property. Source:
 * contract/analytics#drops.
 */
export const DropReason = Schema.Literals([
  "bot",
  "hostname",
  "duplicate",
  "rate",
  "invalid",
  "late",
  "spam",
  "property"
])
export type DropReason = typeof DropReason.Type

/** The purpose of a bot. `library`: a program of any kind; `browser`: an automated browser; `other`: unknown. */
export const BotCategory = Schema.Literals([
  "search",
  "ai",
  "seo",
  "ads",
  "preview",
  "feed",
  "monitor",
  "archive",
  "security",
  "library",
  "browser",
  "other"
])
export type BotCategory = typeof BotCategory.Type

export const Bot = Schema.Struct({
  name: Schema.String.annotate({ examples: ["GPTBot"] }),
  category: BotCategory
}).annotate({ identifier: "Bot", description: "Bots without a name are one: `Other bot`" })
export type Bot = typeof Bot.Type

/** By UTC day, reason and bot: the days in order, the most frequent bots of a day first. */
export const Drops = Schema.Struct({
  drops: Schema.Array(
    Schema.Struct({
      day: Schema.String.annotate({ description: "UTC day", examples: ["2026-11-21"] }),
      reason: DropReason,
      bot: Schema.NullOr(Bot).annotate({ description: "With the reason `bot` only" }),
      count: Schema.Int
    })
  )
}).annotate({ identifier: "Drops", description: "Events of the last 30 days that do not count, and why" })
