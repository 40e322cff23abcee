import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Entry } from "#src/notify/sandbox/Inbox.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { uploaded } from "#test/notify/attachments/AttachmentStage.ts"
import {
  readBlocks,
  readDiscord,
  readTelegram,
  type SentToTelegram
} from "#test/notify/channels/ChatReaders.ts"
import { addChannel, deliveriesOf } from "#test/notify/delivery/DeliveryStage.ts"
import { live, subscriber } from "#test/notify/Stage.ts"
import { botMessages } from "#test/notify/telegram/TelegramPeople.ts"
import { channelsOf, codeFor, makeProject } from "#test/notify/telegram/TelegramStage.ts"
import { makeDue, writeSettings } from "./DigestStage.ts"

const hostile = "<!channel> @everyone [bank](https://evil.example) /stop"

/** As people read it there. */
const readOf = ({ kind, payload }: Entry) => {
  const body = payload as SentToTelegram & { content: string; blocks: Parameters<typeof readBlocks>[0] }
  if (kind === "telegram") return readTelegram(body)
  return kind === "slack" ? readBlocks(body.blocks) : readDiscord(body.content)
}

layer(TestServer.shared, live)("a digest in a chat", (it) => {
  for (const kind of ["slack", "discord", "telegram"] as const)
    it.effect(`of ${kind} is one message with a line for each of the first five, escaped, and its page`, () =>
      Effect.gen(function* () {
        const { key, people, project, send } = yield* makeProject
        const { sandbox } = people
        const person = yield* subscriber([project])
        yield* writeSettings(person, { delivery: "daily" })
        const { at, id } =
          kind === "telegram"
            ? yield* Effect.map(
                Effect.promise(() => people.openChat()),
                (chat) => ({ at: String(chat), id: String(chat) })
              )
            : yield* Effect.map(
                Effect.promise(() => sandbox.chat(kind)),
                (chat) => ({ at: chat.url, id: chat.id })
              )
        if (kind === "telegram") {
          yield* botMessages(people, Number(id), 1)
          yield* addChannel(person, kind, at, { chatId: Number(id), isGroup: false })
        } else yield* addChannel(person, kind, at, { url: at })
        const before = (yield* Effect.promise(() => sandbox.inbox({ channel: id }))).next
        const file = yield* uploaded(key)
        yield* send({ app: "ci", message: `${hostile}\nnext line`, attachments: [file.id] })
        for (let n = 0; n < 5; n++) yield* send({ app: "ci", message: `part ${n}` })
        yield* makeDue(person)
        const [entry, ...more] = yield* Effect.promise(() =>
          sandbox.accepted(1, { channel: id, after: before })
        )
        assert.lengthOf(more, 0)
        if (entry === undefined) return assert.fail("nothing came")
        const { links, mentions, shown, styles } = readOf(entry)
        assert.deepStrictEqual(mentions, [])
        assert.deepStrictEqual(styles, ["bold: 6 messages"])
        assert.strictEqual(
          shown.trim().replace(/\n+Show all$/u, ""),
          [
            "6 messages",
            `Backups · ci: 📎 ${hostile} next line`,
            ...[0, 1, 2, 3].map((n) => `Backups · ci: part ${n}`),
            "and 1 more"
          ].join("\n")
        )
        assert.lengthOf(links, 1)
        assert.match(links[0]?.[1] ?? "", /\/n\/d\/[0-9A-Za-z]{40}$/)
        assert.notInclude(JSON.stringify(entry.payload), "/n/me")
      })
    )

  it.effect("is none of what was held when the chat said /stop, also where it says /start again", () =>
    Effect.gen(function* () {
      const { link, people, send, stage } = yield* makeProject
      const { code } = yield* codeFor(link)
      const { chat } = yield* Effect.promise(() => people.press(code))
      yield* botMessages(people, chat.id, 1)
      const [channel] = yield* channelsOf(chat.id)
      const person = channel?.subscriber_id ?? ""
      yield* writeSettings(person, { delivery: "daily" })
      const [stopped] = [yield* send({ message: "one" }), yield* send({ message: "two" })]
      yield* Effect.promise(() => people.write(chat.id, "/stop"))
      yield* eventually(
        "it is dropped",
        Effect.map(deliveriesOf(stopped.id, stage.key), ([delivery]) => delivery?.status === "dropped")
      )
      yield* Effect.promise(() => people.write(chat.id, "/start"))
      yield* botMessages(people, chat.id, 3)
      yield* send({ message: "three" })
      yield* send({ message: "four" })
      yield* makeDue(person)
      const { text } = (yield* botMessages(people, chat.id, 4))[3] ?? { text: "" }
      assert.strictEqual(text.split("\n")[0], "2 messages")
      assert.include(text, "test: three\nBackups · test: four")
    })
  )
})
