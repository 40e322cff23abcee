import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { SmtpLimits } from "#src/mail/transports/SmtpLimits.ts"
import type { Handed } from "#src/mail/transports/Transport.ts"
import { type Move, type SinkScript, type SinkStep, startSink } from "#test/mail/SmtpSink.ts"
import { handoverOf, relayTo, soon, stage } from "./RelayStage.ts"

type Tag = Handed["_tag"]

/** The time for one step is short, so that a stall ends within the test; the others are as ever, however busy the machine. */
const shortAt = (step: SinkStep): Partial<SmtpLimits> => {
  if (step === "end") return { smtpEndMillis: 1_000 }
  if (step === "greeting" || step === "ehlo") return { smtpOpeningMillis: 1_000 }
  return step === "auth" ? { smtpCommandMillis: 1_000 } : { smtpEnvelopeMillis: 1_000 }
}

const isAnswered = (move: Move): boolean => typeof move === "string" && /^\d{3} .*\r\n$/s.test(move)

const login = { user: "ada", password: Redacted.make("secret") }

/** A message that was taken is called nothing but Sent or Unknown, and what is called Sent was taken. */
const assertTold = (handed: Handed, taken: number, what: string): void => {
  if (taken > 0) assert.oneOf(handed._tag, ["Sent", "Unknown"], what)
  if (handed._tag === "Sent") assert.strictEqual(taken, 1, what)
  assert.isAtMost(taken, 1, what)
}

const attempt = (script: SinkScript, changes: Parameters<typeof relayTo>[1] = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { relay, sink } = yield* stage(script, changes)
      const handed = yield* relay.handOver(handoverOf())
      assertTold(handed, sink.accepted.length, JSON.stringify(script))
      return { handed, sink }
    })
  )

/** The outcome of a move at each step where it is another than that of the first entry. */
const outcomes: ReadonlyArray<readonly [move: Move, usual: Tag, others: Partial<Record<SinkStep, Tag>>]> = [
  ["drop", "RouteDown", { end: "Unknown" }],
  ["stall", "RouteDown", { end: "Unknown" }],
  ["421 4.3.2 closing\r\n", "RouteDown", {}],
  ["450 4.2.1 later\r\n", "RouteDown", { rcpt: "Deferred", data: "Deferred", end: "Deferred" }],
  [
    "550 5.1.1 never\r\n",
    "RouteDown",
    { mail: "SenderRefused", rcpt: "Bounced", data: "Bounced", end: "Bounced" }
  ],
  ["\u0000\u00ff garbage\r\n", "RouteDown", { end: "Unknown" }],
  ["999 garbage\r\n", "RouteDown", { end: "Unknown" }],
  ["250", "RouteDown", { end: "Unknown" }],
  ["250-", "RouteDown", { end: "Unknown" }],
  ["x".repeat(100_000), "RouteDown", { end: "Unknown" }],
  ["250-and so on\r\n".repeat(10_000), "RouteDown", { end: "Unknown" }]
]

