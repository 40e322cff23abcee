import { networkInterfaces } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { ConfigChanges } from "#src/Config.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import { EgressSystem } from "#src/infra/egress/Egress.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { TestNames } from "#test/infra/egress/EgressStage.ts"
import { DnsServer } from "../DnsServer.ts"
import { type Sink as SinkService, startSink } from "../SmtpSink.ts"
import { live, makeStage, metric, type ReadEmail } from "../Stage.ts"

class Sink extends Context.Service<Sink, SinkService>()("signalbox/test/Sink") {
  static readonly layer = Layer.effect(Sink, startSink())
}

const mailDomains = {
  spf: [],
  bounceDomain: undefined,
  hostname: undefined,
  fromDomains: new Set(["*"]),
  nameServers: []
}

/** A relay that is down is asked again after this. */
const restMillis = 300

const relayed = (limits: ConfigChanges["limits"]) =>
  Layer.unwrap(
    Effect.map(Sink, ({ port }) =>
      TestServer.own({
        smtpServer: { host: "127.0.0.1", port, tls: "none", login: null },
        mailDomains,
        limits: {
          mailRestMinMillis: restMillis,
          mailRestMaxMillis: restMillis,
          mailProbeMillis: 50,
          ...limits
        }
      })
    )
  ).pipe(Layer.provideMerge(Sink.layer))

const statusesOf = ({ recipients }: ReadEmail) => recipients.map(({ status }) => status)

layer(relayed({ jobCountsMillis: 100 }), live)("a relay that is down", (it) => {
  it.effect("is asked by one mail at a time, says so on /readyz, and has them all once it is back", () =>
    Effect.gen(function* () {
      const sink = yield* Sink
      const { ask } = yield* Readiness
      const { read, sent } = yield* makeStage
      // Slow, so that two that asked at once would be seen.
      sink.play({ moves: { greeting: { reply: "421 4.3.2 too much to do\r\n", afterMillis: 100 } } })
      const first = yield* sent()
      yield* eventually(
        "the route pauses",
        Effect.map(ask("mail"), (state) => state?.status === "degraded")
      )
      assert.match(
        (yield* ask("mail"))?.detail ?? "",
        /^the relay takes no mail: .*421 4\.3\.2 too much to do/
      )
      const to = Array.from({ length: 20 }, (_, index) => `r${index}@example.org`).join(",")
      const second = yield* sent({ to })
      const asked = sink.connections().all
      yield* eventually(
        "it was asked three times more",
        Effect.sync(() => sink.connections().all >= asked + 3)
      )
      assert.strictEqual(sink.connections().most, 1)
      const [recipient] = (yield* read(first)).recipients
      assert.deepStrictEqual([recipient?.status, recipient?.attempts], ["queued", 0])
      assert.include(recipient?.last_reply ?? "", "421 4.3.2 too much to do")
      assert.isNotNull(recipient?.next_attempt_at)

      sink.play({})
      yield* eventually(
        "all have gone",
        Effect.map(Effect.all([read(first), read(second)]), (emails) =>
          emails.flatMap(statusesOf).every((status) => status === "sent")
        )
      )
      assert.strictEqual(sink.accepted.length, 21)
      assert.isAtMost(sink.connections().most, 10)
      assert.strictEqual((yield* ask("mail"))?.status, "up")
    })
  )

  it.effect("for as long as a mail is tried, has it expire", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const sink = yield* Sink
      const { read, sent } = yield* makeStage
      sink.play({ moves: { greeting: "421 4.3.2 too much to do\r\n" } })
      sink.dropAll()
      const id = yield* sent()
      yield* eventually(
        "it was tried",
        Effect.map(read(id), ({ recipients }) => recipients[0]?.last_reply !== null)
      )
      yield* sql`UPDATE mail_messages SET created_at = now() - interval '73 hours' WHERE id = ${id}`
      yield* eventually(
        "it expires",
        Effect.map(read(id), (email) => statusesOf(email)[0] === "expired")
      )
      // No mail is left that would ask whether the relay is back.
      yield* eventually(
        "the pause is over",
        Effect.map((yield* Readiness).ask("mail"), (state) => state?.status === "up")
      )
      sink.play({})
    })
  )
})

