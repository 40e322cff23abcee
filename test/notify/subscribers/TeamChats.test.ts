import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import type { Entry } from "#src/notify/sandbox/Inbox.ts"
import { allEnded, channelState, deliveriesOf } from "../delivery/DeliveryStage.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import { api, faultOf, live, makeStage, sent } from "../Stage.ts"
import { join, joined, openProject, settingsOf } from "./SubscriberStage.ts"

type Kind = "slack" | "discord"
const kinds = ["slack", "discord"] as const

/** The text of a message in its service's form, and its links. */
const readOf = ({ kind, payload }: Pick<Entry, "kind" | "payload">) => {
  const body = payload as Readonly<Record<string, unknown>>
  return String(kind === "slack" ? body["text"] : body["content"])
}

/** The path of the link that was posted to a chat. */
const linkPosted = (text: string): string => {
  const [url = ""] = /https?:\/\/[^\s)>]+\/n\/confirm\/[0-9A-Za-z]{40}/.exec(text) ?? []
  return new URL(url).pathname
}

/** A chat of the sandbox that joined a new project and is confirmed. */
const confirmed = Effect.fnUntraced(function* (kind: Kind) {
  const stage = yield* makeStage
  const { ask, id, link } = yield* openProject(stage)
  const sandbox = yield* sandboxOfServer
  const chat = yield* Effect.promise(() => sandbox.chat(kind))
  const { channel, token } = yield* joined(link, { webhook: { url: chat.url, kind } })
  const [posted] = yield* Effect.promise(() => sandbox.accepted(1, { channel: chat.id }))
  if (posted === undefined) throw new Error("no link was posted")
  yield* ask("POST", linkPosted(readOf(posted)), { key: "" })
  const key = yield* stage.projectKey()
  const sendOne = (fields: object = {}) =>
    Effect.map(sent(key, fields), ({ messages: [message] }) => message?.id ?? "")
  const next = (count: number) =>
    Effect.promise(() => sandbox.accepted(count, { channel: chat.id, after: posted.seq }))
  return {
    ask,
    channel: channel?.id ?? "",
    chat,
    id,
    key: stage.key,
    link,
    next,
    sandbox,
    sendOne,
    stage,
    token
  }
})

