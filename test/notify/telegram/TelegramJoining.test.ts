import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { sandboxBot } from "#src/notify/sandbox/telegram/TelegramChats.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { api, faultOf, live } from "#test/notify/Stage.ts"
import { joined, settingsOf, subscription } from "#test/notify/subscribers/SubscriberStage.ts"
import { botMessages } from "./TelegramPeople.ts"
import { channelsOf, codeFor, codeIn, makeProject } from "./TelegramStage.ts"

const at = `@${sandboxBot.username}`
const spent = "This link was used, or it is too old. Load the page again: it has a new one."

const texts = (messages: ReadonlyArray<{ readonly text: string }>) => messages.map(({ text }) => text)

const becomes = (chat: number, state: string) =>
  eventually(
    `the channel of ${chat} is ${state}`,
    Effect.map(channelsOf(chat), ([channel]) => channel?.state === state)
  )

layer(TestServer.shared, live)("joining by Telegram", (it) => {
  it.effect("a person joins by a code, receives, stops, and turns it on again", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link, people, send } = yield* makeProject
      const { code, id } = yield* codeFor(link)
      assert.match(code, /^[0-9A-Za-z]{32}$/)
      const state = Effect.map(ask("GET", `${api}/telegram-codes/${id}`, { key: "" }), ({ json }) => json)
      assert.deepStrictEqual(yield* state, { id, state: "waiting" })
      const { chat, person } = yield* Effect.promise(() => people.press(code, { name: "Grace" }))
      yield* botMessages(people, chat.id, 1)
      assert.deepStrictEqual(yield* state, { id, state: "used" })
      const [channel] = yield* channelsOf(chat.id)
      assert.deepInclude(channel, {
        state: "active",
        name: "Grace",
        target: { chatId: person.id, isGroup: false }
      })
      assert.strictEqual((yield* send({ title: "Nightly", message: "Done in 3 min" })).recipients, 1)
      const [joinedHere, message] = yield* botMessages(people, chat.id, 2)
      assert.strictEqual(joinedHere?.text, "Notifications of Backups come here from now on.")
      assert.deepInclude(message, {
        text: "Nightly\nDone in 3 min",
        entities: [{ type: "bold", offset: 0, length: 7 }],
        buttons: []
      })
      yield* Effect.promise(() => people.write(chat.id, "/stop"))
      yield* botMessages(people, chat.id, 3)
      yield* becomes(chat.id, "off")
      assert.strictEqual((yield* send()).recipients, 0)
      yield* Effect.promise(() => people.write(chat.id, "/start"))
      yield* becomes(chat.id, "active")
      yield* botMessages(people, chat.id, 4)
      assert.strictEqual((yield* send({ message: "again" })).recipients, 1)
      const all = yield* botMessages(people, chat.id, 5)
      assert.deepStrictEqual(texts(all).slice(2), [
        "Nothing comes here any more. /start turns notifications on again.",
        "Notifications come here.",
        "test\nagain"
      ])
    })
  )

  it.effect("a code works once, for 15 minutes, and while its project's link does", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { link, people, project, stage } = yield* makeProject
      const made = { used: yield* codeFor(link), old: yield* codeFor(link), replaced: yield* codeFor(link) }
      const pressed = Effect.fnUntraced(function* (code: string) {
        const { chat } = yield* Effect.promise(() => people.press(code))
        return { chat: chat.id, texts: texts(yield* botMessages(people, chat.id, 1)) }
      })
      const first = yield* pressed(made.used.code)
      const second = yield* pressed(made.used.code)
      assert.deepStrictEqual(second.texts, [spent])
      assert.lengthOf(yield* channelsOf(second.chat), 0)
      assert.lengthOf(yield* channelsOf(first.chat), 1)
      yield* sql`UPDATE telegram_codes SET expires_at = now() WHERE id = ${made.old.id}`
      assert.deepStrictEqual((yield* pressed(made.old.code)).texts, [spent])
      assert.deepInclude((yield* ask("GET", `${api}/telegram-codes/${made.old.id}`, { key: "" })).json, {
        state: "expired"
      })
      yield* ask("POST", `${api}/projects/${project}/join-link`, { key: stage.key })
      assert.deepStrictEqual((yield* pressed(made.replaced.code)).texts, ["This link leads to no project."])
      const [row] = yield* sql<{ minutes: number }>`SELECT
        extract(epoch FROM expires_at - created_at)::float8 / 60 AS minutes FROM telegram_codes WHERE id = ${made.used.id}`
      assert.strictEqual(row?.minutes, 15)
      const kept =
        yield* sql`SELECT 1 FROM telegram_codes WHERE encode(hash, 'hex') LIKE '%' AND id = ${made.used.id}
        AND position(${made.used.code} IN telegram_codes::text) > 0`
      assert.lengthOf(kept, 0, "the code itself is in no row")
    })
  )

  it.effect("a chat that joins twice is one channel, of one subscriber", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* makeProject, yield* makeProject]
      const { people } = one
      const { chat } = yield* Effect.promise(() => people.press("nothing-yet"))
      for (const { link } of [one, two, one]) {
        const { code } = yield* codeFor(link)
        yield* Effect.promise(() => people.write(chat.id, `/start ${code}`))
      }
      yield* botMessages(people, chat.id, 4)
      assert.lengthOf(yield* channelsOf(chat.id), 1)
      for (const { send } of [one, two]) assert.strictEqual((yield* send()).recipients, 1)
      yield* botMessages(people, chat.id, 6)
    })
  )

  it.effect("a code of one's settings adds a chat to them, and takes it from another subscriber", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link, people } = yield* makeProject
      const { token } = yield* joined(link, { push: subscription() })
      const made = yield* ask("POST", `${api}/subscriber/telegram`, { key: token })
      assert.strictEqual(made.status, 201)
      const { code } = yield* codeFor(link)
      const { chat } = yield* Effect.promise(() => people.press(code))
      yield* botMessages(people, chat.id, 1)
      const [before] = yield* channelsOf(chat.id)
      yield* Effect.promise(() => people.write(chat.id, `/start ${codeIn(textOf(made, "startUrl"))}`))
      yield* botMessages(people, chat.id, 2)
      const [after, ...more] = yield* channelsOf(chat.id)
      assert.lengthOf(more, 0)
      assert.notStrictEqual(after?.subscriber_id, before?.subscriber_id)
      const { channels } = yield* settingsOf(token)
      assert.deepStrictEqual(
        channels.map(({ host, kind, name, state }) => [kind, name, state, host]).slice(1),
        [["telegram", "Ada", "active", "telegram.org"]]
      )
    })
  )

  it.effect(
    "the bot sends the settings to a private chat alone, and leaves the browser's link as it is",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { link, people } = yield* makeProject
        const { token } = yield* joined(link, { push: subscription() })
        const { code } = yield* codeFor(link, token)
        const { chat } = yield* Effect.promise(() => people.press(code))
        yield* Effect.promise(() => people.write(chat.id, "/settings"))
        const said = (yield* botMessages(people, chat.id, 2)).at(-1)?.text ?? ""
        const [, sent = ""] = /\/n\/me#(sbt_\w{40})$/.exec(said) ?? []
        assert.strictEqual((yield* settingsOf(sent)).id, (yield* settingsOf(token)).id)
        yield* Effect.promise(() => people.write(chat.id, "/settings"))
        yield* botMessages(people, chat.id, 3)
        assert.strictEqual((yield* ask("GET", `${api}/subscriber`, { key: sent })).status, 401)
        assert.strictEqual((yield* ask("GET", `${api}/subscriber`, { key: token })).status, 200)
        const group = yield* Effect.promise(() => people.press("nothing-yet", { groupTitle: "Ops" }))
        yield* Effect.promise(() => people.write(group.chat.id, `/settings${at}`))
        const [, answer] = yield* botMessages(people, group.chat.id, 2)
        assert.strictEqual(answer?.text, "Settings are sent to private chats only.")
      })
  )

  it.effect("a group joins, and hears commands that name the bot alone", () =>
    Effect.gen(function* () {
      const { link, people, send } = yield* makeProject
      const { code } = yield* codeFor(link)
      const { chat } = yield* Effect.promise(() => people.press(code, { groupTitle: "Ops" }))
      yield* botMessages(people, chat.id, 1)
      assert.deepInclude((yield* channelsOf(chat.id))[0], {
        state: "active",
        name: "Ops",
        target: { chatId: chat.id, isGroup: true }
      })
      for (const text of ["/stop", "/stop@another_bot", "/help", "/start"])
        yield* Effect.promise(() => people.write(chat.id, text))
      yield* Effect.promise(() => people.write(chat.id, `/help${at}`))
      const [, help] = yield* botMessages(people, chat.id, 2)
      assert.include(help?.text, `/stop${at} turns notifications off here`)
      yield* becomes(chat.id, "active")
      yield* send({ message: "for all" })
      assert.strictEqual((yield* botMessages(people, chat.id, 3)).at(-1)?.text, "test\nfor all")
      yield* Effect.promise(() => people.write(chat.id, `/STOP${at.toUpperCase()}`))
      yield* becomes(chat.id, "off")
    })
  )

  it.effect("a group that becomes a supergroup goes on there, told by the update alone", () =>
    Effect.gen(function* () {
      const { link, people, send } = yield* makeProject
      const { code } = yield* codeFor(link)
      const { chat } = yield* Effect.promise(() => people.press(code, { groupTitle: "Ops" }))
      yield* botMessages(people, chat.id, 1)
      const [before] = yield* channelsOf(chat.id)
      const { id } = yield* Effect.promise(() => people.supergroup(chat.id))
      yield* becomes(id, "active")
      const [after] = yield* channelsOf(id)
      assert.strictEqual(after?.id, before?.id)
      assert.deepInclude(after, { target: { chatId: id, isGroup: true } })
      assert.lengthOf(yield* channelsOf(chat.id), 0)
      yield* send({ message: "moved" })
      assert.deepStrictEqual(texts(yield* botMessages(people, id, 1)), ["test\nmoved"])
    })
  )

  it.effect("a bot that is blocked, or put out of a group, ends the channel", () =>
    Effect.gen(function* () {
      const { link, people, send } = yield* makeProject
      const [one, two] = [yield* codeFor(link), yield* codeFor(link)]
      const { chat } = yield* Effect.promise(() => people.press(one.code))
      const { chat: group } = yield* Effect.promise(() => people.press(two.code, { groupTitle: "Ops" }))
      for (const { id } of [chat, group]) {
        yield* botMessages(people, id, 1)
        yield* Effect.promise(() => people.change(id, "blocked"))
        yield* becomes(id, "gone")
      }
      assert.strictEqual((yield* send()).recipients, 0)
    })
  )

  it.effect("codes are for links that lead somewhere, and subscribers who are there", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link } = yield* makeProject
      const make = (of: string, key: string, json: object) =>
        Effect.map(ask("POST", `${api}/join/${of}/telegram`, { key, json }), faultOf)
      const zone = { timezone: "UTC" }
      assert.deepStrictEqual(yield* make("x".repeat(40), "", zone), [404, "This link leads to no project"])
      assert.deepStrictEqual((yield* make(link, `sbt_${"x".repeat(40)}`, zone))[0], 401)
      assert.deepStrictEqual((yield* make(link, "", { timezone: "Mars/Olympus" }))[0], 400)
      assert.deepStrictEqual((yield* make(link, "", {}))[0], 400)
      assert.deepStrictEqual(
        faultOf(yield* ask("GET", `${api}/telegram-codes/tgc_0000000000000000000000`, { key: "" })),
        [404, "Code not found"]
      )
    })
  )
})
