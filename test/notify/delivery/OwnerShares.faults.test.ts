import { randomBytes } from "node:crypto"
import { networkInterfaces } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import { EgressSystem } from "#src/infra/egress/Egress.ts"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { TestNames } from "#test/infra/egress/EgressStage.ts"
import { api, live, makeStage, sent, subscriber } from "#test/notify/Stage.ts"
import { joined, openProject } from "#test/notify/subscribers/SubscriberStage.ts"
import { addWebhook, allEnded, receiver } from "./DeliveryStage.ts"

const hosts = Array.from({ length: 500 }, (_, n) => `h${n}.hanging.test`)
const names = new TestNames(Object.fromEntries(hosts.map((host) => [host, [["127.0.0.1"]]])))
const egressAllow = EgressAllow.parse("*.hanging.test, 127.0.0.1") ?? EgressAllow.nothing

// Answers that hang for as long as the test takes.
const limits = {
  deliveryAttemptMillis: 600_000,
  egressTotalMillis: 590_000,
  egressHeadersMillis: 590_000,
  jobStopMillis: 100
}

const server = TestServer.own({ egressAllow, notifySandbox: "off", limits }).pipe(
  Layer.provide(Layer.succeed(EgressSystem, { interfaces: networkInterfaces, dns: names.dns }))
)

layer(server, live)("channels that hang", (it) => {
  it.effect("at a host each, do not keep another owner's deliveries from going out", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const hanging = yield* receiver("hang")
      const { port } = new URL(hanging.origin)
      const first = yield* makeStage
      const project = yield* first.project()
      yield* sql`INSERT INTO channels (id, subscriber_id, kind, address, target)
        SELECT 'chn_' || host, ${yield* subscriber([project])}, 'webhook', url,
          jsonb_build_object('url', url, 'secret', ${webhookSecret(randomBytes(24))}::text)
        FROM (SELECT host, 'http://' || host || ${`:${port}/`} AS url FROM unnest(${hosts}::text[]) AS host) AS hooks`
      yield* sent(yield* first.projectKey())
      yield* eventually(
        "many hang",
        Effect.sync(() => hanging.received.length >= 32)
      )

      const quick = yield* receiver()
      const second = yield* makeStage
      yield* addWebhook([yield* second.project()], quick.origin)
      const key = yield* second.projectKey()
      for (let n = 0; n < 3; n++) {
        const [message] = (yield* sent(key)).messages
        assert.strictEqual((yield* allEnded(message?.id ?? "", second.key))[0]?.status, "delivered")
      }
      assert.strictEqual(hanging.received.length, 32)
      // Their lanes are late from now on; those of attempts under way are not.
      yield* eventually(
        "the others were sent back",
        Effect.map(
          sql`SELECT FROM job_lanes WHERE queue = 'deliveries' AND busy_since IS NOT NULL AND waiting = 1`,
          ({ length }) => length === hosts.length - 32
        )
      )
    }).pipe(Effect.scoped)
  )

  it.effect("at one host, keep a test of a channel there from being one attempt more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const service = yield* receiver()
      const stage = yield* makeStage
      const { ask, id, link } = yield* openProject(stage)
      const { channel, token } = yield* joined(link, { webhook: { url: `${service.origin}/tested` } })
      service.otherwise = "hang"
      for (let n = 0; n < 4; n++) yield* addWebhook([id], service.origin)
      yield* sent(yield* stage.projectKey())
      const before = service.received.length
      yield* eventually(
        "as many attempts as there may be are under way",
        Effect.sync(() => service.received.length === before + 4)
      )
      yield* sql`UPDATE channels SET state = 'active' WHERE id = ${channel?.id ?? ""}`
      const test = yield* ask("POST", `${api}/subscriber/channels/${channel?.id}/test`, { key: token })
      const { delivered, error } = test.json as { readonly delivered: boolean; readonly error: string }
      assert.isFalse(delivered)
      assert.match(error, /^its host has as many requests as it may have: try again in \d+ s$/)
      assert.strictEqual(service.received.length, before + 4)
    }).pipe(Effect.scoped)
  )
})