layer(TestServer.shared, live)("a team chat", (it) => {
  for (const kind of kinds)
    it.effect(`of kind ${kind} is confirmed by a link posted there, in its own form, and has no secret`, () =>
      Effect.gen(function* () {
        const stage = yield* makeStage
        const { ask, link } = yield* openProject(stage)
        const sandbox = yield* sandboxOfServer
        const chat = yield* Effect.promise(() => sandbox.chat(kind))
        const { channel, secret, token } = yield* joined(link, {
          webhook: { url: chat.url, kind, name: "Ops" }
        })
        assert.isUndefined(secret)
        assert.deepInclude(channel, { kind, state: "unconfirmed" })
        const key = yield* stage.projectKey()
        assert.strictEqual((yield* sent(key)).recipients, 0)
        const [entry] = yield* Effect.promise(() => sandbox.accepted(1, { channel: chat.id }))
        assert.deepInclude(entry, { kind, problem: null })
        const text = readOf(entry ?? { kind, payload: {} })
        assert.match(text, /^\*\*Confirm this channel\*\*\n/)
        const path = linkPosted(text)
        assert.strictEqual((yield* ask("GET", path, { key: "" })).status, 200)
        assert.strictEqual((yield* sent(key)).recipients, 0)
        assert.strictEqual((yield* ask("POST", path, { key: "" })).status, 200)
        assert.strictEqual((yield* sent(key)).recipients, 1)
        const { channels } = yield* settingsOf(token)
        assert.deepInclude(channels[0], { kind, name: "Ops", state: "active", host: new URL(chat.url).host })
        assert.notInclude(JSON.stringify(channels), chat.id)
      })
    )

  for (const kind of kinds)
    it.effect(
      `of kind ${kind} gets messages with a link to their page, and never the settings; previews are off`,
      () =>
        Effect.gen(function* () {
          const { ask, key, next, sendOne } = yield* confirmed(kind)
          const id = yield* sendOne({
            title: "Night *build*",
            message: "<!channel> @everyone [failed](https://evil.example)",
            url: "https://ci.example.com/run/7",
            body: "a log"
          })
          const [entry] = yield* next(1)
          assert.deepInclude((yield* allEnded(id, key))[0], { kind, status: "delivered", attempts: 1 })
          const body = entry?.payload as Readonly<Record<string, unknown>>
          assert.deepInclude(
            body,
            kind === "slack"
              ? { unfurl_links: false, unfurl_media: false, mrkdwn: false }
              : { flags: 4, allowed_mentions: { parse: [] } }
          )
          const text = readOf(entry ?? { kind, payload: {} })
          assert.notMatch(text, /(?<!\\)<!channel>/)
          assert.notInclude(text, "@everyone")
          assert.notMatch(text, /(?<!\\)\]\(<?https:\/\/evil/)
          assert.notInclude(JSON.stringify(body), "/n/me")
          const viewUrl = /https?:\/\/[^\s)>]+\/n\/m\/[0-9A-Za-z]{40}/.exec(text)?.[0] ?? ""
          assert.strictEqual((yield* ask("GET", new URL(viewUrl).pathname, { key: "" })).status, 200)
          assert.isBelow(text.indexOf("https://ci.example.com/run/7"), text.indexOf(viewUrl))
          // Owners see kinds and states, no addresses.
          const shown = yield* deliveriesOf(id, key)
          assert.notMatch(JSON.stringify(shown), /whk_|127\.0\.0\.1/)
        })
    )

  it.effect("is known by its host, else named by kind; a contradiction is 400", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id } = yield* openProject(stage)
      const add = (json: object) =>
        ask("POST", `${api}/projects/${id}/subscribers`, { key: stage.key, json: { name: "Ops", ...json } })
      const kindOf = (json: object) =>
        Effect.map(add(json), (answer) => {
          const { channels, secret } = answer.json as {
            channels?: ReadonlyArray<{ kind: string }>
            secret?: string
          }
          return [answer.status, channels?.[0]?.kind, secret !== undefined]
        })
      // Addresses whose names need no look-up.
      const path = "93.184.216.34/hooks/x"
      assert.deepStrictEqual(yield* kindOf({ url: `https://${path}` }), [201, "webhook", true])
      for (const kind of kinds)
        assert.deepStrictEqual(yield* kindOf({ url: `https://${path}${kind}`, kind }), [201, kind, false])
      for (const [json, text] of [
        [{ url: `https://${path}`, kind: "telegram" }, 'kind: expected "webhook" | "slack" | "discord"'],
        [
          { url: "https://hooks.slack.com/services/T/B/x", kind: "discord" },
          "kind: the address is a webhook of Slack"
        ],
        [
          { url: "https://discord.com/api/webhooks/1/x", kind: "slack" },
          "kind: the address is a webhook of Discord"
        ],
        [
          { url: "https://discordapp.com/api/webhooks/1/x", kind: "webhook" },
          "kind: the address is a webhook of Discord"
        ],
        [
          { url: "http://93.184.216.34/x", kind: "slack" },
          "url: expected an https address of at most 2048 characters"
        ],
        [{ url: "https://127.1/x", kind: "slack" }, "url: not a public address"]
      ] as const)
        assert.deepStrictEqual(faultOf(yield* add(json)), [400, text])
      const { link } = yield* openProject(stage)
      const webhook = { url: "https://hooks.slack.com/services/T/B/x", kind: "webhook" }
      assert.deepStrictEqual(faultOf(yield* join(link, { webhook })), [
        400,
        "webhook.kind: the address is a webhook of Slack"
      ])
    })
  )

  it.effect("that does not take its link is not added", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id, link } = yield* openProject(stage)
      const sandbox = yield* sandboxOfServer
      for (const kind of kinds) {
        const chat = yield* Effect.promise(() => sandbox.chat(kind))
        yield* Effect.promise(() => sandbox.changeChat(kind, chat.id, { state: "gone" }))
        assert.deepStrictEqual(faultOf(yield* join(link, { webhook: { url: chat.url, kind } })), [
          400,
          "webhook.url: did not take the link by which it is confirmed"
        ])
      }
      // A chat takes no Standard Webhook.
      const other = yield* Effect.promise(() => sandbox.chat("discord"))
      assert.strictEqual((yield* join(link, { webhook: { url: other.url } })).status, 400)
      const listed = yield* ask("GET", `${api}/projects/${id}/subscribers`, { key: stage.key })
      assert.deepInclude(listed.json, { subscribers: [] })
    })
  )

  it.effect("of the project's owner gets messages at once, and its address is shown to none", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id } = yield* openProject(stage)
      const sandbox = yield* sandboxOfServer
      for (const kind of kinds) {
        const chat = yield* Effect.promise(() => sandbox.chat(kind))
        const added = yield* ask("POST", `${api}/projects/${id}/subscribers`, {
          key: stage.key,
          json: { name: kind, url: chat.url, kind }
        })
        assert.strictEqual(added.status, 201)
        assert.notProperty(added.json, "secret")
        assert.notInclude(JSON.stringify(added.json), chat.id)
        yield* sent(yield* stage.projectKey(), { message: "to the team" })
        const [entry] = yield* Effect.promise(() => sandbox.accepted(1, { channel: chat.id }))
        assert.include(readOf(entry ?? { kind, payload: {} }), "to the team")
      }
      const listed = yield* ask("GET", `${api}/projects/${id}/subscribers`, { key: stage.key })
      assert.notMatch(JSON.stringify(listed.json), /whk_|127\.0\.0\.1/)
    })
  )

  it.effect("gets a test in its own form", () =>
    Effect.gen(function* () {
      for (const kind of kinds) {
        const { ask, channel, next, token } = yield* confirmed(kind)
        const tested = yield* ask("POST", `${api}/subscriber/channels/${channel}/test`, { key: token })
        assert.deepStrictEqual(tested.json, { delivered: true, error: null })
        const [entry] = yield* next(1)
        assert.match(
          readOf(entry ?? { kind, payload: {} }),
          /^\*\*A test\*\*\nNotifications of your projects/
        )
      }
    })
  )

  it.effect(
    "that asks for a pause gets the message after it: Retry-After of Slack, retry_after of Discord",
    () =>
      Effect.gen(function* () {
        for (const [kind, order] of [
          ["slack", { retryAfter: "1", body: "rate_limited" }],
          [
            "discord",
            { body: '{"message": "You are being rate limited.", "retry_after": 0.9, "global": false}' }
          ]
        ] as const) {
          const { chat, key, sandbox, sendOne } = yield* confirmed(kind)
          yield* Effect.promise(() => sandbox.order({ target: chat.url, status: 429, ...order }))
          const id = yield* sendOne()
          assert.deepInclude((yield* allEnded(id, key))[0], {
            status: "delivered",
            attempts: 2,
            repeated: false
          })
          const { entries } = yield* Effect.promise(() => sandbox.inbox({ channel: chat.id }))
          const [refused, taken] = entries.slice(-2).map(({ receivedAt }) => Date.parse(receivedAt))
          assert.isAtLeast((taken ?? 0) - (refused ?? 0), 890)
        }
      })
  )

  it.effect("of Slack gets one message a second; one of Discord waits where its window is used up", () =>
    Effect.gen(function* () {
      for (const kind of kinds) {
        const { chat, key, next, sandbox, sendOne } = yield* confirmed(kind)
        const ids: Array<string> = []
        const count = kind === "slack" ? 3 : 7
        for (let n = 0; n < count; n++) ids.push(yield* sendOne({ message: `m${n}` }))
        const at = (yield* next(count)).map(({ receivedAt }) => Date.parse(receivedAt))
        if (kind === "slack")
          for (const [n, millis] of at.entries()) if (n > 0) assert.isAtLeast(millis - (at[n - 1] ?? 0), 990)
        for (const id of ids) assert.deepInclude((yield* allEnded(id, key))[0], { status: "delivered" })
        const { entries } = yield* Effect.promise(() => sandbox.inbox({ channel: chat.id }))
        assert.isEmpty(entries.filter(({ status }) => status === 429))
      }
    })
  )

  it.effect("that its service says is gone is gone: Slack 404 and 410, Discord 404", () =>
    Effect.gen(function* () {
      for (const [kind, state, error] of [
        ["slack", "gone", "the chat answered 404 (no_service)"],
        ["slack", "archived", "the chat answered 410 (channel_is_archived)"],
        ["discord", "gone", "Discord answered 404 (code 10015)"]
      ] as const) {
        const { channel, chat, key, sandbox, sendOne } = yield* confirmed(kind)
        yield* Effect.promise(() => sandbox.changeChat(kind, chat.id, { state }))
        const id = yield* sendOne()
        assert.deepInclude((yield* allEnded(id, key))[0], {
          status: "dropped",
          attempts: 1,
          lastError: error
        })
        assert.strictEqual((yield* channelState(channel))?.state, "gone")
        assert.deepStrictEqual(yield* deliveriesOf(yield* sendOne(), key), [])
      }
    })
  )

  it.effect("that refuses ten in a row is failing, and 413 gets 2,000 bytes", () =>
    Effect.gen(function* () {
      for (const kind of kinds) {
        const { channel, chat, key, next, sandbox, sendOne } = yield* confirmed(kind)
        yield* Effect.promise(() => sandbox.order({ target: chat.url, status: 413 }))
        const long = yield* sendOne({ message: "long ".repeat(300) })
        assert.deepInclude((yield* allEnded(long, key))[0], { status: "delivered", attempts: 1 })
        assert.isAtMost((yield* next(1))[0]?.bytes ?? Infinity, 2_000)
        const refusal =
          kind === "slack" ? "invalid_payload" : '{"message": "Invalid Form Body", "code": 50035}'
        yield* Effect.promise(() =>
          sandbox.order({ target: chat.url, status: 400, body: refusal, always: true })
        )
        const ids: Array<string> = []
        for (let n = 0; n < 10; n++) ids.push(yield* sendOne())
        for (const id of ids) assert.deepInclude((yield* allEnded(id, key))[0], { status: "dead" })
        const [last] = yield* deliveriesOf(ids[9] ?? "", key)
        assert.match(last?.lastError ?? "", /answered 400 \((?:invalid_payload|code 50035)\)$/)
        yield* eventually(
          "the channel is failing",
          Effect.map(channelState(channel), (row) => row?.state === "failing")
        )
        assert.deepStrictEqual(yield* deliveriesOf(yield* sendOne(), key), [])
      }
    })
  )
})
