import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import {
  addChannel,
  allEnded,
  channelState,
  deliveriesOf,
  impatient
} from "#test/notify/delivery/DeliveryStage.ts"
import { live, subscriber } from "#test/notify/Stage.ts"
import { botMessages } from "./TelegramPeople.ts"
import { channelsOf, makeProject } from "./TelegramStage.ts"

const served = TestServer.own({ limits: { ...impatient, telegramChatPaceMillis: 20 } })

/** A project with one chat, which is open to the bot. */
const makeChat = Effect.fnUntraced(function* (isGroup = false) {
  const made = yield* makeProject
  const { people, project } = made
  const chat = isGroup
    ? (yield* Effect.promise(() => people.press("nothing-yet", { groupTitle: "Ops" }))).chat.id
    : yield* Effect.promise(() => people.openChat())
  // The answer to what was written there.
  const before = (yield* botMessages(people, chat, 1)).length
  const channel = yield* addChannel(yield* subscriber([project]), "telegram", String(chat), {
    chatId: chat,
    isGroup
  })
  const came = (count: number) =>
    Effect.map(botMessages(people, chat, before + count), (messages) => messages.slice(before))
  const ended = (message: string) => Effect.map(allEnded(message, made.stage.key), ([delivery]) => delivery)
  return { ...made, chat, channel, came, ended }
})

