import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { sandboxBot } from "#src/notify/sandbox/telegram/TelegramChats.ts"
import { TelegramPeople } from "#test/notify/telegram/TelegramPeople.ts"
import { telegram } from "#streams/notify/channels/Telegram.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import type { SentToTelegram } from "#test/notify/channels/ChatReaders.ts"
import { hostileTexts } from "#test/notify/channels/HostileTexts.ts"
import { notice } from "#test/notify/channels/Notices.ts"
import { type SandboxClient, startSandbox } from "./SandboxClient.ts"
import { endOf, manualClock, test } from "./Stage.ts"

const { token } = sandboxBot
const sender = { vapid: new Vapid({ secret: Buffer.alloc(32, 1) }), nowMillis: 0 }

interface Told {
  readonly update_id: number
  readonly message?: { readonly text?: string; readonly migrate_to_chat_id?: number }
  readonly my_chat_member?: { readonly new_chat_member: { readonly status: string } }
}

const updatesOf = ({ result }: { readonly result?: unknown }) => result as ReadonlyArray<Told>

describe("the sandbox's Telegram", () => {
  test("knows its bot by its token alone", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    assert.deepInclude(await people.bot(token, "getMe"), {
      status: 200,
      ok: true,
      result: {
        id: sandboxBot.id,
        is_bot: true,
        first_name: sandboxBot.name,
        username: sandboxBot.username,
        can_join_groups: true,
        can_read_all_group_messages: false
      }
    })
    assert.deepInclude(await people.bot(`${token}x`, "getMe"), { status: 401, description: "Unauthorized" })
    assert.deepInclude(await people.bot(`${token}x`, "sendMessage", { chat_id: 1, text: "a" }), {
      status: 401
    })
    assert.strictEqual((await people.bot(token, "banChatMember")).status, 404)
  })

  test("hands updates out from an offset on, and forgets those before it", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    const chat = await people.openChat()
    await people.write(chat, "/help")
    const [first, second] = updatesOf(await people.bot(token, "getUpdates"))
    assert.deepStrictEqual([first?.message?.text, second?.message?.text], ["hello", "/help"])
    assert.strictEqual(second?.update_id, (first?.update_id ?? 0) + 1)
    const later = await people.bot(token, "getUpdates", { offset: second?.update_id })
    const [one, ...more] = updatesOf(later)
    assert.deepStrictEqual([one, more], [second, []])
    const [limited] = updatesOf(await people.bot(token, "getUpdates", { limit: 1 }))
    assert.deepStrictEqual(limited, second)
    const none = await people.bot(token, "getUpdates", { offset: (second?.update_id ?? 0) + 1 })
    assert.deepStrictEqual(updatesOf(none), [])
  })

  test("keeps a reader waiting until something comes, and ends the wait of the older of two", async ({
    sandbox
  }) => {
    const people = new TelegramPeople(sandbox)
    const [older, newer] = [
      people.bot(token, "getUpdates", { timeout: 30 }),
      new Promise((resolve) => setTimeout(resolve, 50)).then(() =>
        people.bot(token, "getUpdates", { timeout: 30 })
      )
    ]
    const ended = await older
    assert.strictEqual(ended.status, 409)
    assert.match(ended.description ?? "", /^Conflict: terminated by other getUpdates request/)
    await people.openChat()
    assert.lengthOf(updatesOf(await newer), 1)
  })

  test("has the bot hear of commands alone in a group", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    const { chat } = await people.press("c0de", { groupTitle: "Ops" })
    await people.write(chat.id, "just talk")
    await people.write(chat.id, "/stop@other_sandbox_bot")
    const told = updatesOf(await people.bot(token, "getUpdates"))
    assert.deepStrictEqual(
      told.map(({ message, my_chat_member: member }) => message?.text ?? member?.new_chat_member.status),
      ["member", `/start@${sandboxBot.username} c0de`, "/stop@other_sandbox_bot"]
    )
  })

  test("takes messages of 4,096 UTF-16 units without their marks, and refuses marks that do not fit", async ({
    sandbox
  }) => {
    const people = new TelegramPeople(sandbox)
    const texts: ReadonlyArray<readonly [fields: object, answer: RegExp | number]> = [
      [{ text: "x".repeat(4_096) }, 200],
      [{ text: "x".repeat(4_097) }, /message is too long/],
      [{ text: `<b>${"x".repeat(4_096)}</b>`, parse_mode: "HTML" }, 200],
      [{ text: "&amp;".repeat(4_096), parse_mode: "HTML" }, 200],
      [
        { text: "a <x> b", parse_mode: "HTML" },
        /can't parse entities: Unsupported start tag "x" at byte offset 2/
      ],
      [
        { text: "<b>a", parse_mode: "HTML" },
        /can't parse entities: Can't find end tag corresponding to start tag "b"/
      ],
      [{ text: "<b>a</i>", parse_mode: "HTML" }, /can't parse entities: Unexpected end tag at byte offset 4/],
      [{ text: "a < b", parse_mode: "HTML" }, /can't parse entities: Unclosed start tag/],
      [{ text: "a <x> b" }, 200],
      [{ text: " \n " }, /message text is empty/],
      [{}, /message text is empty/],
      [{ text: "a😀", entities: [{ type: "bold", offset: 1, length: 2 }] }, 200],
      [{ text: "a😀", entities: [{ type: "bold", offset: 0, length: 2 }] }, /in a middle of a symbol/],
      [{ text: "ab", entities: [{ type: "bold", offset: 1, length: 2 }] }, /ends after the end of the text/],
      [button("https://example.com/"), 200],
      [button("http://10.0.0.1:8080/n/m/x"), 200],
      [button("http://localhost:8080/"), /button URL 'http:\/\/localhost:8080\/' is invalid: Wrong HTTP URL/],
      [button("ftp://example.com/"), /Unsupported URL protocol/]
    ]
    for (const [fields, answer] of texts) {
      const chat = await people.openChat()
      const sent = await people.bot(token, "sendMessage", { chat_id: chat, ...fields })
      if (typeof answer === "number") assert.strictEqual(sent.status, answer, JSON.stringify(sent))
      else {
        assert.strictEqual(sent.status, 400)
        assert.match(sent.description ?? "", answer)
      }
    }
    const { entries } = await sandbox.inbox({ limit: 3 })
    assert.deepStrictEqual(
      entries.map(({ accepted, kind, problem }) => [kind, accepted, problem]),
      [
        ["telegram", true, null],
        ["telegram", false, "Bad Request: message is too long"],
        ["telegram", true, null]
      ]
    )
  })

  test("says why the bot may not write to a chat", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    const send = async (chat: number) => {
      const { description, parameters, status } = await people.bot(token, "sendMessage", {
        chat_id: chat,
        text: "hi"
      })
      return [status, description, ...(parameters === undefined ? [] : [parameters])]
    }
    const { id: stranger } = await people.person()
    const [blocked, deleted] = [await people.openChat(), await people.openChat()]
    await people.change(blocked, "blocked")
    await people.change(deleted, "deleted")
    const { chat: group } = await people.press("c0de", { groupTitle: "Ops" })
    const { chat: left } = await people.press("c0de", { groupTitle: "Left" })
    await people.change(left.id, "blocked")
    const { id: supergroup } = await people.supergroup(group.id)
    assert.deepStrictEqual(
      [
        await send(1),
        await send(stranger),
        await send(blocked),
        await send(deleted),
        await send(left.id),
        await send(group.id)
      ],
      [
        [400, "Bad Request: chat not found"],
        [403, "Forbidden: bot can't initiate conversation with a user"],
        [403, "Forbidden: bot was blocked by the user"],
        [400, "Bad Request: chat not found"],
        [403, "Forbidden: bot was kicked from the group chat"],
        [400, "Bad Request: group chat was upgraded to a supergroup chat", { migrate_to_chat_id: supergroup }]
      ]
    )
    assert.deepStrictEqual((await send(supergroup))[0], 200)
    const told = updatesOf(await people.bot(token, "getUpdates", { allowed_updates: ["my_chat_member"] }))
    assert.deepStrictEqual(
      told.map(({ my_chat_member: member }) => member?.new_chat_member.status),
      ["kicked", "member", "member", "kicked"]
    )
  })

  const clock = manualClock()
  test(
    "answers 429 above 30 messages a second, a burst in a chat, and 20 a minute in a group",
    async ({ sandbox }) => {
      const people = new TelegramPeople(sandbox)
      const statuses = async (chats: ReadonlyArray<number>) => {
        const answers = []
        for (const chat of chats)
          answers.push(await people.bot(token, "sendMessage", { chat_id: chat, text: "hi" }))
        return answers
      }
      const many = []
      for (let n = 0; n < 31; n++) many.push(await people.openChat())
      const [last, ...others] = (await statuses(many)).toReversed()
      assert.isTrue(others.every(({ status }) => status === 200))
      assert.deepInclude(last, {
        status: 429,
        description: "Too Many Requests: retry after 1",
        parameters: { retry_after: 1 }
      })
      clock.pass(60_000)
      const chat = await people.openChat()
      assert.deepStrictEqual(
        (await statuses([chat, chat, chat, chat])).map(({ status }) => status),
        [200, 200, 200, 429]
      )
      clock.pass(1_000)
      assert.deepStrictEqual(
        (await statuses([chat, chat])).map(({ status }) => status),
        [200, 429]
      )
      const { chat: group } = await people.press("c0de", { groupTitle: "Ops" })
      for (let n = 0; n < 20; n++) {
        clock.pass(1_000)
        assert.deepStrictEqual(
          (await statuses([group.id])).map(({ status }) => status),
          [200]
        )
      }
      clock.pass(1_000)
      assert.deepInclude((await statuses([group.id]))[0], { status: 429, parameters: { retry_after: 40 } })
    },
    clock
  )

  test("takes every hostile text as it is written for it, and shows it as it was", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    const chats: Array<number> = []
    for (const { name, text } of hostileTexts) {
      // Of each chat one message is taken in a second, and 30 of all.
      if (chats.length % 30 === 29) await sandbox.ask("DELETE", "/telegram/chats")
      const chat = await people.openChat()
      chats.push(chat)
      const { body } = telegram.request(
        { chatId: chat, isGroup: false },
        { ...notice, message: text },
        sender
      )
      const parameters = JSON.parse(Buffer.from(body).toString()) as SentToTelegram
      assert.deepInclude(await people.bot(token, "sendMessage", parameters), { status: 200 }, name)
      const [shown] = await people.fromBot(chat)
      assert.strictEqual(shown?.text, parameters.text, name)
    }
  })

  test("goes on after a start with other people and later updates, which servers remember", async ({
    sandbox
  }) => {
    const firstOf = async (one: SandboxClient) => {
      const people = new TelegramPeople(one)
      const chat = await people.openChat()
      const { chat: group } = await people.press("c0de", { groupTitle: "Ops" })
      const [update] = updatesOf(await people.bot(token, "getUpdates"))
      return { chat, group: group.id, update: update?.update_id ?? 0 }
    }
    const before = await firstOf(sandbox)
    const after = await Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(startSandbox({ nowMillis: () => Date.now() + 1_000 }), (later) =>
          Effect.promise(() => firstOf(later))
        )
      )
    )
    assert.isAbove(after.update, before.update)
    assert.isAbove(after.chat, before.chat)
    assert.isBelow(after.group, before.group)
    assert.match(String(after.chat), /^[0-9]{10}$/)
    assert.isBelow(after.update, 2 ** 31)
  })

  test("has faults on order for a chat, and for reading updates", async ({ sandbox }) => {
    const people = new TelegramPeople(sandbox)
    const chat = await people.openChat()
    await sandbox.order({ target: String(chat), status: 429, retryAfter: "17" })
    const [refused, taken] = [
      await people.bot(token, "sendMessage", { chat_id: chat, text: "one" }),
      await people.bot(token, "sendMessage", { chat_id: chat, text: "two" })
    ]
    assert.deepInclude(refused, { status: 429, ok: false, parameters: { retry_after: 17 } })
    assert.strictEqual(taken.status, 200)
    await sandbox.order({ status: 500 })
    assert.strictEqual((await people.bot(token, "getUpdates")).status, 200)
    assert.strictEqual((await people.bot(token, "sendMessage", { chat_id: chat, text: "three" })).status, 500)
    await sandbox.order({ target: "getUpdates", cut: "after" })
    assert.match(String(await endOf(people.bot(token, "getUpdates"))), /fetch failed/)
    assert.strictEqual((await people.bot(token, "getUpdates")).status, 200)
  })
})

const button = (url: string) => ({
  text: "hi",
  reply_markup: { inline_keyboard: [[{ text: "Open", url }]] }
})
