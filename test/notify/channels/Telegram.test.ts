import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ChannelAnswer, Notice } from "#streams/notify/channels/Channel.ts"
import { telegram } from "#streams/notify/channels/Telegram.ts"
import { verdictOf } from "#streams/notify/channels/Verdict.ts"
import { updatesOf } from "#streams/notify/telegram/Updates.ts"
import { readText } from "#src/notify/sandbox/telegram/TelegramText.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import type { SentToTelegram } from "./ChatReaders.ts"
import { anyNotice, notice } from "./Notices.ts"

const vapid = new Vapid({ secret: Buffer.alloc(32, 1) })
const target = { chatId: -1_002_000_000_001, isGroup: true }

const sentOf = (of: Partial<Notice>, adjustments = {}): SentToTelegram =>
  JSON.parse(
    Buffer.from(
      telegram.request(target, { ...notice, ...of }, { vapid, nowMillis: 0, adjustments }).body
    ).toString()
  )

const buttonsOf = ({ reply_markup: markup }: SentToTelegram) =>
  (markup?.inline_keyboard ?? []).flat().map(({ url }) => url)

const answer = (status: number, json: object = {}): ChannelAnswer => ({
  status,
  header: () => undefined,
  body: Buffer.from(JSON.stringify(json))
})

const verdict = (status: number, description: string, parameters?: object, adjustments = {}) =>
  verdictOf("telegram", answer(status, { ok: false, error_code: status, description, parameters }), {
    adjustments,
    nowMillis: 0
  })

describe("a message to Telegram", () => {
  it("is taken by Telegram at every limit of length and markup, marked or plain", () => {
    fc.assert(
      fc.property(anyNotice, fc.boolean(), (any, isPlain) => {
        const { entities, text } = sentOf(any, { isPlain })
        assert.isAtMost(text.length, 4_096)
        const read = readText(text, undefined, entities)
        assert.deepStrictEqual(
          read.entities.map(({ type }) => type),
          isPlain ? [] : ["bold"]
        )
        assert.isTrue(text.isWellFormed())
      }),
      { numRuns: 200 }
    )
  })

  it("is cut at 4,096 UTF-16 units between graphemes with …, and has its page as a button then", () => {
    const family = "\u{1F469}\u200D\u{1F469}\u200D\u{1F467}\u200D\u{1F466}"
    const fits = sentOf({ app: "a", message: "x".repeat(4_000) })
    assert.strictEqual(fits.text, `a\n${"x".repeat(4_000)}`)
    assert.deepStrictEqual(buttonsOf(fits), [])
    const long = sentOf({ title: "t".repeat(200), message: family.repeat(360) })
    assert.isAtMost(long.text.length, 4_096)
    assert.isTrue(long.text.endsWith(`${family}…`))
    assert.deepStrictEqual(buttonsOf(long), [notice.pageUrl])
  })

  it("has its url as the first button and its page as the next, and no button to a host without a dot", () => {
    const url = "https://example.com/a"
    assert.deepStrictEqual(buttonsOf(sentOf({ url, hasView: true })), [url, notice.pageUrl])
    const local = sentOf({ url: "http://localhost/a", hasView: true, pageUrl: "http://signalbox:8080/n/m/x" })
    assert.deepStrictEqual(buttonsOf(local), [])
    assert.isTrue(local.text.endsWith("\n\nhttp://localhost/a\nhttp://signalbox:8080/n/m/x"))
  })

  it("calls nobody by @name, and leaves addresses as they are", () => {
    const { text } = sentOf({ message: "@durov (@everyone) a@example.com https://example.com/@ada @ada1!" })
    assert.strictEqual(
      text,
      "backup\n@\u200Bdurov (@\u200Beveryone) a@example.com https://example.com/@ada @\u200Bada1!"
    )
  })

  it("has no command that a press would send to a bot, and leaves paths as they are", () => {
    const { text } = sentOf({
      message: "/stop, (/Start) /ban@other_bot /settings/x /usr/help a/stop /stopped"
    })
    assert.strictEqual(
      text,
      "backup\n/\u200Bstop, (/\u200BStart) /\u200Bban@other_bot /settings/x /usr/help a/stop /stopped"
    )
  })

  it("makes no sound where its priority is low, and never tells the settings", () => {
    assert.isTrue(sentOf({ priority: "low" }).disable_notification)
    assert.isUndefined(sentOf({ priority: "high" }).disable_notification)
    assert.notInclude(JSON.stringify(sentOf({ hasView: true })), "sbt_")
  })
})

