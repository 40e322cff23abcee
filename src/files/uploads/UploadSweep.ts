import { Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { makeFinishing } from "./FinishedUploads.ts"
import { Uploads } from "./Uploads.ts"

/**
 * Makes files of uploads whose last request died behind its last byte, and forgets those that are over. One that cannot
 * become a file, as another version came between, waits for its client to ask.
 */
export const uploadSweep = Layer.unwrap(
  Effect.gen(function* () {
    const uploads = yield* Uploads
    const { finished } = yield* makeFinishing
    const { limits } = yield* AppConfig
    const finishLeft = Effect.gen(function* () {
      for (const upload of yield* uploads.left(limits.uploadSweepEveryMillis))
        yield* Effect.catch(finished(upload), (error) =>
          Effect.logDebug(`The upload ${upload.id} is complete and becomes no file`, error)
        )
    })
    return Sweeps.layer({
      name: "uploads",
      every: "uploadSweepEveryMillis",
      run: Effect.andThen(finishLeft, uploads.sweep)
    })
  })
)