layer(relayed({ jobCountsMillis: 100, mailRestMinMillis: 60_000, mailRestMaxMillis: 60_000 }), live)(
  "a relay that refuses a sender",
  (it) => {
    it.effect("takes other owners' mail, and that owner's from other domains, and the pause is told", () =>
      Effect.gen(function* () {
        const sink = yield* Sink
        const { ask } = yield* Readiness
        const [owner, other] = [yield* makeStage, yield* makeStage]
        sink.play({
          moves: {
            mail: (_, line) => (line.includes("@bad.") ? "550 5.1.8 there is no such domain\r\n" : undefined)
          }
        })
        const asked = () => sink.commands.filter((line) => line.startsWith("MAIL FROM:<shop@bad.")).length
        const bad = yield* owner.sent({ from: "shop@bad.example" })
        yield* eventually(
          "it is told on /readyz, since nothing else was taken",
          Effect.map(ask("mail"), (state) => state?.status === "degraded")
        )
        assert.strictEqual(
          (yield* ask("mail"))?.detail,
          "the relay takes no mail: 550 5.1.8 there is no such domain"
        )
        // The pause is told before the attempt is stored.
        yield* eventually(
          "the reply is there",
          Effect.map(owner.read(bad), ({ recipients }) => recipients[0]?.last_reply !== null)
        )
        const [recipient] = (yield* owner.read(bad)).recipients
        assert.deepStrictEqual(
          [recipient?.status, recipient?.attempts, recipient?.last_reply],
          ["queued", 0, "550 5.1.8 there is no such domain"]
        )
        // Mails that wait for the same are not asked with.
        const waiting = yield* owner.sent({ from: "news@BAD.example" })
        for (const [stage, from] of [
          [other, "shop@example.com"],
          [owner, "shop@good.example"]
        ] as const)
          assert.deepStrictEqual(statusesOf(yield* stage.read(yield* stage.sent({ from }), 30)), ["sent"])
        assert.strictEqual((yield* ask("mail"))?.status, "up")
        assert.deepStrictEqual(statusesOf(yield* owner.read(waiting)), ["queued"])
        assert.strictEqual(asked(), 1)
        // Another owner has a pause of their own.
        yield* other.sent({ from: "shop@bad.example" })
        yield* eventually(
          "it was asked for the other owner",
          Effect.sync(() => asked() === 2)
        )
        sink.play({})
      })
    )

    it.effect("only at RCPT, as Postfix does, pauses it as well, and blames no recipient", () =>
      Effect.gen(function* () {
        const sink = yield* Sink
        const owner = yield* makeStage
        const refusal = "550 5.1.8 <shop@gone.example>: Sender address rejected: Domain not found"
        let from = ""
        sink.play({
          moves: {
            mail: (_, line) => {
              from = line
              return undefined
            },
            rcpt: () => (from.includes("@gone.") ? `${refusal}\r\n` : undefined)
          }
        })
        const id = yield* owner.sent({ from: "shop@gone.example", to: "ada@example.org, bob@example.org" })
        yield* eventually(
          "one was asked with",
          Effect.map(owner.read(id), ({ recipients }) => recipients.some((one) => one.last_reply === refusal))
        )
        assert.deepStrictEqual(
          (yield* owner.read(id)).recipients.map(({ attempts, status }) => [status, attempts]),
          [
            ["queued", 0],
            ["queued", 0]
          ]
        )
        assert.deepStrictEqual(statusesOf(yield* owner.read(yield* owner.sent(), 30)), ["sent"])
        sink.play({})
      })
    )
  }
)

/** Two mails of that size are more than one owner's share, and one is not. */
const largeBytes = 300 * 1024

