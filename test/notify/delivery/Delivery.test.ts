import { randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { live, makeStage, sent, subscriber } from "#test/notify/Stage.ts"
import { addChannel, allEnded } from "./DeliveryStage.ts"

layer(TestServer.shared, live)("a message", (it) => {
  it.effect("reaches a browser encrypted and a webhook signed, and its owner sees so", () =>
    Effect.gen(function* () {
      const sandbox = yield* sandboxOfServer
      const { key, project, projectKey } = yield* makeStage
      const projectId = yield* project({ slug: "nightly", name: "Nightly" })
      const person = yield* subscriber([projectId])
      const secret = webhookSecret(randomBytes(24))
      const [subscription, webhook] = yield* Effect.promise(() =>
        Promise.all([sandbox.subscribe(), sandbox.webhook({ secret })])
      )
      const { endpoint, keys } = subscription
      const browser = yield* addChannel(person, "push", endpoint, { endpoint, ...keys })
      const hook = yield* addChannel(person, "webhook", webhook.url, { url: webhook.url, secret })
      const sender = yield* projectKey()
      const [message] = (yield* sent(sender, {
        app: "backup",
        message: "It is done",
        url: "https://example.com/"
      })).messages
      const ended = yield* allEnded(message?.id ?? "", key)
      const delivered = { attempts: 1, lastError: null, repeated: false, status: "delivered" as const }
      assert.deepStrictEqual(
        ended.map(({ attempts, lastError, repeated, status }) => ({ attempts, lastError, repeated, status })),
        [delivered, delivered]
      )
      const idOn = (channel: string) => ended.find((one) => one.channel === channel)?.id
      const came = (channel: string) =>
        Effect.map(
          Effect.promise(() => sandbox.accepted(1, { channel })),
          ([entry]) => entry
        )

      // The sandbox took it: it is encrypted for this browser and signed for its origin, with the time that is left.
      const push = yield* came(subscription.id)
      assert.deepInclude(push?.payload, {
        title: "backup",
        text: "It is done",
        tag: idOn(browser.id),
        open: "https://example.com/"
      })
      assert.deepInclude(push?.headers, { urgency: "high", topic: idOn(browser.id) })
      assert.isAtMost(Math.abs(Number(push?.headers["ttl"]) - 72 * 3_600), 60)
      assert.strictEqual(push?.vapid?.aud, sandbox.origin)

      const call = yield* came(webhook.id)
      assert.strictEqual(call?.headers["webhook-id"], idOn(hook.id))
      const { data } = (call?.payload ?? {}) as { readonly data: object }
      assert.isTrue(call?.signed)
      assert.deepInclude(data, {
        app: "backup",
        message: "It is done",
        project: { slug: "nightly", name: "Nightly" }
      })
    })
  )
})
