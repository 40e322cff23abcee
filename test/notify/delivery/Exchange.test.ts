import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Egress } from "#src/infra/egress/Egress.ts"
import { EgressFailed, EgressRefused } from "#src/infra/egress/EgressError.ts"
import { limits } from "#src/Limits.ts"
import * as DeliveryMetrics from "#src/notify/delivery/DeliveryMetrics.ts"
import { exchangeWith } from "#src/notify/delivery/Exchange.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { notice } from "#test/notify/channels/Notices.ts"

type Kind = EgressFailed["kind"]

/** An exchange with a webhook that gives these answers, statuses or faults, one after the other; 413 takes 20 ms. */
const exchangeOf = Effect.fnUntraced(function* (answers: ReadonlyArray<number | Kind | "refused">) {
  const times: Array<number> = []
  const nothing = Effect.die("no exchange needs it")
  const egress = Egress.of({
    resolve: () => nothing,
    connect: () => nothing,
    open: () => nothing,
    check: () => nothing,
    isHttpAllowed: () => false,
    fetch: ({ totalMillis = Infinity, url }) =>
      Effect.gen(function* () {
        const answer = answers[times.length] ?? 500
        times.push(totalMillis)
        if (answer === 413) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
        const host = "hook.test"
        if (answer === "refused") return yield* new EgressRefused({ host, reason: "private address" })
        if (typeof answer === "string") return yield* new EgressFailed({ host, kind: answer, problem: "no" })
        return {
          url: String(url),
          status: answer,
          header: () => undefined,
          body: new Uint8Array(),
          isCut: false
        }
      })
  })
  const vapid = new Vapid({ secret: randomBytes(32) })
  const metrics = yield* DeliveryMetrics.make
  const exchange = exchangeWith({ egress, telegram: { bot: undefined }, limits, metrics, vapid })
  const target = { url: "https://hook.test/", secret: webhookSecret(randomBytes(24)) }
  const exchanged = yield* exchange({ kind: "webhook", target, deadInARow: 0 }, notice)
  if ("restMillis" in exchanged) throw new Error("it was sent away")
  const { health, isBusy, verdict } = exchanged
  return { times, shown: [verdict._tag, health, ...(isBusy ? ["busy"] : [])].join(" ") }
})

describe("an exchange with a service", () => {
  it.effect(
    "speaks against the host where that fails, and not where the address or the message is at fault",
    () =>
      Effect.gen(function* () {
        const shown: Record<string, string> = {}
        const answers = [201, 400, 410, 429, 500, 503] as const
        const faults = ["name", "connect", "tls", "time", "answer", "size", "redirect", "request"] as const
        for (const answer of [...answers, ...faults, "busy", "refused"] as const)
          shown[answer] = (yield* exchangeOf([answer])).shown
        assert.deepStrictEqual(shown, {
          201: "Delivered well",
          400: "Dead well",
          410: "Gone well",
          429: "Again well",
          500: "Again failed",
          503: "Again failed",
          name: "Again failed",
          connect: "Again failed",
          tls: "Again failed",
          time: "Again failed",
          answer: "Again failed",
          size: "Again moot",
          redirect: "Dead moot",
          request: "Dead moot",
          busy: "Again moot busy",
          refused: "Dead moot"
        })
      })
  )

  it.effect("has the time of one request, for the smaller one too", () =>
    Effect.gen(function* () {
      const { shown, times } = yield* exchangeOf([413, 201])
      assert.strictEqual(shown, "Delivered well")
      const [first = 0, second = Infinity] = times
      assert.isAtMost(first, limits.egressTotalMillis)
      // Timers may be early by a millisecond.
      assert.isAtMost(second, limits.egressTotalMillis - 18)
      assert.strictEqual((yield* exchangeOf([413, 413])).shown, "Dead well")
    })
  )
})
