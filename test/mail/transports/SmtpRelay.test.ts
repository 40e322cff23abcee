import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import * as fc from "fast-check"
import { certificateFor } from "#test/harness/Certificate.ts"
import { handoverOf, relayTo, soon, stage, text } from "./RelayStage.ts"

const seed = Number(process.env["SMTP_SEED"] ?? Date.now() % 2_147_483_647)

describe("messages to the relay", () => {
  it.live("arrive as they were given, over one connection, with the reply of the relay", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      for (let n = 0; n < 3; n++)
        assert.deepStrictEqual(yield* relay.handOver(handoverOf()), {
          _tag: "Sent",
          reply: "250 2.0.0 taken"
        })
      const one = { from: "from@sender.test", to: ["to@recipient.test"], message: text, isTls: false }
      assert.deepStrictEqual(sink.accepted, [one, one, one])
      assert.strictEqual(sink.connections().all, 1)
      assert.deepStrictEqual(sink.commands.slice(0, 4), [
        "EHLO client.test",
        "MAIL FROM:<from@sender.test>",
        "RCPT TO:<to@recipient.test>",
        "DATA"
      ])
    })
  )

  it.live(`keep every byte, however they are parted (SMTP_SEED=${seed})`, () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      const lines = fc.array(fc.array(fc.constantFrom(".", "..", "a", " ", "=", ".\r\n"), { maxLength: 8 }), {
        maxLength: 40
      })
      const cuts = fc.array(fc.nat(200), { maxLength: 6 })
      for (const [line, cut] of fc.sample(fc.tuple(lines, cuts), { numRuns: 100, seed })) {
        const whole = Buffer.from(`${line.map((parts) => parts.join("")).join("\r\n")}\r\n`)
        const at = [0, ...cut.toSorted((a, b) => a - b), whole.length]
        const message = at.slice(1).map((end, n) => whole.subarray(at[n], end))
        assert.deepInclude(yield* relay.handOver(handoverOf({ message })), { _tag: "Sent" })
        assert.strictEqual(sink.accepted.at(-1)?.message, whole.toString())
      }
    })
  )

  it.live("of 3 MiB in one part arrive whole", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      const whole = Buffer.from(".0123456789\r\n".repeat(240_000))
      assert.deepInclude(yield* relay.handOver(handoverOf({ message: [whole] })), { _tag: "Sent" })
      assert.isTrue(sink.accepted[0]?.message === whole.toString())
    })
  )

  it.live("are sent though the 250 takes its time", () =>
    Effect.gen(function* () {
      const { relay } = yield* stage({ moves: { end: { reply: "250 at last\r\n", afterMillis: 700 } } })
      assert.deepStrictEqual(yield* relay.handOver(handoverOf()), { _tag: "Sent", reply: "250 at last" })
    })
  )
})

describe("the end of a message", () => {
  it.live("leaves after `ending`, which runs when all other bytes have left", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      let runs = 0
      const ending = Effect.gen(function* () {
        runs++
        yield* soon("all but the dot is there", () => sink.underWay().endsWith("last\r\n"))
        assert.isEmpty(sink.accepted)
        return true
      })
      assert.deepInclude(yield* relay.handOver(handoverOf({ ending })), { _tag: "Sent" })
      assert.strictEqual(runs, 1)
    })
  )

  it.live("does not leave where another process has the delivery, and the connection goes", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      const handed = yield* relay.handOver(handoverOf({ ending: Effect.succeed(false) }))
      assert.deepStrictEqual(handed, { _tag: "Withdrawn" })
      yield* soon("it is closed", () => sink.connections().open === 0)
      assert.isEmpty(sink.accepted)
    })
  )

  it.live("does not leave where the connection was lost while it was written down", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      const ending = Effect.gen(function* () {
        sink.dropAll()
        yield* soon("it is closed", () => sink.connections().open === 0)
        yield* Effect.sleep(100)
        return true
      })
      assert.deepInclude(yield* relay.handOver(handoverOf({ ending })), { _tag: "RouteDown" })
      assert.isEmpty(sink.accepted)
    })
  )
})

