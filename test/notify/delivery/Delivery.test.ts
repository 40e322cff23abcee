import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { webhookSignature } from "#streams/notify/channels/Webhook.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { verifiedToken } from "#test/notify/channels/PushBrowser.ts"
import { live, makeStage, sent } from "#test/notify/Stage.ts"
import { addBrowser, addWebhook, allEnded, loopback, receiver } from "./DeliveryStage.ts"

layer(TestServer.own({ egressAllow: loopback }), live)("a message", (it) => {
  it.effect("reaches a browser encrypted and a webhook signed, and its owner sees so", () =>
    Effect.gen(function* () {
      const { key, project, projectKey } = yield* makeStage
      const service = yield* receiver({ status: 201 })
      const projectId = yield* project({ slug: "nightly", name: "Nightly" })
      const browser = yield* addBrowser([projectId], service.origin)
      const hook = yield* addWebhook([projectId], service.origin)
      const sender = yield* projectKey()
      const [message] = (yield* sent(sender, {
        app: "backup",
        message: "It is done",
        url: "https://example.com/"
      })).messages
      const ended = yield* allEnded(message?.id ?? "", key)
      assert.deepStrictEqual(
        ended.map(({ attempts, lastError, repeated, status }) => ({ attempts, lastError, repeated, status })),
        Array.from({ length: 2 }, () => ({
          attempts: 1,
          lastError: null,
          repeated: false,
          status: "delivered" as const
        }))
      )
      const idOn = (channel: string) => ended.find((one) => one.channel === channel)?.id

      const push = service.received.find(({ path }) => browser.endpoint.endsWith(path))
      const decoded = yield* Effect.promise(() => browser.browser.decrypt(push?.body ?? Buffer.alloc(0)))
      assert.deepInclude(JSON.parse(decoded.plaintext.toString()), {
        title: "backup",
        text: "It is done",
        tag: idOn(browser.id),
        open: "https://example.com/"
      })
      const token = yield* Effect.promise(() => verifiedToken(push?.headers.authorization ?? ""))
      assert.strictEqual(token.claims.aud, service.origin)
      assert.deepInclude(push?.headers, {
        urgency: "high",
        topic: idOn(browser.id),
        "content-encoding": "aes128gcm"
      })
      assert.isAtMost(Math.abs(Number(push?.headers["ttl"]) - 72 * 3_600), 60)

      const call = service.received.find(({ path }) => hook.target.url.endsWith(path))
      const [id, timestamp] = [
        String(call?.headers["webhook-id"]),
        String(call?.headers["webhook-timestamp"])
      ]
      assert.strictEqual(id, idOn(hook.id))
      assert.strictEqual(
        call?.headers["webhook-signature"],
        webhookSignature(hook.target.secret, { id, timestamp }, call?.body ?? Buffer.alloc(0))
      )
      assert.deepInclude(JSON.parse(String(call?.body)).data, {
        app: "backup",
        message: "It is done",
        project: { slug: "nightly", name: "Nightly" }
      })
    }).pipe(Effect.scoped)
  )
})
