import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { RelayHome } from "#src/agents/cluster/RelayHome.ts"
import { LinkGone, type ToHome } from "#src/agents/cluster/RelayRpcs.ts"
import { limits } from "#src/Limits.ts"
import { key } from "./Machine.ts"

const open: ToHome = { _tag: "Open", relay: 1, sessionId: "ses_0000000000000000000000", key }

describe("a home that is asked for a client", () => {
  const servesNobody = () => () => {
    throw new Error("nobody is to be served")
  }

  for (const [what, home] of [
    ["whose session is not here any more", { isHere: () => false, serve: servesNobody }],
    ["before its gateway is there", { isHere: () => true, serve: () => undefined }]
  ] as const) {
    it.effect(`sends one on ${what}`, () =>
      Effect.gen(function* () {
        const relays = new RelayHome(home, limits)
        const said = yield* Effect.forkChild(Stream.runCollect(Stream.take(relays.link("a"), 2)), {
          startImmediately: true
        })
        yield* relays.push("a", [open, { _tag: "Frame", relay: 1, text: "{}" }])
        assert.deepStrictEqual(yield* Fiber.join(said), [
          { _tag: "Linked" },
          { _tag: "Close", relay: 1, code: 1012, reason: "moved" }
        ])
        assert.strictEqual(relays.clients, 0)
      })
    )
  }

  it.effect("takes nothing from a link that it does not have", () =>
    Effect.gen(function* () {
      const relays = new RelayHome({ isHere: () => true, serve: servesNobody }, limits)
      assert.deepStrictEqual(yield* Effect.flip(relays.push("b", [open])), new LinkGone({ link: "b" }))
    })
  )
})
