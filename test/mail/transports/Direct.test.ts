import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Egress } from "#src/infra/egress/Egress.ts"
import { makeDirect } from "#src/mail/transports/Direct.ts"
import { MxFailed, type MxLookup } from "#src/mail/transports/MxHosts.ts"
import type { Handed } from "#src/mail/transports/Transport.ts"
import { smtpLimits } from "#src/mail/transports/SmtpLimits.ts"
import { certificateFor } from "#test/harness/Certificate.ts"
import { egressOf, test, TestNames } from "#test/infra/egress/EgressStage.ts"
import { type Sink, type SinkScript, startSink } from "#test/mail/SmtpSink.ts"
import { handoverOf } from "./RelayStage.ts"

/** Records as `priority host`, or the code of an error. */
type Zone = Readonly<Record<string, ReadonlyArray<string> | string>>

const lookUpIn =
  (zone: Zone): MxLookup =>
  (domain) => {
    const found = zone[domain] ?? "ENOTFOUND"
    if (typeof found === "string") return Effect.fail(new MxFailed({ code: found }))
    return Effect.succeed(
      found.map((record) => {
        const [priority = "", exchange = ""] = record.split(" ")
        return { priority: Number(priority), exchange }
      })
    )
  }

const names = new TestNames({
  "mx1.test": [["127.0.0.1"]],
  "mx2.test": [["127.0.0.1"]],
  "own.test": [["127.0.0.1"]],
  "plain.test": [["127.0.0.1"]],
  // Nothing listens there.
  "dead.test": [["127.0.0.9"]],
  "private.test": [["10.1.2.3"]],
  "half.test": [["127.0.0.1", "10.1.2.3"]]
})

type To = (domain: string, ending?: Effect.Effect<boolean>) => Effect.Effect<Handed>

const direct = <A>(zone: Zone, script: SinkScript, use: (to: To, sink: Sink) => Effect.Effect<A>) =>
  Effect.gen(function* () {
    const sink = yield* startSink(script)
    return yield* Effect.gen(function* () {
      const egress = yield* Egress
      const transport = makeDirect({
        egress,
        lookUp: lookUpIn(zone),
        hostname: "client.test",
        limits: smtpLimits,
        port: sink.port
      })
      const to: To = (domain, ending = Effect.succeed(true)) =>
        transport.handOver(handoverOf({ ending, envelope: { from: "from@sender.test", to: `to@${domain}` } }))
      return yield* use(to, sink)
    }).pipe(Effect.provide(egressOf({ allow: "127.0.0.0/8", names })))
  })

describe("mail without a relay", () => {
  test(
    "goes to the best server of the domain that answers, or to the domain where it names none",
    direct(
      {
        "many.test": ["30 dead.test", "20 mx2.test.", "10 dead.test", "20 MX1.test"],
        "plain.test": "ENODATA",
        "own-first.test": ["10 mx1.test", "20 client.test"]
      },
      {},
      (to, sink) =>
        Effect.gen(function* () {
          for (const domain of ["many.test", "plain.test", "own-first.test"])
            assert.deepStrictEqual(yield* to(domain), { _tag: "Sent", reply: "250 2.0.0 taken" }, domain)
          assert.deepStrictEqual(
            sink.accepted.map((one) => one.to[0]),
            ["to@many.test", "to@plain.test", "to@own-first.test"]
          )
        })
    )
  )

  test(
    "bounces where the domain is none, takes no mail, leads back here or has no public address",
    direct(
      {
        "null.test": ["0 ."],
        "circle.test": ["10 client.test", "20 mx1.test"],
        "inside.test": ["10 private.test"],
        "half.test": "ENODATA"
      },
      {},
      (to, sink) =>
        Effect.gen(function* () {
          for (const [domain, reply] of [
            ["unknown.test", /no such domain/],
            ["null.test", /null MX/],
            ["circle.test", /comes to this server/],
            ["inside.test", /private address/],
            ["half.test", /private address/]
          ] as const) {
            const handed = yield* to(domain)
            assert.strictEqual(handed._tag, "Bounced", domain)
            assert.match("reply" in handed ? handed.reply : "", reply)
          }
          assert.strictEqual(sink.connections().all, 0)
        })
    )
  )

  test(
    "waits where the name servers or the servers are away",
    direct({ "mute.test": "ETIMEOUT", "down.test": ["10 dead.test"] }, {}, (to) =>
      Effect.gen(function* () {
        for (const domain of ["mute.test", "down.test"])
          assert.deepInclude(yield* to(domain), { _tag: "RouteDown" }, domain)
      })
    )
  )

  test(
    "asks the next server where one closes, and none where one has refused or may have the message",
    Effect.gen(function* () {
      const zone = { "two.test": ["10 mx1.test", "20 mx2.test"] }
      for (const [script, tag, connections] of [
        [{ moves: { greeting: (nth: number) => (nth === 1 ? "421 no\r\n" : undefined) } }, "Sent", 2],
        [{ moves: { data: (nth: number) => (nth === 1 ? "drop" : undefined) } }, "Sent", 2],
        [{ moves: { mail: (nth: number) => (nth === 1 ? "452 no room\r\n" : undefined) } }, "Sent", 2],
        [{ moves: { mail: "553 not from you\r\n" } }, "SenderRefused", 1],
        [{ moves: { rcpt: "550 no\r\n" } }, "Bounced", 1],
        [{ moves: { rcpt: "450 no\r\n" } }, "Deferred", 1],
        [{ moves: { end: "drop" } }, "Unknown", 1]
      ] as const)
        yield* direct(zone, script, (to, sink) =>
          Effect.gen(function* () {
            assert.deepInclude(yield* to("two.test"), { _tag: tag })
            assert.strictEqual(sink.connections().all, connections, tag)
          })
        )
    })
  )

  test(
    "uses TLS with any certificate where it is offered, and plain text where it is refused or broken",
    Effect.gen(function* () {
      const tls = certificateFor(["other.test"])
      for (const [script, isTls] of [
        [{ tls }, true],
        [{}, false],
        [{ tls, moves: { starttls: "454 not today\r\n" } }, false],
        [{ tls, moves: { starttls: "220 go\r\n" }, isBroken: true }, false]
      ] as const) {
        const played =
          "isBroken" in script ? { ...script, tls: { ...tls, maxVersion: "TLSv1.1" as const } } : script
        yield* direct({ "one.test": ["10 mx1.test"] }, played, (to, sink) =>
          Effect.gen(function* () {
            assert.deepInclude(yield* to("one.test"), { _tag: "Sent" })
            assert.strictEqual(sink.accepted[0]?.isTls, isTls)
          })
        )
      }
    })
  )

  test(
    "is under way twice to one domain, which another one does not wait for",
    direct({ "one.test": ["10 mx1.test"], "two.test": ["10 mx2.test"] }, {}, (to, sink) =>
      Effect.gen(function* () {
        const underWay = { now: 0, most: 0 }
        const ending = Effect.gen(function* () {
          underWay.most = Math.max(underWay.most, ++underWay.now)
          if (underWay.now === 2) assert.deepInclude(yield* to("two.test"), { _tag: "Sent" })
          yield* Effect.sleep(20)
          underWay.now--
          return true
        })
        yield* Effect.all(
          Array.from({ length: 8 }, () => to("one.test", ending)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(underWay.most, 2)
        assert.isAbove(sink.accepted.length, 8)
      })
    )
  )
})
