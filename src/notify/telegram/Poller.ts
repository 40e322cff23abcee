import { Cause, Deferred, Effect, Exit, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { ChannelAnswer } from "#streams/notify/channels/Channel.ts"
import { later, type Outcome, queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { type Update, updatesOf } from "#streams/notify/telegram/Updates.ts"
import { makeApply } from "./Commands.ts"
import { type Bot, jsonOf, TelegramBot } from "./TelegramBot.ts"

/** One job that never ends, in the lane of its bot: the process that has the lane on lease reads the bot's updates. */
const polls = queue("telegram-poll", Schema.Struct({}), { attemptsMax: Infinity })

const faultOf = ({ status }: ChannelAnswer): string => {
  if (status === 409) return "another program reads the bot's updates, or its webhook is set"
  return status === 401 || status === 404
    ? `Telegram refuses the bot's token (${status})`
    : `Telegram answered ${status} to a request for updates`
}

/** The bot's row: its place in the updates, and how Telegram answers. */
const makeRow = Effect.fnUntraced(function* (botId: number) {
  const sql = yield* SqlClient
  return {
    place: Effect.gen(function* () {
      yield* sql`INSERT INTO telegram_bots (id) VALUES (${botId}) ON CONFLICT DO NOTHING`
      const [row] = yield* sql<{
        next: number
      }>`SELECT next_update::float8 AS next FROM telegram_bots WHERE id = ${botId}`
      return row?.next ?? 0
    }),
    /** A request that did not wait meets no other reader. */
    answered: (hasWaited: boolean) =>
      sql`UPDATE telegram_bots SET answered_at = now(), fault = CASE WHEN ${hasWaited} OR conflicts = 0 THEN NULL ELSE fault END,
        conflicts = CASE WHEN ${hasWaited} THEN 0 ELSE conflicts END WHERE id = ${botId}`,
    failed: (fault: string, isConflict: boolean) =>
      sql`UPDATE telegram_bots SET fault = ${fault}, conflicts = CASE WHEN ${isConflict} THEN conflicts + 1 ELSE conflicts END
        WHERE id = ${botId}`
  }
})

const makePoll = Effect.fnUntraced(function* (bot: Bot) {
  const { limits } = yield* AppConfig
  const row = yield* makeRow(bot.id)
  const apply = yield* makeApply
  let isFresh = false

  /** One that this program cannot carry out must not hold up those behind it. */
  const applied = Effect.fnUntraced(function* (username: string, update: Update) {
    const exit = yield* Effect.exit(apply(bot.id, username, update))
    if (Exit.isSuccess(exit)) return exit.value
    if (!Cause.hasDies(exit.cause)) return yield* exit
    yield* Effect.logError(`the update ${update.id} of Telegram is passed over`, exit.cause)
    return yield* apply(bot.id, username, { id: update.id, event: { _tag: "Other" } })
  })

  const failed = Effect.fnUntraced(function* (fault: string, isConflict: boolean) {
    isFresh = false
    yield* row.failed(fault, isConflict)
    return later(limits.telegramPauseMillis * (0.8 + 0.4 * Math.random()))
  })

  return Effect.gen(function* () {
    const offset = yield* row.place
    // After a pause Telegram is asked whether it answers at all, without a wait for updates.
    const waitMillis = isFresh ? limits.telegramPollMillis : 0
    const asked = {
      offset,
      limit: limits.telegramUpdates,
      timeout: Math.floor(waitMillis / 1_000),
      allowed_updates: ["message", "my_chat_member"]
    }
    const answer = yield* Effect.result(
      bot.call("getUpdates", asked, waitMillis + limits.telegramAnswerMillis)
    )
    if (Result.isFailure(answer)) return yield* failed(answer.failure.message, false)
    const { status } = answer.success
    const updates = status === 200 ? updatesOf(jsonOf(answer.success.body)) : undefined
    if (updates === undefined) return yield* failed(faultOf(answer.success), status === 409)
    // Commands in groups name the bot.
    const name = updates.length === 0 ? Result.succeed("") : yield* Effect.result(bot.username)
    if (Result.isFailure(name)) return yield* failed("Telegram does not tell the bot's name", false)
    let news = 0
    for (const update of updates) if (yield* applied(name.success, update)) news++
    yield* row.answered(waitMillis > 0)
    isFresh = true
    // Those that another process has carried out meanwhile are confirmed by the next request, which has another offset.
    return later(updates.length > 0 && news === 0 ? limits.telegramPauseMillis : 0)
  }).pipe(
    Effect.catch((error: SqlError) =>
      Effect.as(
        Effect.logDebug("Updates of Telegram wait for Postgres", error.message),
        later(limits.telegramPauseMillis)
      )
    )
  )
})

/**
 * Reads the updates of the bot, in one of all processes: another one goes on within the time of a lease when that one dies.
 * Source: docs/decisions/0043-telegram.md.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { bot } = yield* TelegramBot
    if (bot === undefined) return
    const jobs = yield* Jobs
    const poll = yield* makePoll(bot)
    const stopped = yield* Deferred.make<Outcome>()
    yield* jobs.offer(polls, [{ lane: String(bot.id), id: String(bot.id), payload: {} }])
    yield* jobs.work(polls, {
      concurrency: 1,
      attemptMillis: limits.telegramPollMillis + 6 * limits.telegramAnswerMillis,
      // A process without a bot has another lane, or none.
      handle: ({ lane }) =>
        lane === String(bot.id)
          ? Effect.raceFirst(poll, Deferred.await(stopped))
          : Effect.succeed(later(limits.telegramSilentMillis))
    })
    // Before the jobs wait for attempts under way: a request for updates may wait for longer.
    yield* Effect.addFinalizer(() => Deferred.succeed(stopped, later(0)))
  })
)

/** Why the bot hears nothing; undefined: it does. */
export const silenceOf = (bot: Bot) =>
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const sql = yield* SqlClient
    const [row] = yield* sql<{ silent: number; conflicts: number; fault: string | null }>`
      SELECT extract(epoch FROM now() - answered_at)::float8 * 1000 AS silent, conflicts, fault
      FROM telegram_bots WHERE id = ${bot.id}`
    if (row === undefined) return undefined
    const { conflicts, fault, silent } = row
    if (silent <= limits.telegramSilentMillis && conflicts < 2) return undefined
    return `Telegram is silent for ${Math.round(silent / 1_000)} s${fault === null ? "" : `: ${fault}`}`
  })