layer(served, live)("messages to Telegram", (it) => {
  it.effect(
    "have their heading in bold, buttons for their addresses, a paperclip, and no markup of theirs",
    () =>
      Effect.gen(function* () {
        const { came, people, send } = yield* makeChat()
        const markup = "<b>a</b> *b* _c_ `d` [e](https://evil.example) &amp; </x>"
        yield* send({ title: "A <i>title</i>", message: markup, url: "https://example.com/a?b=c" })
        yield* send({ message: "with a page", body: "more", priority: "low" })
        const [plain, paged] = yield* came(2)
        assert.deepInclude(plain, {
          text: `A <i>title</i>\n${markup}`,
          entities: [{ type: "bold", offset: 0, length: 14 }],
          buttons: [{ text: "example.com", url: "https://example.com/a?b=c" }]
        })
        assert.strictEqual(paged?.buttons[0]?.text, "Show all")
        assert.match(paged?.buttons[0]?.url ?? "", /^http:\/\/127\.0\.0\.1:\d+\/n\/m\/\w{40}$/)
        const { entries } = yield* Effect.promise(() => people.sandbox.inbox({ limit: 100 }))
        const payloads = entries
          .filter(({ kind }) => kind === "telegram")
          .map(({ payload }) => payload as object)
        for (const payload of payloads)
          assert.deepInclude(payload, { link_preview_options: { is_disabled: true } })
        assert.deepInclude(payloads.at(-1), { disable_notification: true })
      })
  )

  it.effect("to a host without a dot are links in the text", () =>
    Effect.gen(function* () {
      const { came, send } = yield* makeChat()
      yield* send({ message: "look", url: "http://localhost:3000/x" })
      const [message] = yield* came(1)
      assert.deepInclude(message, { text: "test\nlook\n\nhttp://localhost:3000/x", buttons: [] })
    })
  )

  it.effect("come once as plain text where Telegram refuses their marks", () =>
    Effect.gen(function* () {
      const { came, chat, ended, people, send } = yield* makeChat()
      const refused = JSON.stringify({
        ok: false,
        error_code: 400,
        description: "Bad Request: can't parse entities: x"
      })
      yield* Effect.promise(() => people.sandbox.order({ target: String(chat), status: 400, body: refused }))
      const { id } = yield* send({ message: "a b", url: "https://example.com/" })
      assert.deepInclude(yield* ended(id), { status: "delivered", attempts: 1 })
      const [message] = yield* came(1)
      assert.deepInclude(message, { text: "test\na b\n\nhttps://example.com/", entities: [], buttons: [] })
      yield* Effect.promise(() =>
        people.sandbox.order({ target: String(chat), status: 400, body: refused, times: 2 })
      )
      const twice = yield* send()
      assert.deepInclude(yield* ended(twice.id), {
        status: "dead",
        lastError: "Telegram answered 400 (can't parse entities)"
      })
    })
  )

  it.effect("wait as long as a 429 asks for", () =>
    Effect.gen(function* () {
      const { chat, people, send, stage } = yield* makeChat()
      for (const retryAfter of ["120", "200000"]) {
        yield* Effect.promise(() => people.sandbox.order({ target: String(chat), status: 429, retryAfter }))
        const { id } = yield* send()
        yield* eventually(
          "it was refused",
          Effect.map(deliveriesOf(id, stage.key), ([delivery]) => delivery?.lastError !== null)
        )
        const sql = yield* SqlClient
        const [lane] = yield* sql<{
          seconds: number
        }>`SELECT extract(epoch FROM rests_until - now())::float8 AS seconds
          FROM job_lanes WHERE queue = 'deliveries' AND lane IN (SELECT id FROM channels WHERE address = ${String(chat)})`
        const expected = Math.min(Number(retryAfter), 86_400)
        assert.isAbove(lane?.seconds ?? 0, expected - 60)
        assert.isAtMost(lane?.seconds ?? 0, expected)
        yield* sql`UPDATE job_lanes SET due_at = now(), rests_until = '-infinity'
          WHERE queue = 'deliveries' AND lane IN (SELECT id FROM channels WHERE address = ${String(chat)})`
        assert.deepInclude((yield* allEnded(id, stage.key))[0], { status: "delivered" })
      }
    })
  )

  it.effect("end the channel where the bot was blocked or the chat is deleted", () =>
    Effect.gen(function* () {
      const description = "Forbidden: bot was blocked by the user"
      const body = JSON.stringify({ ok: false, error_code: 403, description })
      for (const state of ["blocked", "deleted"] as const) {
        const { channel, chat, ended, people, send } = yield* makeChat()
        // Of a real block an update tells as well, and ends the channel before the message where it comes first.
        yield* Effect.promise<unknown>(() =>
          state === "blocked"
            ? people.sandbox.order({ target: String(chat), status: 403, body })
            : people.change(chat, state)
        )
        const { id } = yield* send()
        assert.deepInclude(yield* ended(id), { status: "dropped" })
        assert.strictEqual((yield* channelState(channel.id))?.state, "gone", state)
      }
    })
  )

  it.effect("follow a group to its supergroup by the answer to a message, with what waits", () =>
    Effect.gen(function* () {
      const { channel, chat, ended, people, send } = yield* makeChat(true)
      // The updates that tell of it do not come.
      yield* Effect.promise(() => people.sandbox.order({ target: "getUpdates", status: 500, always: true }))
      const { id: to } = yield* Effect.promise(() => people.supergroup(chat))
      const ids = [yield* send({ message: "one" }), yield* send({ message: "two" })]
      for (const { id } of ids) assert.deepInclude(yield* ended(id), { status: "delivered" })
      assert.deepStrictEqual(
        (yield* botMessages(people, to, 2)).map(({ text }) => text),
        ["test\none", "test\ntwo"]
      )
      assert.deepInclude((yield* channelsOf(to))[0], {
        id: channel.id,
        target: { chatId: to, isGroup: true }
      })
      yield* Effect.promise(() => people.sandbox.clearFaults())
    })
  )

  it.effect("wait without blame for the channel while Telegram refuses the token", () =>
    Effect.gen(function* () {
      const { channel, chat, people, send, stage } = yield* makeChat()
      yield* Effect.promise(() => people.sandbox.order({ target: String(chat), status: 401, always: true }))
      const { id } = yield* send()
      yield* eventually(
        "it was refused",
        Effect.map(deliveriesOf(id, stage.key), ([delivery]) => (delivery?.attempts ?? 0) > 1)
      )
      const [delivery] = yield* deliveriesOf(id, stage.key)
      assert.deepInclude(delivery, { status: "waiting", lastError: "Telegram refuses the bot's token (401)" })
      const sql = yield* SqlClient
      yield* sql`UPDATE jobs SET offered_at = now() - interval '73 hours' WHERE queue = 'deliveries' AND lane = ${channel.id}`
      assert.deepInclude((yield* allEnded(id, stage.key))[0], { status: "dead" })
      assert.deepInclude(yield* channelState(channel.id), { state: "active", dead_in_a_row: 0 })
      yield* Effect.promise(() => people.sandbox.clearFaults())
    })
  )
})
