import type { Bot, DropReason } from "#schemas/analytics/Drops.ts"

/** The end of an event that is in no figure: counted per site and day, and shown to the site's owner. */
export class Drop {
  readonly reason: DropReason
  /** the bot, with the reason `bot` */
  readonly bot: Bot | undefined

  constructor(reason: DropReason, bot?: Bot) {
    this.reason = reason
    this.bot = bot
  }

  static readonly duplicate = new Drop("duplicate")
  static readonly hostname = new Drop("hostname")
  static readonly invalid = new Drop("invalid")
  static readonly late = new Drop("late")
  /** of a property alone: its event is stored */
  static readonly property = new Drop("property")
  static readonly rate = new Drop("rate")
  static readonly spam = new Drop("spam")
}