describe("connections to the relay", () => {
  it.live("are ten at once; further messages wait", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage({ moves: { end: { reply: "250 ok\r\n", afterMillis: 20 } } })
      const handed = yield* Effect.all(
        Array.from({ length: 35 }, () => relay.handOver(handoverOf())),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(new Set(handed.map(({ _tag }) => _tag)), new Set(["Sent"]))
      assert.strictEqual(sink.accepted.length, 35)
      assert.strictEqual(sink.connections().most, 10)
    })
  )

  it.live("carry as many messages as they may, then end with QUIT", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage({}, { limits: { smtpMessagesPerConnection: 3 } })
      for (let n = 0; n < 7; n++) assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" })
      assert.deepStrictEqual(
        { all: sink.connections().all, most: sink.connections().most },
        { all: 3, most: 1 },
        "a new one is opened when the old one is gone"
      )
      assert.strictEqual(sink.commands.filter((line) => line === "QUIT").length, 2)
    })
  )

  it.live("end with QUIT when they are idle, and with the transport", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage({}, { limits: { smtpIdleMillis: 50 } })
      yield* relay.handOver(handoverOf())
      yield* soon("it is closed", () => sink.connections().open === 0)
      assert.include(sink.commands, "QUIT")
      yield* Effect.scoped(Effect.flatMap(relayTo(sink.port), (other) => other.handOver(handoverOf())))
      yield* soon("it is closed", () => sink.connections().open === 0)
    })
  )

  it.live("that the relay closed meanwhile are replaced, which is no fault of the route", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage()
      const ways: ReadonlyArray<() => void> = [
        () => sink.dropAll(),
        () => sink.say("421 4.4.2 idle for too long\r\n"),
        // The relay has forgotten the connection, and says so when it is used.
        () => sink.play({ moves: { mail: (nth) => (nth === 1 ? "drop" : undefined) } }),
        () => sink.play({ moves: { mail: (nth) => (nth === 1 ? "421 4.4.2 too late\r\n" : undefined) } })
      ]
      for (const way of ways) {
        yield* relay.handOver(handoverOf())
        way()
        assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" }, String(way))
      }
      assert.strictEqual(sink.accepted.length, 2 * ways.length)
    })
  )

  it.live("are used again after a refused recipient, with RSET between", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage({
        moves: { rcpt: (nth) => (nth === 1 ? "550 5.1.1 no such user\r\n" : undefined) }
      })
      assert.deepStrictEqual(yield* relay.handOver(handoverOf()), {
        _tag: "Bounced",
        reply: "550 5.1.1 no such user"
      })
      assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" })
      assert.strictEqual(sink.connections().all, 1)
      assert.include(sink.commands, "RSET")
    })
  )

  it.live("end with an interruption, and give their place to others", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage({ moves: { end: "stall" } }, { limits: { smtpConnections: 1 } })
      for (const script of [
        { moves: { greeting: "stall" }, step: "" },
        { moves: { mail: "stall" }, step: "MAIL" },
        { moves: { end: "stall" }, step: "DATA" }
      ] as const) {
        sink.play({ moves: script.moves })
        sink.dropAll()
        const before = sink.commands.length
        const fiber = yield* Effect.forkChild(relay.handOver(handoverOf()))
        yield* soon(
          `it waits for ${script.step}`,
          () => sink.connections().open === 1 && sink.commands.slice(before).join().includes(script.step)
        )
        yield* Fiber.interrupt(fiber)
        yield* soon("it is closed", () => sink.connections().open === 0)
      }
      sink.play({})
      const waits = yield* Deferred.make<boolean>()
      const first = yield* Effect.forkChild(relay.handOver(handoverOf({ ending: Deferred.await(waits) })))
      yield* soon("all but the dot is there", () => sink.underWay().includes("last"))
      yield* Fiber.interrupt(first)
      const taken = sink.accepted.length
      assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" })
      assert.strictEqual(sink.accepted.length, taken + 1, "the interrupted one was not ended")
    })
  )
})

