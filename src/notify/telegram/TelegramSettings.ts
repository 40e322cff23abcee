import { Redacted } from "effect"
import type { EnvironmentReader } from "#src/EnvironmentReader.ts"

/** The operator's bot: `TELEGRAM_BOT_TOKEN`, and `TELEGRAM_API_URL`, at which its Bot API is. */
export interface TelegramSettings {
  readonly token: Redacted.Redacted
  /** without a slash at the end */
  readonly apiUrl: string
}

/** undefined: there is no token */
export const telegramSettingsFrom = (read: EnvironmentReader): TelegramSettings | undefined => {
  const token = read.matching(
    "TELEGRAM_BOT_TOKEN",
    /^\d{1,15}:[\w-]{20,100}$/,
    "takes a bot's token like 123456789:AA…, of @BotFather"
  )
  const apiUrl = read.url("TELEGRAM_API_URL", ["http:", "https:"])?.replace(/\/+$/, "")
  return token === undefined
    ? undefined
    : {
        token: Redacted.make(token, { label: "TELEGRAM_BOT_TOKEN" }),
        apiUrl: apiUrl ?? "https://api.telegram.org"
      }
}
