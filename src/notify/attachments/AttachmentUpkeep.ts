import { Effect, Layer, Schedule } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import * as BlobSweeps from "#src/infra/blobs/BlobSweeps.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { AttachmentBlobs } from "./AttachmentBlobs.ts"
import { Attachments } from "./Attachments.ts"

/** Attachments that have expired go; a directory of their own is looked after as that of all rooms is. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { sweep } = yield* Attachments
    const { own } = yield* AttachmentBlobs
    return Layer.mergeAll(
      Sweeps.layer({ name: "attachments", every: "attachmentSweepEveryMillis", run: sweep }),
      Layer.effectDiscard(Effect.suspend(() => shown)),
      own === undefined
        ? Layer.empty
        : BlobSweeps.layerOf(own, { component: "attachments", labels: { directory: "attachments" } })
    )
  })
)

const shown = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const { keptBytes } = yield* Attachments
  let bytes = 0
  const count = Effect.map(keptBytes, (counted) => void (bytes = counted)).pipe(
    Effect.catch((error) => Effect.logDebug("attachments were not counted", error))
  )
  yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.attachmentCountsMillis)))
  yield* SampledMetrics.register([
    ["signalbox_notify_attachment_bytes", "Bytes of attachments that are kept, of all owners", () => bytes]
  ])
})