layer(relayed({ mailMessagesBytes: 3 * largeBytes }), live)("a relay that hangs", (it) => {
  it.effect("has so many bytes of large mails in memory; small ones and other owners' go meanwhile", () =>
    Effect.gen(function* () {
      const sink = yield* Sink
      const [owner, other] = [yield* makeStage, yield* makeStage]
      sink.play({ moves: { rcpt: (_, line) => (line.includes("hang") ? "stall" : undefined) } })
      const content = Buffer.alloc((largeBytes * 3) / 4, "x").toString("base64")
      const large = { attachments: [{ filename: "a.bin", content }] }
      const to = Array.from({ length: 6 }, (_, index) => `hang${index}@example.org`).join(",")
      const campaign = yield* owner.sent({ ...large, to })
      yield* eventually(
        "one hangs",
        Effect.sync(() => sink.connections().open >= 1)
      )
      for (const stage of [owner, other])
        assert.deepStrictEqual(statusesOf(yield* stage.read(yield* stage.sent(), 30)), ["sent"])
      assert.deepStrictEqual(statusesOf(yield* other.read(yield* other.sent(large), 30)), ["sent"])
      assert.strictEqual(sink.commands.filter((line) => line.startsWith("RCPT TO:<hang")).length, 1)
      sink.play({})
      sink.dropAll()
      yield* eventually(
        "all have gone",
        Effect.map(owner.read(campaign), (email) => statusesOf(email).every((status) => status === "sent"))
      )
      assert.isAtLeast(sink.accepted.length, 9)
    })
  )
})

layer(relayed({ jobCountsMillis: 100 }), live)("a relay", (it) => {
  it.effect("has the end of a delivery counted once it is written down", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const sink = yield* Sink
      const { read, sent } = yield* makeStage
      const counted = Effect.map(
        metric('signalbox_mail_deliveries_total{status="sent"}'),
        (count = 0) => count
      )
      yield* read(yield* sent(), 20)
      const before = yield* counted
      const taken = sink.accepted.length
      yield* sql`ALTER TABLE mail_attempts RENAME TO mail_attempts_away`
      const id = yield* sent()
      yield* eventually(
        "the relay has it",
        Effect.sync(() => sink.accepted.length > taken)
      )
      yield* Effect.sleep(500)
      assert.strictEqual(yield* counted, before)
      yield* sql`ALTER TABLE mail_attempts_away RENAME TO mail_attempts`
      assert.deepStrictEqual(statusesOf(yield* read(id, 30)), ["sent"])
      assert.strictEqual(yield* counted, before + 1)
    })
  )

  it.effect("whose reply is lost has the attempt counted as unknown", () =>
    Effect.gen(function* () {
      const sink = yield* Sink
      const { read, sent } = yield* makeStage
      const before = (yield* metric("signalbox_mail_unknown_total")) ?? 0
      sink.play({ moves: { end: (nth) => (nth === 1 ? "drop" : undefined) } })
      assert.deepStrictEqual(statusesOf(yield* read(yield* sent(), 30)), ["deferred"])
      assert.strictEqual(yield* metric("signalbox_mail_unknown_total"), before + 1)
      sink.play({})
    })
  )

  it.effect("that hangs with one owner's mail takes another owner's", () =>
    Effect.gen(function* () {
      const sink = yield* Sink
      const [campaign, other] = [yield* makeStage, yield* makeStage]
      const before = sink.accepted.length
      sink.play({ moves: { rcpt: (_, line) => (line.includes("hang") ? "stall" : undefined) } })
      const to = Array.from({ length: 40 }, (_, index) => `hang${index}@example.org`).join(",")
      yield* campaign.sent({ to })
      yield* eventually(
        "half of the connections hang",
        Effect.sync(() => sink.connections().open >= 5)
      )
      for (let sent = 0; sent < 3; sent++)
        assert.deepStrictEqual(statusesOf(yield* other.read(yield* other.sent(), 20)), ["sent"])
      assert.strictEqual(sink.accepted.length, before + 3)
      sink.play({})
      sink.dropAll()
    })
  )

  it.effect("and its mail are on /metrics", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask } = yield* Readiness
      const stage = yield* makeStage
      const before = (yield* metric("signalbox_mail_accepted_total")) ?? 0
      const suppressed = { address: "gone@example.org" }
      yield* (yield* TestServer).ask("POST", "/api/v1/emails/suppressions", {
        key: stage.key,
        json: suppressed
      })
      const id = yield* stage.sent({ to: `ada@example.org, ${suppressed.address}` })
      assert.deepStrictEqual(statusesOf(yield* stage.read(id, 20)), ["sent", "suppressed"])
      assert.strictEqual(yield* metric("signalbox_mail_accepted_total"), before + 1)
      assert.strictEqual(yield* metric("signalbox_mail_suppressed_total"), 1)
      assert.isAtLeast((yield* metric('signalbox_mail_deliveries_total{status="sent"}')) ?? 0, 1)
      assert.isAtLeast((yield* metric("signalbox_mail_attempt_seconds_count")) ?? 0, 1)

      const later = yield* stage.sent({ send_at: new Date(Date.now() + 3_600_000).toISOString() })
      yield* eventually(
        "it waits",
        Effect.map(metric("signalbox_mail_queued"), (queued) => (queued ?? 0) >= 1)
      )
      // No process has an attempt to spare for it.
      yield* sql`UPDATE job_lanes SET busy_since = now() - interval '16 minutes' WHERE queue = 'mail'
        AND lane IN (SELECT id FROM mail_deliveries WHERE message_id = ${later})`
      yield* eventually(
        "it is late",
        Effect.map(ask("mail"), (state) => state?.status === "degraded")
      )
      assert.strictEqual((yield* ask("mail"))?.detail, "a mail has been due for 16 min and was not tried")
      assert.isAtLeast((yield* metric("signalbox_mail_oldest_seconds")) ?? 0, 960)
    })
  )
})

