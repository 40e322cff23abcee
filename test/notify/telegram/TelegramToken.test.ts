import { afterAll, assert, layer } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import * as ChannelsSandbox from "#src/notify/sandbox/ChannelsSandbox.ts"
import { sandboxBot } from "#src/notify/sandbox/telegram/TelegramChats.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"
import { api, faultOf, live, makeStage, sent } from "#test/notify/Stage.ts"
import { linkOf } from "#test/notify/subscribers/SubscriberStage.ts"
import { botMessages, TelegramPeople } from "./TelegramPeople.ts"
import { codeIn } from "./TelegramStage.ts"

const scope = Scope.makeUnsafe()
/** Telegram, at an address of the operator's, which no stranger may name. */
const { origin } = await Effect.runPromise(Scope.provide(ChannelsSandbox.start(), scope))
const people = new TelegramPeople(new SandboxClient(origin))

const { token, username } = sandboxBot
const settings = { token: Redacted.make<string>(token), apiUrl: origin }

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

layer(TestServer.own({ telegram: settings }), live)("a server with a token of Telegram's", (it) => {
  it.effect("has no sandbox, and people who follow t.me to its bot join and get messages", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { json } = yield* ask("GET", "/readyz")
      assert.notProperty((json as { readonly components: object }).components, "channels")
      const stage = yield* makeStage
      const link = yield* linkOf(stage, yield* stage.project({ name: "Backups" }))
      const key = yield* stage.projectKey()
      const made = yield* ask("POST", `${api}/join/${link}/telegram`, { key: "", json: { timezone: "UTC" } })
      const url = textOf(made, "startUrl")
      assert.match(url, new RegExp(`^https://t\\.me/${username}\\?start=[0-9A-Za-z]{32}$`))
      assert.strictEqual(textOf(made, "groupUrl"), url.replace("?start=", "?startgroup="))
      const { chat } = yield* Effect.promise(() => people.press(codeIn(url)))
      yield* botMessages(people, chat.id, 1)
      yield* sent(key, { message: "from afar" })
      const [, message] = yield* botMessages(people, chat.id, 2)
      assert.strictEqual(message?.text, "test\nfrom afar")
    })
  )
})

layer(TestServer.own({ notifySandbox: "off" }), live)("a server without token and sandbox", (it) => {
  it.effect("makes no codes, and has its pages without Telegram", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      const link = yield* linkOf(stage, yield* stage.project())
      const made = yield* ask("POST", `${api}/join/${link}/telegram`, { key: "", json: { timezone: "UTC" } })
      assert.deepStrictEqual(faultOf(made), [501, "This server has no bot of Telegram"])
      for (const path of [`/n/join/${link}`, "/n/me"]) {
        const { bytes, status } = yield* ask("GET", path, { key: "" })
        assert.strictEqual(status, 200)
        assert.notInclude(Buffer.from(bytes).toString(), 'id="telegram"')
      }
    })
  )
})
