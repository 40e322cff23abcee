import { assert, describe } from "@effect/vitest"
import { discord } from "#streams/notify/channels/Discord.ts"
import type { Notice } from "#streams/notify/channels/Channel.ts"
import { slack } from "#streams/notify/channels/Slack.ts"
import { notice } from "#test/notify/channels/Notices.ts"
import { hostileTexts } from "#test/notify/channels/HostileTexts.ts"
import type { SandboxChat } from "./SandboxClient.ts"
import type { Sender } from "./Sender.ts"
import { manualClock, test } from "./Stage.ts"

const kinds = { slack, discord } as const
type ChatKind = keyof typeof kinds

const sendTo = (sender: Sender, kind: ChatKind, { url }: SandboxChat, fields: Partial<Notice> = {}) =>
  sender.post(
    kinds[kind].request({ url }, { ...notice, ...fields }, { vapid: sender.vapid, nowMillis: Date.now() })
  )

const raw = async ({ url }: SandboxChat, json: unknown, query = "") => {
  const answer = await fetch(`${url}${query}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof json === "string" ? json : JSON.stringify(json)
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

describe("chats of the sandbox", () => {
  test("take messages, and show them as people read them", async ({ sandbox, sender }) => {
    for (const kind of ["slack", "discord"] as const) {
      const chat = await sandbox.chat(kind)
      assert.match(chat.url, new RegExp(`/${kind}/whk_\\w+$`))
      const url = "https://ci.example.com/run/7"
      const answer = await sendTo(sender, kind, chat, { title: "*Done*", url, message: "a_b [c](d)\n# e" })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.text, kind === "slack" ? "ok" : answer.text)
      const [entry] = (await sandbox.inbox({ channel: chat.id })).entries
      assert.deepInclude(entry, {
        kind,
        channel: chat.id,
        accepted: true,
        status: 200,
        problem: null,
        repeated: false
      })
      const page = await (await fetch(`${sandbox.origin}/`)).text()
      assert.include(page, "<h2><bdi>*Done*</bdi></h2>")
      assert.include(page, "a_b [c](d)\n# e\nci.example.com (https://ci.example.com/run/7)")
      await sandbox.clearInbox()
      assert.deepInclude(await sandbox.ask<object>("GET", `/${kind}/${chat.id}`), {
        accepted: 1,
        state: "active"
      })
      assert.deepInclude(await sandbox.ask<object>("GET", `/${kind}`), { total: 1 })
    }
  })

  test("take every hostile text as it is written for them", async ({ sandbox, sender }) => {
    const clock = { slack: await sandbox.chat("slack"), discord: await sandbox.chat("discord") }
    for (const { name, text } of hostileTexts)
      for (const kind of ["slack", "discord"] as const) {
        const chat = clock[kind]
        let answer = await sendTo(sender, kind, chat, { message: text })
        if (answer.status === 429) {
          clock[kind] = await sandbox.chat(kind)
          answer = await sendTo(sender, kind, clock[kind], { message: text })
        }
        assert.strictEqual(answer.status, 200, `${kind} ${name}: ${answer.text}`)
      }
  })

  test("refuse what Slack refuses, in its words", async ({ sandbox }) => {
    const text = (length: number) => "x".repeat(length)
    const rich = (element: object) => ({ blocks: [{ type: "rich_text", elements: [element] }] })
    for (const [json, status, word] of [
      ["{", 400, "invalid_payload"],
      [[], 400, "invalid_payload"],
      [{ text: 7 }, 400, "invalid_payload"],
      [{}, 400, "no_text"],
      [{ text: "" }, 400, "no_text"],
      [{ text: text(40_001) }, 400, "msg_too_long"],
      [{ text: text(40_000) }, 200, "ok"],
      [rich({ type: "text", text: "" }), 400, "invalid_blocks"],
      [rich({ type: "link", text: "a", url: "no address" }), 400, "invalid_blocks"],
      [rich({ type: "rich_text_section", elements: [] }), 400, "invalid_blocks"],
      [{ blocks: {} }, 400, "invalid_blocks"],
      [rich({ type: "link", text: "a", url: "https://example.com/" }), 200, "ok"]
    ] as const) {
      const answer = await raw(await sandbox.chat("slack"), json)
      assert.deepStrictEqual([answer.status, answer.text], [status, word], JSON.stringify(json).slice(0, 80))
    }
  })

  test("refuse what Discord refuses, with its codes", async ({ sandbox }) => {
    const content = (length: number) => ({ content: "x".repeat(length) })
    for (const [json, status, code] of [
      ["{", 400, 50_109],
      [{}, 400, 50_006],
      [{ content: "  " }, 400, 50_006],
      [content(2_001), 400, 50_035],
      [{ content: "x", allowed_mentions: { parse: ["all"] } }, 400, 50_035],
      [{ content: "x", flags: "4" }, 400, 50_035],
      [content(2_000), 204, undefined],
      [{ content: "\u{1F600}".repeat(2_000), allowed_mentions: { parse: [] }, flags: 4 }, 204, undefined]
    ] as const) {
      const answer = await raw(await sandbox.chat("discord"), json)
      const told = answer.text === "" ? undefined : (JSON.parse(answer.text) as { code: number }).code
      assert.deepStrictEqual([answer.status, told], [status, code], JSON.stringify(json).slice(0, 80))
    }
    assert.strictEqual((await raw(await sandbox.chat("discord"), content(1), "?wait=true")).status, 200)
  })

  const clock = manualClock()
  test(
    "ask for pauses: Slack by Retry-After, Discord by retry_after and its headers",
    async ({ sandbox }) => {
      const slackChat = await sandbox.chat("slack")
      for (let n = 0; n < 5; n++) assert.strictEqual((await raw(slackChat, { text: "x" })).status, 200)
      clock.pass(1_500)
      const limited = await raw(slackChat, { text: "x" })
      assert.deepStrictEqual(
        [limited.status, limited.headers.get("retry-after"), limited.text],
        [429, "4", "rate_limited"]
      )
      clock.pass(3_500)
      assert.strictEqual((await raw(slackChat, { text: "x" })).status, 200)

      const discordChat = await sandbox.chat("discord")
      const remaining: Array<string | null> = []
      for (let n = 0; n < 5; n++) {
        const { headers, status } = await raw(discordChat, { content: "x" })
        assert.strictEqual(status, 204)
        remaining.push(headers.get("x-ratelimit-remaining"))
      }
      assert.deepStrictEqual(remaining, ["4", "3", "2", "1", "0"])
      clock.pass(750)
      const told = await raw(discordChat, { content: "x" })
      assert.strictEqual(told.status, 429)
      assert.deepInclude(JSON.parse(told.text), { retry_after: 1.25, global: false })
      assert.strictEqual(told.headers.get("retry-after"), "2")
      clock.pass(1_250)
      assert.strictEqual((await raw(discordChat, { content: "x" })).status, 204)
    },
    { nowMillis: clock.nowMillis }
  )

  test("are gone when told so, and unknown once deleted", async ({ sandbox, sender }) => {
    for (const [kind, state, status, text] of [
      ["slack", "gone", 404, "no_service"],
      ["slack", "archived", 410, "channel_is_archived"],
      ["discord", "gone", 404, '{"message":"Unknown Webhook","code":10015}']
    ] as const) {
      const chat = await sandbox.chat(kind)
      await sandbox.changeChat(kind, chat.id, { state })
      const answer = await sendTo(sender, kind, chat)
      assert.deepStrictEqual([answer.status, answer.text], [status, text])
      await sandbox.changeChat(kind, chat.id, { state: "active" })
      assert.strictEqual((await sendTo(sender, kind, chat)).status, 200)
      await sandbox.ask("DELETE", `/${kind}/${chat.id}`)
      assert.strictEqual((await sendTo(sender, kind, chat)).status, 404)
    }
    const refused = await sandbox
      .ask("PATCH", `/discord/${(await sandbox.chat("discord")).id}`, { state: "archived" })
      .then(
        () => "changed",
        ({ message }: Error) => message
      )
    assert.match(refused, /^400 .*state: expected active, gone/)
  })

  test("have faults on order, by address", async ({ sandbox, sender }) => {
    const [one, two] = [await sandbox.chat("slack"), await sandbox.chat("discord")]
    await sandbox.order({ target: one.url, status: 429, retryAfter: "3", body: "rate_limited" })
    await sandbox.order({ target: two.id, status: 500 })
    assert.strictEqual((await sendTo(sender, "slack", one)).status, 429)
    assert.strictEqual((await sendTo(sender, "discord", two)).status, 500)
    assert.strictEqual((await sendTo(sender, "slack", one)).status, 200)
  })

  test("are made by no message of a server's", async ({ sandbox }) => {
    for (const path of ["/slack", "/discord", "/faults", "/push/subscriptions", "/webhooks"]) {
      const answer = await fetch(`${sandbox.origin}${path}`, {
        method: "POST",
        headers: { "user-agent": "signalbox (+https://signalbox.example.com)" },
        body: JSON.stringify({ text: "x", content: "x" })
      })
      assert.strictEqual(answer.status, 403, path)
    }
  })
})
