import { Effect, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import {
  again,
  backoffMillis,
  busy,
  done,
  type Job,
  type Outcome,
  queue,
  withdrawn
} from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { serverUrl } from "#src/ServerUrl.ts"
import { verdictOf, verdictOfFault } from "#streams/notify/channels/Verdict.ts"
import { settingsPath } from "../subscribers/SettingsRoutes.ts"
import { newToken } from "../subscribers/SubscriberTokens.ts"
import { type Bot, TelegramBot } from "./TelegramBot.ts"

const Reply = Schema.Struct({
  chatId: Schema.Number,
  isGroup: Schema.Boolean,
  text: Schema.String,
  /** the subscriber whose settings it leads to: of a private chat alone. The link is made when it is sent, and in no row. */
  settingsOf: Schema.NullOr(Schema.String)
})
export type Reply = typeof Reply.Type

/** Answers of the bot to commands: offered with the command's effect, in a lane a chat. */
export const replies = queue("telegram-replies", Reply, { attemptsMax: 10 })

const makeHandle = Effect.fnUntraced(function* (bot: Bot) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const url = yield* serverUrl

  /** A token beside the one that the subscriber's browser has; the one that was sent before is dead. */
  const textOf = Effect.fnUntraced(function* ({ isGroup, settingsOf, text }: Reply) {
    if (settingsOf === null || isGroup) return text
    const token = newToken()
    const rows =
      yield* sql`UPDATE subscribers SET bot_token_hash = ${hashOf(token)} WHERE id = ${settingsOf} RETURNING 1`
    return rows.length === 0 ? undefined : `${text}\n${url}${settingsPath}#${token}`
  })

  return Effect.fnUntraced(function* ({ attempt, payload }: Job<Reply>) {
    const refusal = yield* bot.turn(payload)
    if (refusal !== undefined) return (refusal.isBusy ? busy : withdrawn)(refusal.restMillis)
    const text = yield* textOf(payload)
    // They have left meanwhile.
    if (text === undefined) return done()
    const message = { chat_id: payload.chatId, text, link_preview_options: { is_disabled: true } }
    const answer = yield* Effect.result(bot.call("sendMessage", message, limits.telegramAnswerMillis))
    const verdict = Result.isFailure(answer)
      ? verdictOfFault(answer.failure)
      : verdictOf("telegram", answer.success, { nowMillis: 0 })
    const outcome: Outcome =
      verdict._tag === "Again"
        ? again(verdict.error, verdict.afterMillis ?? backoffMillis(limits, attempt))
        : done(undefined, verdict._tag === "Delivered" ? verdict.afterMillis : 0)
    return outcome
  })
})

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { bot } = yield* TelegramBot
    if (bot === undefined) return
    const jobs = yield* Jobs
    yield* jobs.work(replies, {
      concurrency: limits.telegramReplies,
      attemptMillis: limits.deliveryAttemptMillis,
      handle: yield* makeHandle(bot)
    })
  })
)
