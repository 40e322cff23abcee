import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { certificateFor } from "#test/harness/Certificate.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { hurry, impatient, Relay, relayedServer, smtpServerAt, withLogin } from "./RelayedServer.ts"
import { type Move, type Sink, type SinkScript, type SinkStep, startSink } from "./SmtpSink.ts"
import { live, makeStageOf, type ReadEmail } from "./Stage.ts"

interface Listed {
  readonly attempts: ReadonlyArray<{
    readonly address: string
    readonly outcome: string
    readonly reply: string
  }>
}

const to = "ada@example.org, bob@example.org"

/** An administrator, and a relay that plays by the moves from now on. */
const makeRelayed = Effect.fnUntraced(function* (moves: SinkScript["moves"]) {
  const relay = yield* Relay
  relay.play(withLogin(moves))
  // A connection that is open is not greeted, and not logged in to.
  relay.dropAll()
  return { ...(yield* makeStageOf("admin")), relay }
})

const statesOf = ({ recipients }: ReadEmail) =>
  recipients.map(({ attempts, status }) => [status, attempts] as const)

/** How often the sink took a mail for somebody; no other has the same Message-ID. */
const copiesOf = ({ accepted }: Pick<Sink, "accepted">, id: string, address: string): number =>
  accepted.filter((one) => one.to.includes(address) && one.message.includes(`<${id}@`)).length

const hasAll = (email: ReadEmail, state: readonly [status: string, attempts: number]): boolean =>
  statesOf(email).every(([status, attempts]) => status === state[0] && attempts === state[1])

/** A fault of a relay at a step of somebody's transaction, and what becomes of the recipient. */
const ofRecipients: ReadonlyArray<readonly [step: SinkStep, move: Move, status: string, outcome: string]> = [
  ["rcpt", "451 4.3.0 later\r\n", "deferred", "deferred"],
  ["data", "451 4.3.0 later\r\n", "deferred", "deferred"],
  ["end", "451 4.3.0 later\r\n", "deferred", "deferred"],
  ["rcpt", "554 5.7.1 never\r\n", "bounced", "bounced"],
  ["data", "554 5.7.1 never\r\n", "bounced", "bounced"],
  ["end", "554 5.7.1 never\r\n", "bounced", "bounced"],
  ["end", "drop", "deferred", "unknown"],
  ["end", "\u0000\u00ff garbage\r\n", "deferred", "unknown"]
]

const routeMoves: ReadonlyArray<Move> = [
  "drop",
  "stall",
  "421 4.3.2 closing\r\n",
  "\u0000\u00ff garbage\r\n",
  "999 garbage\r\n"
]

const ofRoute: ReadonlyArray<readonly [step: SinkStep, move: Move]> = [
  ...(["greeting", "ehlo", "auth", "mail"] as const).flatMap((step) =>
    [...routeMoves, "450 4.2.1 later\r\n", "550 5.1.1 never\r\n"].map((move) => [step, move] as const)
  ),
  ...(["rcpt", "data"] as const).flatMap((step) => routeMoves.map((move) => [step, move] as const))
]

const name = (step: SinkStep, move: Move): string => `${step}: ${JSON.stringify(move)}`

/** Stalls end soon; a healthy transaction that a busy machine makes as slow is tried again. */
const limits = {
  ...impatient,
  smtpOpeningMillis: 1_000,
  smtpCommandMillis: 1_000,
  smtpEnvelopeMillis: 1_000,
  mailProbeMillis: 50
}

