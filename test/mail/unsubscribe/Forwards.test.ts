import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Egress } from "#src/infra/egress/Egress.ts"
import { makeForward } from "#src/mail/unsubscribe/Forwards.ts"
import { HttpReceiver, type Reaction } from "#test/harness/HttpReceiver.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { addDelivery, loopback } from "../suppressions/SuppressionStage.ts"

const stage = Egress.layer.pipe(Layer.provideMerge(TestStores.layerWith({ egressAllow: loopback })))

/** The outcome of an attempt at a delivery whose message names this address. */
const outcomeOf = Effect.fnUntraced(function* (url: string | null, attempt = 1) {
  const delivery = yield* addDelivery({ owner: "usr", address: "ada@example.org", url })
  const { _tag, error, restMillis } = yield* (yield* makeForward())({ attempt, payload: { delivery } })
  return { _tag, error, restMillis }
})

const answering = (reaction: Reaction) =>
  Effect.acquireRelease(
    Effect.promise(() => HttpReceiver.start(reaction)),
    (one) => Effect.promise(() => one.close())
  )

layer(stage, { excludeTestServices: true })("senders' own unsubscribe addresses", (it) => {
  it.effect("are told where they answer 2xx, and asked later where they may answer so then", () =>
    Effect.gen(function* () {
      for (const status of [200, 202, 204])
        assert.strictEqual((yield* outcomeOf((yield* answering({ status })).origin))._tag, "Done")
      for (const status of [408, 425, 429, 500, 503])
        assert.deepInclude(yield* outcomeOf((yield* answering({ status })).origin), {
          _tag: "Again",
          error: `it answered ${status}`
        })
      assert.strictEqual((yield* outcomeOf((yield* answering("cut")).origin))._tag, "Again")
    })
  )

  it.effect("are given up where they refuse, redirect, or are at an address that is not to be asked", () =>
    Effect.gen(function* () {
      const elsewhere = yield* answering({ status: 200 })
      for (const reaction of [{ status: 400 }, { status: 404 }, { redirectTo: elsewhere.origin }])
        assert.strictEqual((yield* outcomeOf((yield* answering(reaction)).origin))._tag, "Dead")
      assert.lengthOf(elsewhere.received, 0)
      const refused = [
        "https://10.0.0.1/",
        "https://169.254.169.254/x",
        "https://[::1]/",
        "http://93.184.216.34/"
      ]
      for (const url of refused) assert.strictEqual((yield* outcomeOf(url))._tag, "Dead", url)
    })
  )

  it.effect("wait longer before each attempt", () =>
    Effect.gen(function* () {
      const { origin } = yield* answering({ status: 500 })
      const waits = yield* Effect.forEach([1, 2, 3, 4], (attempt) =>
        Effect.map(outcomeOf(origin, attempt), ({ restMillis }) => restMillis / 60_000)
      )
      assert.deepStrictEqual(waits, [1, 10, 60, 360])
    })
  )

  it.effect("are not asked where the message has none", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* outcomeOf(null))._tag, "Done")
    })
  )
})
