import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { sandboxBot } from "#src/notify/sandbox/telegram/TelegramChats.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { impatient } from "#test/notify/delivery/DeliveryStage.ts"
import { live } from "#test/notify/Stage.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { allConfirmed, botMessages, TelegramPeople } from "./TelegramPeople.ts"

const served = TestServer.own({
  limits: {
    ...impatient,
    deliveriesLateMillis: 60_000,
    deliveriesCountedEveryMillis: 50,
    telegramChatPaceMillis: 1,
    telegramPollMillis: 1_000,
    telegramPauseMillis: 50,
    telegramSilentMillis: 3_000
  }
})

const notifyState = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/readyz"), ({ json }) => {
    const { components } = json as {
      readonly components: Readonly<Record<string, { readonly status: string; readonly detail?: string }>>
    }
    const { detail = "", status } = components["notify"] ?? { status: "missing" }
    return `${status} ${detail}`
  })
)

const becomes = (pattern: RegExp) =>
  eventually(
    `notify on /readyz is ${String(pattern)}`,
    Effect.map(notifyState, (state) => pattern.test(state))
  )

layer(served, live)("the reader of Telegram's updates", (it) => {
  it.effect("makes notify degraded on /readyz while Telegram is silent, and well again after it", () =>
    Effect.gen(function* () {
      const people = new TelegramPeople(yield* sandboxOfServer)
      yield* becomes(/^up/)
      for (const [status, words] of [
        [401, /degraded Telegram is silent for \d+ s: Telegram refuses the bot's token \(401\)/],
        [502, /degraded Telegram is silent for \d+ s: Telegram answered 502 to a request for updates/]
      ] as const) {
        yield* Effect.promise(() => people.sandbox.order({ target: "getUpdates", status, always: true }))
        yield* becomes(words)
        yield* Effect.promise(() => people.sandbox.clearFaults())
        yield* becomes(/^up/)
      }
    })
  )

  it.effect("says so where another program reads the same bot's updates, and goes on when that ends", () =>
    Effect.gen(function* () {
      const people = new TelegramPeople(yield* sandboxOfServer)
      const over = new AbortController()
      const other = (async () => {
        while (!over.signal.aborted)
          await people.bot(sandboxBot.token, "getUpdates", { timeout: 1, offset: 1 })
      })()
      yield* becomes(/^degraded .*another program reads the bot's updates/)
      over.abort()
      yield* Effect.promise(() => other)
      yield* becomes(/^up/)
      const chat = yield* Effect.promise(() => people.openChat())
      yield* botMessages(people, chat, 1)
    })
  )

  it.effect("repeats nothing that has had its effect, whatever Telegram hands out again", () =>
    Effect.gen(function* () {
      const people = new TelegramPeople(yield* sandboxOfServer)
      const sql = yield* SqlClient
      const chat = yield* Effect.promise(() => people.openChat())
      yield* botMessages(people, chat, 1)
      // The next two have had their effect by another process, which died before Telegram knew of it.
      yield* sql`UPDATE telegram_bots SET next_update = next_update + 2`
      for (const text of ["/help", "/stop", "/settings"])
        yield* Effect.promise(() => people.write(chat, text))
      yield* botMessages(people, chat, 2)
      yield* allConfirmed(people)
      yield* eventually(
        "all replies were sent",
        Effect.map(sql`SELECT 1 FROM jobs WHERE queue = 'telegram-replies'`, ({ length }) => length === 0)
      )
      assert.lengthOf(yield* Effect.promise(() => people.fromBot(chat)), 2)
    })
  )

  it.effect("takes lower ids where they began anew after a week of silence", () =>
    Effect.gen(function* () {
      const people = new TelegramPeople(yield* sandboxOfServer)
      const sql = yield* SqlClient
      const chat = yield* Effect.promise(() => people.openChat())
      yield* botMessages(people, chat, 1)
      // As it is long before a week is over.
      yield* allConfirmed(people)
      yield* Effect.promise(() => people.sandbox.ask("POST", "/telegram/renumber"))
      yield* sql`UPDATE telegram_bots SET updated_at = now() - interval '7 days'`
      yield* Effect.promise(() => people.write(chat, "/help"))
      yield* botMessages(people, chat, 2)
      const [row] = yield* sql<{ next: number }>`SELECT next_update::float8 AS next FROM telegram_bots`
      assert.isBelow(row?.next ?? 0, 100_000)
    })
  )
})