layer(relayedServer({ limits }), live)("a relay that fails", (it) => {
  it.effect(
    "at a recipient is that recipient's, and no address is suppressed that is not said to be gone",
    () =>
      Effect.gen(function* () {
        for (const [step, move, status, outcome] of ofRecipients) {
          const { get, read, relay, sent } = yield* makeRelayed({ [step]: move })
          const id = yield* sent({ to })
          yield* eventually(
            `${name(step, move)} is ${status}`,
            Effect.map(read(id), (email) => hasAll(email, [status, 1]))
          )
          const { attempts } = (yield* get(`/${id}/attempts`)).json as Listed
          assert.deepStrictEqual(
            attempts.map((one) => one.outcome),
            [outcome, outcome],
            name(step, move)
          )
          if (outcome !== "unknown")
            for (const { reply } of attempts) assert.strictEqual(reply, String(move).trim())
          for (const address of to.split(", "))
            assert.strictEqual(copiesOf(relay, id, address), outcome === "unknown" ? 1 : 0, name(step, move))
          const { suppressions } = (yield* get("/suppressions")).json as {
            readonly suppressions: ReadonlyArray<unknown>
          }
          assert.deepStrictEqual(suppressions, [], name(step, move))
        }
      })
  )

  it.effect(
    "anywhere else is no recipient's: the mail waits without an attempt, and goes when it is well",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* Readiness
        const waiting: Array<readonly [id: string, stage: Effect.Success<ReturnType<typeof makeRelayed>>]> =
          []
        for (const [step, move] of ofRoute) {
          const stage = yield* makeRelayed({ [step]: move })
          const said = stage.relay.commands.length
          const before = stage.relay.connections().all
          const id = yield* stage.sent({ to })
          yield* eventually(
            `${name(step, move)} was asked twice`,
            Effect.map(hurry, () => stage.relay.connections().all >= before + 2)
          )
          yield* eventually(
            `${name(step, move)} is on /readyz`,
            Effect.map(ask("mail"), (state) => state?.status === "degraded")
          )
          assert.isTrue(hasAll(yield* stage.read(id), ["queued", 0]), name(step, move))
          if (step === "greeting") assert.notInclude(stage.relay.commands.slice(said).join(), "AUTH")
          waiting.push([id, stage])
        }
        const relay = yield* Relay
        relay.play(withLogin())
        relay.dropAll()
        for (const [id, { get, read }] of waiting) {
          yield* eventually(
            "it has gone",
            Effect.andThen(
              hurry,
              Effect.map(read(id), (email) => hasAll(email, ["sent", 1]))
            )
          )
          for (const address of to.split(", ")) assert.strictEqual(copiesOf(relay, id, address), 1)
          const { suppressions } = (yield* get("/suppressions")).json as {
            readonly suppressions: ReadonlyArray<unknown>
          }
          assert.deepStrictEqual(suppressions, [])
        }
        assert.strictEqual((yield* ask("mail"))?.status, "up")
      })
  )

  it.effect("to answer soon is waited for, and has the mail once", () =>
    Effect.gen(function* () {
      const { read, relay, sent } = yield* makeRelayed({
        end: { reply: "250 2.0.0 taken\r\n", afterMillis: 4_000 }
      })
      const id = yield* sent({ to })
      yield* eventually(
        "it is sent",
        Effect.map(read(id), (email) => hasAll(email, ["sent", 1]))
      )
      for (const address of to.split(", ")) assert.strictEqual(copiesOf(relay, id, address), 1)
    })
  )
})

class SecureRelay extends Context.Service<SecureRelay, Sink>()("signalbox/test/SecureRelay") {
  static readonly layer = Layer.effect(SecureRelay, startSink(withLogin()))
}

const secured = Layer.unwrap(
  Effect.map(SecureRelay, (sink) =>
    TestServer.own({ smtpServer: { ...smtpServerAt(sink), tls: "required" }, limits })
  )
).pipe(Layer.provideMerge(SecureRelay.layer))

layer(secured, live)("a relay that STARTTLS is required of", (it) => {
  for (const [what, script, problem] of [
    ["does not offer it", {}, /STARTTLS/i],
    ["refuses it", { moves: { starttls: "454 4.7.0 not now\r\n" } }, /454/],
    ["has a certificate that nobody knows", {}, /certificate/i]
  ] satisfies ReadonlyArray<readonly [string, SinkScript, RegExp]>)
    it.effect(`and that ${what} is told no login and no mail`, () =>
      Effect.gen(function* () {
        const { ask } = yield* Readiness
        const relay = yield* SecureRelay
        const tls = what === "does not offer it" ? {} : { tls: certificateFor(["other.test"]) }
        relay.play({ ...withLogin(), ...script, ...tls })
        const { read, sent } = yield* makeStageOf("admin")
        const id = yield* sent({ to })
        yield* eventually(
          "the route pauses for it",
          Effect.andThen(
            hurry,
            Effect.map(ask("mail"), (state) => problem.test(state?.detail ?? ""))
          )
        )
        yield* eventually(
          "the mail waits for it",
          Effect.map(read(id), ({ recipients }) =>
            recipients.some(({ last_reply }) => problem.test(last_reply ?? ""))
          )
        )
        assert.isTrue(hasAll(yield* read(id), ["queued", 0]))
        assert.deepStrictEqual(relay.accepted, [])
        assert.deepStrictEqual(
          relay.commands.filter((line) => /^(AUTH|MAIL|RCPT|DATA)/i.test(line)),
          []
        )
      })
    )
})