const names = new TestNames({ "mx.up.test": [["127.0.0.1"]], "mx.down.test": [["127.0.0.9"]] })

const direct = Layer.unwrap(
  Effect.gen(function* () {
    const { port } = yield* Sink
    const { address, mx } = yield* DnsServer
    mx("up.test", [10, "mx.up.test"])
    mx("down.test", [10, "mx.down.test"])
    return TestServer.own({
      egressAllow: EgressAllow.parse("127.0.0.0/8") ?? EgressAllow.nothing,
      mailDirect: { hostname: "client.test", port },
      mailDomains: { ...mailDomains, nameServers: [address] }
    })
  })
).pipe(
  Layer.provide(Layer.succeed(EgressSystem, { interfaces: networkInterfaces, dns: names.dns })),
  Layer.provideMerge(Layer.mergeAll(Sink.layer, DnsServer.layer))
)

layer(direct, live)("without a relay", (it) => {
  it.effect("a domain that is down rests, and mail to others goes to their servers", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const sink = yield* Sink
      const { get, read, sent } = yield* makeStage
      const down = yield* sent({ to: "ada@down.test" })
      yield* eventually(
        "its server was asked",
        Effect.map(read(down), ({ recipients }) => recipients[0]?.last_reply !== null)
      )
      const askedFor = () => names.asked.filter((name) => name.startsWith("mx.down.test")).length
      const asked = askedFor()
      assert.isAtLeast(asked, 1)
      const id = yield* sent({ to: "ada@up.test, bob@up.test, eve@DOWN.test" })
      yield* eventually(
        "those that can go have gone",
        Effect.sync(() => sink.accepted.length === 2)
      )
      yield* eventually(
        "they are sent",
        Effect.map(read(id), (email) => statusesOf(email).join() === "sent,sent,queued")
      )
      yield* eventually(
        "the others rest",
        Effect.map(
          sql`SELECT FROM job_lanes WHERE queue = 'mail' AND waiting = 1
            AND due_at > now() + interval '10 seconds'`,
          ({ length }) => length === 2
        )
      )
      assert.strictEqual(askedFor(), asked)
      const { attempts } = (yield* get(`/${id}/attempts`)).json as {
        readonly attempts: ReadonlyArray<{ readonly route: string }>
      }
      assert.deepStrictEqual(new Set(attempts.map(({ route }) => route)), new Set(["direct"]))
      assert.strictEqual((yield* (yield* Readiness).ask("mail"))?.status, "up")
    })
  )
})
