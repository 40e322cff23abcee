import { assert, describe } from "@effect/vitest"
import { createHmac, randomBytes } from "node:crypto"
import { webhookConfirmation, webhookSecret } from "#streams/notify/channels/Webhook.ts"
import type { Changes } from "./Sender.ts"
import { bytesOfText, test } from "./Stage.ts"

const secret = webhookSecret(randomBytes(32))

describe("the sandbox's webhooks", () => {
  test("take a message that is signed with their secret, and show it", async ({ sandbox, sender }) => {
    const webhook = await sandbox.webhook({ secret })
    assert.match(webhook.url, /^http:\/\/127\.0\.0\.1:\d+\/webhooks\/whk_[0-9A-Za-z]{22}$/)
    assert.strictEqual((await sender.webhook(webhook, { message: "It ended." })).status, 204)
    const [entry] = await sandbox.accepted(1)
    assert.deepInclude(entry, {
      kind: "webhook",
      channel: webhook.id,
      signed: true,
      repeated: false,
      state: null
    })
    assert.hasAllKeys(entry?.headers, ["content-type", "webhook-id", "webhook-timestamp"])
    assert.deepInclude(entry?.payload, { type: "message.created" })
  })

  test("check signatures from when their secret is known", async ({ sandbox, sender }) => {
    const webhook = await sandbox.webhook()
    assert.strictEqual(webhook.secret, null)
    assert.strictEqual((await sender.webhook(webhook)).status, 204)
    await sandbox.changeWebhook(webhook.id, { secret })
    const other = await sender.webhook({ ...webhook, secret: webhookSecret(randomBytes(32)) })
    assert.deepStrictEqual(
      [other.status, JSON.parse(other.text)],
      [401, { error: "webhook-signature: none is that of the secret" }]
    )
    assert.strictEqual((await sender.webhook({ ...webhook, secret })).status, 204)
    const { entries } = await sandbox.inbox()
    assert.deepStrictEqual(
      entries.map(({ signed }) => signed),
      [null, false, true]
    )
  })

  test("take one good signature of several, of version 1", async ({ sandbox, sender }) => {
    const webhook = await sandbox.webhook({ secret })
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const body = Buffer.from("{}")
    const good = createHmac("sha256", Buffer.from(secret.slice(6), "base64"))
      .update(`id.${timestamp}.{}`)
      .digest("base64")
    const bad = Buffer.alloc(32).toString("base64")
    const cases = [
      [`v1,${good}`, 204],
      [`v1,${bad} v1,${good}`, 204],
      [`v1a,${bad} v1,${good}`, 204],
      [`v1,${bad}`, 401],
      [`v2,${good}`, 401],
      [good, 401],
      [`v1,${good.slice(0, 20)}`, 401],
      [`v1,${good}x`, 401],
      ["v1,", 401]
    ] as const
    for (const [signature, status] of cases) {
      const headers = {
        "webhook-id": "id",
        "webhook-timestamp": timestamp,
        "webhook-signature": signature
      }
      assert.strictEqual((await sender.webhook(webhook, {}, { headers, body })).status, status, signature)
    }
  })

  test("refuse what is no Standard Webhook, and say why", async ({ sandbox, sender }) => {
    const webhook = await sandbox.webhook()
    const aside = (seconds: number) => ({ nowMillis: Date.now() + seconds * 1_000 })
    const cases: ReadonlyArray<readonly [string, Changes & { nowMillis?: number }, number, RegExp]> = [
      ["no id", { headers: { "webhook-id": undefined } }, 400, /^webhook-id: is required/],
      [
        "no timestamp",
        { headers: { "webhook-timestamp": undefined } },
        400,
        /^webhook-timestamp: is required/
      ],
      [
        "no signature",
        { headers: { "webhook-signature": undefined } },
        400,
        /^webhook-signature: is required/
      ],
      [
        "a date",
        { headers: { "webhook-timestamp": "2026-11-23" } },
        400,
        /^webhook-timestamp: expected epoch/
      ],
      ["a long id", { headers: { "webhook-id": "x".repeat(201) } }, 400, /^webhook-id: at most 200/],
      ["310 s ago", aside(-310), 400, /^webhook-timestamp: more than 300 s/],
      ["in 310 s", aside(310), 400, /^webhook-timestamp: more than 300 s/],
      ["text", { headers: { "content-type": "text/plain" } }, 415, /^content-type: /],
      ["no JSON", { body: bytesOfText("{") }, 400, /^body: expected JSON/],
      ["no UTF-8", { body: Uint8Array.of(0x22, 0xff, 0x22) }, 400, /^body: expected JSON/]
    ]
    for (const [name, changes, status, problem] of cases) {
      const told = await sender.webhook(webhook, {}, changes)
      assert.strictEqual(told.status, status, `${name}: ${told.text}`)
      assert.match(JSON.parse(told.text).error, problem, name)
    }
    assert.strictEqual((await sender.webhook(webhook, {}, aside(-290))).status, 204)
    assert.deepInclude(await sandbox.inbox(), { received: cases.length + 1, accepted: 1 })
  })

  test("are gone (410) when told so, and unknown (404) once deleted", async ({ sandbox, sender }) => {
    const webhook = await sandbox.webhook()
    await sandbox.changeWebhook(webhook.id, { state: "gone" })
    assert.strictEqual((await sender.webhook(webhook)).status, 410)
    await sandbox.changeWebhook(webhook.id, { state: "active" })
    assert.strictEqual((await sender.webhook(webhook)).status, 204)
    await sandbox.ask("DELETE", `/webhooks/${webhook.id}`)
    assert.strictEqual((await sender.webhook(webhook)).status, 404)
  })

  test("know a repetition by its webhook-id", async ({ sandbox, sender }) => {
    const [one, two] = [await sandbox.webhook(), await sandbox.webhook()]
    await sandbox.order({ status: 500 })
    for (const webhook of [one, one, one, two]) await sender.webhook(webhook)
    const { entries } = await sandbox.inbox()
    assert.deepStrictEqual(
      entries.map(({ accepted, repeated }) => [accepted, repeated]),
      [
        [false, false],
        [true, false],
        [true, true],
        [true, false]
      ]
    )
  })

  test("show the link by which a webhook is confirmed", async ({ sandbox, sender }) => {
    const { url } = await sandbox.webhook({ secret })
    const channel = { channelId: "chn_1", url: "https://example.com/n/c/x" }
    await sender.post(webhookConfirmation({ url, secret }, channel, Date.now()))
    const [entry] = await sandbox.accepted(1)
    assert.deepInclude(entry?.payload, {
      type: "channel.confirmation",
      data: { confirmUrl: channel.url }
    })
  })

  test("take no secret that Standard Webhooks does not have", async ({ sandbox }) => {
    for (const bad of ["", "whsec_", "x", `whsec_${"a".repeat(31)}`, `whsec_${"!".repeat(40)}`, 7]) {
      const failed = await sandbox.ask("POST", "/webhooks", { secret: bad }).then(
        () => "made",
        ({ message }: Error) => message
      )
      assert.match(failed, /^400 .*secret: expected/, String(bad))
    }
  })
})
