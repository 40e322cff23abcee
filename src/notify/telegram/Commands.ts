import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import type { Update, UpdateChat, UpdateEvent } from "#streams/notify/telegram/Updates.ts"
import { makeDropWaiting } from "../subscribers/DropWaiting.ts"
import { Joining } from "../subscribers/Joining.ts"
import { chatAddress, makeMigrate } from "./ChatMoves.ts"
import { replies, type Reply } from "./Replies.ts"
import { TelegramCodes } from "./TelegramCodes.ts"

type Command = Extract<UpdateEvent, { readonly _tag: "Command" }>
type Said = Pick<Reply, "text"> & Partial<Pick<Reply, "settingsOf">>

interface ChatChannel {
  readonly id: string
  readonly subscriber_id: string
  readonly state: string
}

const codeForm = /^[0-9A-Za-z]{32}$/

const help = (at: string): string =>
  [
    "This bot brings notifications of programs. A chat joins by a project’s page, where Telegram is one of the choices.",
    `/stop${at} turns notifications off here, /start${at} turns them on again.`,
    at === "" ? "/settings sends the address of your settings." : "Settings are sent to private chats only."
  ].join("\n")

const spent: Said = { text: "This link was used, or it is too old. Load the page again: it has a new one." }
const unknown: Said = {
  text: "Nothing comes to this chat. To get notifications, open a project’s page and choose Telegram there."
}

/** A channel's chat by its id, as its commands change it. */
const makeChats = Effect.gen(function* () {
  const sql = yield* SqlClient
  const dropWaiting = yield* makeDropWaiting
  const find = (chatId: number) =>
    Effect.map(
      sql<ChatChannel>`SELECT id, subscriber_id, state FROM channels
        WHERE kind = 'telegram' AND address = ${chatAddress(chatId)} FOR UPDATE`,
      ([channel]) => channel
    )
  const turnOff = (id: string, state: "off" | "gone") =>
    Effect.andThen(
      sql`UPDATE channels SET state = ${state} WHERE id = ${id} AND (${state} = 'off' OR state <> 'off')`,
      dropWaiting([id])
    )
  const turnOn = (id: string) =>
    sql`UPDATE channels SET state = 'active', dead_in_a_row = 0,
      after_seq = CASE state WHEN 'off' THEN nextval('job_seqs') ELSE after_seq END WHERE id = ${id}`
  return { find, turnOff, turnOn }
})

/** A chat joins by a code: what the bot says to it, also where it was in vain. */
const makeJoin = Effect.gen(function* () {
  const sql = yield* SqlClient
  const codes = yield* TelegramCodes
  const joining = yield* Joining
  const use = Effect.fnUntraced(function* ({ id, isGroup, title }: UpdateChat, code: string) {
    const order = yield* codes.use(code)
    if (order === undefined) return spent
    const target = { chatId: id, isGroup }
    const address = { kind: "telegram" as const, address: chatAddress(id), name: title, target }
    const { name } = yield* joining.joinChat({ ...order, address })
    return {
      text:
        name === undefined
          ? "Your notifications come here from now on."
          : `Notifications of ${name} come here from now on.`
    }
  })
  return Effect.fnUntraced(function* (chat: UpdateChat, code: string) {
    const used = yield* Effect.result(sql.withTransaction(use(chat, code)))
    if (Result.isSuccess(used)) return used.success
    return used.failure._tag === "SqlError" ? yield* used.failure : { text: `${used.failure.message}.` }
  })
})

/** The effects of commands, and what the bot says to them, within the transaction of their update. */
const makeAnswers = Effect.gen(function* () {
  const chats = yield* makeChats
  const join = yield* makeJoin
  const answers: Readonly<
    Record<string, (chat: UpdateChat, argument: string) => Effect.Effect<Said, SqlError>>
  > = {
    start: Effect.fnUntraced(function* (chat, argument) {
      if (argument !== "") return yield* join(chat, argument)
      const channel = yield* chats.find(chat.id)
      if (channel === undefined) return unknown
      if (channel.state !== "active") yield* chats.turnOn(channel.id)
      return { text: "Notifications come here." }
    }),
    stop: Effect.fnUntraced(function* (chat) {
      const channel = yield* chats.find(chat.id)
      if (channel === undefined) return unknown
      yield* chats.turnOff(channel.id, "off")
      return { text: "Nothing comes here any more. /start turns notifications on again." }
    }),
    settings: Effect.fnUntraced(function* ({ id, isGroup }) {
      if (isGroup) return { text: "Settings are sent to private chats only." }
      const channel = yield* chats.find(id)
      if (channel === undefined) return unknown
      return {
        text: "Your settings. The address is yours alone; the one that was sent before works no more.",
        settingsOf: channel.subscriber_id
      }
    })
  }
  return answers
})

/** In a group others may be meant: there a command has the bot's name behind it, unless it has a code. */
const isOurs = ({ addressee, argument, chat, name }: Command, username: string): boolean =>
  addressee === undefined
    ? !chat.isGroup || (name === "start" && codeForm.test(argument))
    : addressee === username

const makeAnswer = Effect.map(
  makeAnswers,
  (answers) =>
    (command: Command, username: string): Effect.Effect<Said | undefined, SqlError> => {
      const { argument, chat, name } = command
      if (!isOurs(command, username)) return Effect.undefined
      const answer = Object.hasOwn(answers, name) ? answers[name] : undefined
      if (answer !== undefined) return answer(chat, argument)
      return chat.isGroup && name !== "help"
        ? Effect.undefined
        : Effect.succeed({ text: help(chat.isGroup ? `@${username}` : "") })
    }
)

/**
 * Carries out an update: its effect, what the bot says to it, and the place in the updates are written by one transaction. So a
 * process that dies has done all of it or nothing, and one that comes late does nothing. Source: contract/telegram#joining.
 */
export const makeApply = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const jobs = yield* Jobs
  const answer = yield* makeAnswer
  const chats = yield* makeChats
  const migrate = yield* makeMigrate

  /** false: it has had its effect. Ids may begin anew after a week of silence. */
  const advance = (bot: number, { id }: Update) =>
    Effect.map(
      sql`UPDATE telegram_bots SET next_update = ${id + 1}, updated_at = now() WHERE id = ${bot} AND (next_update <= ${id}
        OR updated_at < now() - ${limits.telegramQuietMillis} * interval '1 millisecond') RETURNING 1`,
      ({ length }) => length > 0
    )

  const say = ({ id: chatId, isGroup }: UpdateChat, { settingsOf = null, text }: Said) =>
    jobs.offer(replies, [{ lane: chatAddress(chatId), payload: { chatId, isGroup, settingsOf, text } }])

  const carryOut = Effect.fnUntraced(function* (event: UpdateEvent, username: string) {
    if (event._tag === "Migrated") return yield* migrate(event.from, event.to)
    if (event._tag === "Command") {
      const said = yield* answer(event, username)
      if (said !== undefined) yield* say(event.chat, said)
    }
    if (event._tag !== "Member" || event.isIn) return
    const channel = yield* chats.find(event.chat.id)
    if (channel !== undefined) yield* chats.turnOff(channel.id, "gone")
  })

  /** Answers whether it was new. @param username the bot's, in lower case */
  return (bot: number, username: string, update: Update): Effect.Effect<boolean, SqlError> =>
    sql.withTransaction(
      Effect.tap(advance(bot, update), (isNew) => (isNew ? carryOut(update.event, username) : Effect.void))
    )
})
