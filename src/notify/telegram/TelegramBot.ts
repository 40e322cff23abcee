import { Context, Effect, Layer, Predicate, Redacted, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import type { TelegramTarget } from "#streams/notify/channels/Channel.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { NotifySandbox } from "../sandbox/NotifySandbox.ts"
import { sandboxBot } from "../sandbox/telegram/TelegramChats.ts"
import { type BotCall, makeBotClient } from "./BotClient.ts"
import type { TelegramSettings } from "./TelegramSettings.ts"

/** Waits for a turn that comes soon: undefined; or tells when to ask again. */
type TakeTurn = (chat: TelegramTarget) => Effect.Effect<Refusal | undefined, SqlError>

/**
 * Turns of a bot at writing: Telegram has limits over all chats, for one chat and for a group. They are drawn in Postgres, so
 * all processes together keep to them, however many there are and whichever dies. Source: docs/decisions/0043-telegram.md.
 */
const makeTurns = Effect.fnUntraced(function* (botId: number) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const take: TakeTurn = Effect.fnUntraced(function* ({ chatId, isGroup }) {
    const [row] = yield* sql<{
      wait: number | null
      rest: number | null
      is_chat: boolean
    }>`SELECT * FROM telegram_turn(${botId}, ${chatId}, ${isGroup}, ${limits.telegramTurnMillis}, ${limits.telegramPaceMillis},
      ${limits.telegramChatPaceMillis}, ${limits.telegramGroupPerMinute})`
    if (typeof row?.rest === "number") return { restMillis: Math.ceil(row.rest), isBusy: !row.is_chat }
    if (typeof row?.wait === "number" && row.wait > 0) yield* Effect.sleep(row.wait)
    return undefined
  })
  return take
})

export interface Bot {
  /** the part of its token before the colon */
  readonly id: number
  readonly call: BotCall
  /** has to be taken before a message, by whatever makes it */
  readonly turn: TakeTurn
  /** Its username in lower case, asked for once. Fails while Telegram does not say it. */
  readonly username: Effect.Effect<string, ServiceUnavailable>
  /** an address that has Telegram open a chat with the bot, or a choice of groups, and hand it the code */
  readonly link: (username: string, parameter: "start" | "startgroup", code: string) => string
}

/** The JSON of an answer; undefined: it is none. */
export const jsonOf = (body: Uint8Array | undefined): unknown => {
  try {
    return JSON.parse(Buffer.from(body ?? new Uint8Array()).toString())
  } catch {
    // A proxy on the way may answer in words of its own.
    return undefined
  }
}

const usernameIn = (body: Uint8Array | undefined): string | undefined => {
  const json = jsonOf(body)
  const result = Predicate.isReadonlyObject(json) ? json["result"] : undefined
  const username = Predicate.isReadonlyObject(result) ? result["username"] : undefined
  return typeof username === "string" && /^\w{1,64}$/u.test(username) ? username.toLowerCase() : undefined
}

/**
 * The bot of `TELEGRAM_BOT_TOKEN`, or the sandbox's where that is unset. Source: contract/telegram#messages.
 */
export class TelegramBot extends Context.Service<
  TelegramBot,
  {
    /** undefined: there is no token, and no sandbox */
    readonly bot: Bot | undefined
  }
>()("signalbox/notify/TelegramBot") {
  static readonly layer = Layer.effect(
    TelegramBot,
    Effect.gen(function* () {
      const { limits, telegram } = yield* AppConfig
      const { origin } = yield* NotifySandbox
      const settings = settingsOf(telegram, origin)
      if (settings === undefined) return TelegramBot.of({ bot: undefined })
      const { apiUrl } = settings
      const token = Redacted.value(settings.token)
      const call = yield* makeBotClient({ apiUrl, token }, limits)
      const one = (yield* Semaphore.make(1)).withPermits(1)
      let known: string | undefined
      const ask = Effect.suspend(() =>
        known === undefined
          ? Effect.matchEffect(call("getMe", {}, limits.telegramAnswerMillis), {
              onFailure: () => Effect.fail(silent()),
              onSuccess: ({ body }) => {
                known = usernameIn(body)
                return known === undefined ? Effect.fail(silent()) : Effect.succeed(known)
              }
            })
          : Effect.succeed(known)
      )
      const site = telegram === undefined ? `${apiUrl}/t.me` : "https://t.me"
      const id = Number(token.slice(0, token.indexOf(":")))
      const bot: Bot = {
        id,
        call,
        turn: yield* makeTurns(id),
        username: one(ask),
        link: (username, parameter, code) => `${site}/${username}?${parameter}=${code}`
      }
      return TelegramBot.of({ bot })
    })
  )
}

/** The operator's, or the sandbox's. */
const settingsOf = (
  telegram: TelegramSettings | undefined,
  origin: string | undefined
): TelegramSettings | undefined =>
  telegram ?? (origin === undefined ? undefined : { apiUrl: origin, token: Redacted.make(sandboxBot.token) })

const silent = () => ServiceUnavailable.of("Telegram does not answer; try again")