const login = { user: "ada", password: Redacted.make("s3cret-word") }
const certificate = certificateFor(["127.0.0.1"])

describe("TLS to the relay", () => {
  for (const tls of ["implicit", "required"] as const)
    it.live(`is ${tls}, with a login inside it`, () =>
      Effect.gen(function* () {
        const { relay, sink } = yield* stage(
          { tls: certificate, isImplicit: tls === "implicit", auth: "PLAIN" },
          { server: { tls, login }, certificates: certificate.cert }
        )
        assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" })
        assert.isTrue(sink.accepted[0]?.isTls)
        assert.include(sink.commands, `AUTH PLAIN ${Buffer.from("\0ada\0s3cret-word").toString("base64")}`)
      })
    )

  it.live(
    "that is stripped, refused or certified for another host is no route, and no password goes out",
    () =>
      Effect.gen(function* () {
        const other = certificateFor(["other.test"])
        for (const [script, certificates] of [
          [{ auth: "PLAIN" }, certificate.cert],
          [
            { auth: "PLAIN", tls: certificate, moves: { starttls: "454 4.7.0 not today\r\n" } },
            certificate.cert
          ],
          [{ auth: "PLAIN", tls: certificate, moves: { starttls: "drop" } }, certificate.cert],
          [{ auth: "PLAIN", tls: other }, other.cert],
          [{ auth: "PLAIN", tls: certificate }, other.cert],
          [{ auth: "PLAIN", tls: other, isImplicit: true }, other.cert]
        ] as const) {
          const tls = "isImplicit" in script ? "implicit" : "required"
          const { relay, sink } = yield* stage(script, { server: { tls, login }, certificates })
          assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "RouteDown" })
          assert.notMatch(sink.commands.join("\n"), /AUTH|MAIL/)
        }
      })
  )

  it.live("begins anew after STARTTLS: bytes from before it count for nothing", () =>
    Effect.gen(function* () {
      const { relay, sink } = yield* stage(
        { tls: certificate, moves: { starttls: "220 go\r\n250-injected\r\n250 AUTH PLAIN\r\n" } },
        { server: { tls: "required" }, certificates: certificate.cert }
      )
      assert.deepInclude(yield* relay.handOver(handoverOf()), { _tag: "Sent" })
      assert.isTrue(sink.accepted[0]?.isTls)
    })
  )
})

describe("replies", () => {
  it.live("are kept as one line of 500 characters without control characters", () =>
    Effect.gen(function* () {
      const { relay } = yield* stage({
        moves: { rcpt: `550-5.1.1 no\u0007\u001b[31m\r\n550-5.1.1 such\r\n550 5.1.1 ${"é".repeat(600)}\r\n` }
      })
      const handed = yield* relay.handOver(handoverOf())
      assert.isTrue(handed._tag === "Bounced" && handed.reply.length === 500)
      assert.match(
        "reply" in handed ? handed.reply : "",
        /^550-5\.1\.1 no \[31m 550-5\.1\.1 such 550 5\.1\.1 é+$/
      )
    })
  )

  it.live("to a login say nothing of the password, though a relay repeats it", () =>
    Effect.gen(function* () {
      const { relay } = yield* stage(
        { auth: "PLAIN", moves: { auth: (_, line) => `535 5.7.8 refused: ${line} s3cret-word\r\n` } },
        { server: { login } }
      )
      assert.deepStrictEqual(yield* relay.handOver(handoverOf()), {
        _tag: "RouteDown",
        reply: "535 5.7.8 refused: AUTH PLAIN … …"
      })
    })
  )
})