describe("an answer of Telegram's", () => {
  it.each([
    [
      403,
      "Forbidden: bot was blocked by the user",
      "Gone",
      "Telegram answered 403 (bot was blocked by the user)"
    ],
    [
      403,
      "Forbidden: bot was kicked from the supergroup chat",
      "Gone",
      "Telegram answered 403 (bot was kicked)"
    ],
    [403, "Forbidden: words of its own", "Gone", "Telegram answered 403"],
    [400, "Bad Request: chat not found", "Gone", "Telegram answered 400 (chat not found)"],
    [400, "Bad Request: can't parse entities: x", "Plain", "Telegram answered 400 (can't parse entities)"],
    [
      400,
      "Bad Request: inline keyboard button URL 'http://secret' is invalid: Wrong HTTP URL",
      "Plain",
      "Telegram answered 400 (inline keyboard button)"
    ],
    [400, "Bad Request: BUTTON_URL_INVALID", "Plain", "Telegram answered 400"],
    [
      400,
      "Bad Request: not enough rights to send text messages to the chat",
      "Dead",
      "Telegram answered 400 (not enough rights)"
    ],
    [500, "Internal Server Error", "Again", "Telegram answered 500"],
    [401, "Unauthorized", "Again", "Telegram refuses the bot's token (401)"],
    [404, "Not Found", "Again", "Telegram refuses the bot's token (404)"]
  ] as const)("%d %s is %s", (status, description, tag, error) => {
    assert.deepInclude(verdict(status, description), { _tag: tag, error })
  })

  it("asks for a pause by retry_after, of 24 hours at most", () => {
    const asked = (seconds: number) =>
      verdict(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds })
    assert.deepInclude(asked(35), { _tag: "Again", afterMillis: 35_000 })
    assert.deepInclude(asked(1_000_000), { _tag: "Again", afterMillis: 86_400_000 })
    assert.notProperty(verdict(429, "Too Many Requests"), "afterMillis")
  })

  it("names the supergroup that a group has become, and is dead where plain text is refused, too", () => {
    const moved = verdict(400, "Bad Request: group chat was upgraded to a supergroup chat", {
      migrate_to_chat_id: -1_002_000_000_002
    })
    assert.deepInclude(moved, { _tag: "Moved", chatId: -1_002_000_000_002 })
    assert.deepInclude(verdict(400, "Bad Request: can't parse entities", undefined, { isPlain: true }), {
      _tag: "Dead"
    })
    assert.deepInclude(verdictOf("telegram", answer(200), { nowMillis: 0 }), {
      _tag: "Delivered",
      afterMillis: 1_000
    })
  })
})

describe("updates of Telegram", () => {
  it("are read whatever they hold, in their order", () => {
    fc.assert(
      fc.property(fc.array(fc.json()), (texts) => {
        const result = texts.map((text, n) => ({ update_id: n, message: JSON.parse(text) }))
        const ids = updatesOf({ ok: true, result })?.map(({ id }) => id)
        assert.deepStrictEqual(
          ids,
          result.map(({ update_id: id }) => id)
        )
      })
    )
    for (const json of [undefined, null, 1, [], {}, { ok: false, result: [] }, { ok: true, result: {} }])
      assert.isUndefined(updatesOf(json))
  })

  it("are commands, migrations and memberships, of chats of the kinds that can join", () => {
    const eventOf = (update: object) =>
      updatesOf({ ok: true, result: [{ update_id: 1, ...update }] })?.[0]?.event
    const chat = { id: -5, type: "group", title: "Ops\u0000\n\u202Ex" }
    const told = { id: -5, isGroup: true, title: "Ops␀ x" }
    const message = (fields: object) => eventOf({ message: { message_id: 1, chat, ...fields } })
    assert.deepStrictEqual(message({ text: "/Start@My_Bot  c0de\n" }), {
      _tag: "Command",
      chat: told,
      name: "start",
      addressee: "my_bot",
      argument: "c0de"
    })
    assert.deepInclude(message({ text: "hello /start" }), { name: "", argument: "" })
    assert.deepStrictEqual(message({ text: "/start", from: { id: 1, is_bot: true } }), { _tag: "Other" })
    assert.deepStrictEqual(message({ migrate_to_chat_id: -9 }), { _tag: "Migrated", from: -5, to: -9 })
    assert.deepStrictEqual(message({ migrate_from_chat_id: -9 }), { _tag: "Migrated", from: -9, to: -5 })
    assert.deepStrictEqual(eventOf({ message: { text: "/start", chat: { id: 1, type: "channel" } } }), {
      _tag: "Other"
    })
    const member = (status: string, more = {}) =>
      eventOf({ my_chat_member: { chat, new_chat_member: { status, ...more } } })
    for (const [status, isIn] of [
      ["member", true],
      ["kicked", false],
      ["left", false]
    ] as const)
      assert.deepStrictEqual(member(status), { _tag: "Member", chat: told, isIn })
    assert.deepInclude(member("restricted", { is_member: true }), { isIn: true })
  })
})
