import { Effect, Fiber, Layer, Schedule } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { BlobStore } from "./BlobStore.ts"
import type { BlobUpkeep } from "./BlobUpkeep.ts"

/** A directory of blobs beside the one of all rooms. */
interface Named {
  /** its line on `/readyz` */
  readonly component: string
  /** of its metrics */
  readonly labels: Readonly<Record<string, string>>
}

/**
 * Collects and checks blobs every so often, and shows them on `/readyz` and `/metrics`. A sweep is of one directory: one of
 * the processes that share it makes it.
 */
export const layerOf = ({ id, upkeep }: BlobStore["Service"], named: Named) =>
  Layer.mergeAll(
    Sweeps.layer({ name: `blobs-${id}`, every: "blobCollectEveryMillis", run: upkeep.collect }),
    Sweeps.layer({ name: `blob-checks-${id}`, every: "blobScrubEveryMillis", run: upkeep.scrub }),
    Layer.effectDiscard(shown(upkeep, named))
  )

/** The same for the directory of all rooms. */
export const layer = Layer.unwrap(
  Effect.map(BlobStore, (blobs) => layerOf(blobs, { component: "blobs", labels: {} }))
)

const shown = Effect.fnUntraced(function* (upkeep: BlobUpkeep, { component, labels }: Named) {
  const { limits } = yield* AppConfig
  const { register } = yield* Readiness
  const { haveRoom, recognise, totals } = upkeep
  let damaged = 0
  // One question at a time: a connection that hangs cannot be interrupted.
  let asking: Fiber.Fiber<void> | undefined
  const asked = upkeep.damaged.pipe(
    Effect.matchCause({ onSuccess: (blobs) => void (damaged = blobs), onFailure: () => undefined }),
    Effect.ensuring(Effect.sync(() => (asking = undefined)))
  )
  yield* register(
    component,
    Effect.gen(function* () {
      // Without Postgres it is what was known last; that it is away, or says nothing, is another component's line.
      asking ??= yield* Effect.forkDetach(asked)
      yield* Effect.timeoutOption(Fiber.await(asking), limits.readinessCheckMillis / 4)
      yield* recognise
      yield* Effect.mapError(haveRoom, () => ({ message: "the disk is full: uploads are refused" }))
      return damaged === 0 ? up : degraded(`${damaged} blobs are damaged or missing: reading them is 503`)
    }).pipe(Effect.catch(({ message }) => Effect.succeed(degraded(message))))
  )

  let counts = { blobs: 0, bytes: 0, damaged: 0 }
  const count = Effect.map(upkeep.counts, (counted) => void (counts = counted)).pipe(
    Effect.catch((error) => Effect.logDebug("blobs were not counted", error))
  )
  yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.blobCountsMillis)))
  yield* SampledMetrics.register(
    [
      ["signalbox_blobs", "Blobs in the directory of this process", () => counts.blobs],
      ["signalbox_blob_bytes", "Bytes of them", () => counts.bytes],
      ["signalbox_blobs_damaged", "Blobs that are known to be damaged or missing", () => counts.damaged],
      [
        "signalbox_blobs_damaged_total",
        "Blobs that this process found damaged or missing",
        () => totals.damaged
      ],
      [
        "signalbox_blobs_collected_total",
        "Blobs and stray files that this process removed",
        () => totals.collected
      ],
      [
        "signalbox_blobs_checked_bytes_total",
        "Bytes that this process compared with their hashes",
        () => totals.checkedBytes
      ]
    ],
    labels
  )
})
