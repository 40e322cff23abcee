import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"

const address = Layer.succeed(UpstreamAddress, {
  url: "http://127.0.0.1:1/api/v1",
  apiKey: undefined,
  isSandbox: false
})

describe("a call of the upstream when the server has ended", () => {
  it.effect("fails later, never from within: its maker does not have it in hand before", () =>
    Effect.gen(function* () {
      const layer = Upstream.layer.pipe(Layer.provide([address, AppConfig.layerOf({})]))
      const upstream = yield* Effect.provide(Upstream, layer)
      const wasMade = yield* Effect.callback<boolean>((resume) => {
        let isMade = false
        upstream.post("/chat/completions", "{}", {
          head: () => assert.fail("nobody answers"),
          data: () => assert.fail("nobody answers"),
          ended: () => assert.fail("nobody answers"),
          failed: () => resume(Effect.succeed(isMade))
        })
        isMade = true
      })
      assert.isTrue(wasMade)
    })
  )
})