describe("a relay that fails", () => {
  for (const extensions of [["PIPELINING", "SIZE 1000000"], []])
    describe(extensions.length > 0 ? "with pipelining" : "without pipelining", () => {
      for (const [move, usual, others] of outcomes)
        it.live(
          `by ${JSON.stringify(move).slice(0, 40)} at any step is told by what it says of the recipient`,
          () =>
            Effect.gen(function* () {
              const steps: ReadonlyArray<SinkStep> = [
                "greeting",
                "ehlo",
                "auth",
                "mail",
                "rcpt",
                "data",
                "end"
              ]
              yield* Effect.forEach(
                steps,
                (step) =>
                  Effect.gen(function* () {
                    const script = { moves: { [step]: move }, extensions, auth: "PLAIN LOGIN" }
                    const { handed } = yield* attempt(script, {
                      limits: isAnswered(move) ? {} : shortAt(step),
                      server: { login }
                    })
                    assert.strictEqual(
                      handed._tag,
                      others[step] ?? usual,
                      `${step}: ${JSON.stringify(handed)}`
                    )
                  }),
                { concurrency: "unbounded", discard: true }
              )
            })
        )
    })

  it.live("at every byte of a transaction takes nothing that is not told as Sent or Unknown", () =>
    Effect.gen(function* () {
      const whole = yield* Effect.scoped(
        Effect.gen(function* () {
          const { relay, sink } = yield* stage()
          yield* relay.handOver(handoverOf())
          return sink.commands.join("\r\n").length + 2
        })
      )
      const { message } = handoverOf()
      // The two stuffed dots, and the final one with its line's end.
      const size = whole + message.reduce((sum, part) => sum + part.length, 0) + 2 + 3
      const tags = yield* Effect.forEach(
        Array.from({ length: size }, (_, n) => n + 1),
        (cutAfter) => Effect.map(attempt({ cutAfter }), ({ handed }) => handed._tag),
        { concurrency: 8 }
      )
      for (const [n, tag] of tags.entries())
        assert.oneOf(
          tag,
          n + 1 < whole ? ["RouteDown"] : ["RouteDown", "Unknown", "Sent"],
          `cut after ${n + 1}`
        )
      assert.oneOf(tags.at(-1), ["Unknown", "Sent"])
    })
  )

  it.live("by replies ahead of their commands is never taken for one that has the message", () =>
    Effect.gen(function* () {
      for (const extensions of [["PIPELINING"], []])
        for (let count = 1; count <= 6; count++)
          for (const step of ["ehlo", "mail", "rcpt", "data"] as const) {
            const usual = {
              ehlo: "250 sink\r\n",
              mail: "250 ok\r\n",
              rcpt: "250 ok\r\n",
              data: "354 go\r\n"
            }[step]
            const more = "250 2.0.0 taken\r\n".repeat(count)
            const { handed } = yield* attempt(
              { extensions, moves: { [step]: usual + more, end: "stall" } },
              { limits: shortAt("end") }
            )
            assert.oneOf(handed._tag, ["RouteDown", "Unknown"], `${step}, ${count} more`)
          }
    })
  )

  it.live("by a refusal in the middle of the message is told as it was said, and sends no dot", () =>
    Effect.gen(function* () {
      for (const [reply, tag] of [
        ["552 5.3.4 too large\r\n", "Bounced"],
        ["452 4.3.1 no room\r\n", "Deferred"],
        ["421 4.3.0 no\r\n", "RouteDown"],
        ["250 2.0.0 taken\r\n", "RouteDown"]
      ] as const) {
        const { relay, sink } = yield* stage()
        const ending = Effect.gen(function* () {
          sink.say(reply)
          yield* Effect.sleep(200)
          return true
        })
        assert.deepInclude(yield* relay.handOver(handoverOf({ ending })), { _tag: tag })
        yield* soon("it is closed", () => sink.connections().open === 0)
        assert.isEmpty(sink.accepted)
      }
    })
  )

  it.live("for the size of one message refuses that message only", () =>
    Effect.gen(function* () {
      const announced = yield* attempt({ extensions: ["SIZE 20"] })
      assert.deepStrictEqual(announced.handed, {
        _tag: "Bounced",
        reply: "Message size larger than allowed 20"
      })
      assert.notInclude(announced.sink.commands.join(), "MAIL")
      const refused = yield* attempt({ moves: { mail: "552 5.3.4 too large\r\n" } })
      assert.deepStrictEqual(refused.handed, { _tag: "Bounced", reply: "552 5.3.4 too large" })
    })
  )

  it.live("by not being there is a route that is down", () =>
    Effect.gen(function* () {
      const gone = yield* startSink()
      yield* gone.close
      const relay = yield* relayTo(gone.port)
      const handed = yield* relay.handOver(handoverOf())
      assert.isTrue(
        handed._tag === "RouteDown" && handed.reply.includes("ECONNREFUSED"),
        JSON.stringify(handed)
      )
    })
  )
})
