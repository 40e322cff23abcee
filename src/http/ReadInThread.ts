import { Effect } from "effect"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { Limits } from "#src/Limits.ts"
import type { Workers } from "#src/infra/workers/Workers.ts"
import { type JsonBounds, jsonExcess } from "#schemas/core/JsonBounds.ts"

/** A body of more values takes some milliseconds to read. */
export const inPlaceBounds: JsonBounds = { members: 4_000, values: 40_000 }

const unread = ServiceUnavailable.of("Too many large requests are being read; try again")

interface Reading {
  readonly owner: string
  /** has a job that reads `bytes` within bounds of its own, so that a thread is safe */
  readonly module: URL
  /** is moved, not copied */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly more?: object
}

/** Whether a body is read in a thread: it is long, or has many values. */
export const isForThread = (bytes: Uint8Array, limits: Limits): boolean =>
  bytes.length > limits.mcpInPlaceBytes ||
  jsonExcess(bytes, { ...inPlaceBounds, depth: Infinity }) !== undefined

/** Reads a body in a thread; answers what the job made of it. */
export const readInThread = (
  workers: Workers["Service"],
  limits: Limits,
  { bytes, module, more, owner }: Reading
): Effect.Effect<unknown, ServiceUnavailable> =>
  workers
    .run({
      kind: {
        module,
        isolation: "thread",
        deadlineMillis: limits.mcpReadMillis,
        memoryMegabytes: limits.mcpReadHeapMegabytes
      },
      owner,
      ask: { ...more, bytes },
      transfer: [bytes.buffer]
    })
    .pipe(
      Effect.tapError((failure) =>
        failure.reason === "busy"
          ? Effect.void
          : Effect.logWarning("A large request could not be read", failure)
      ),
      Effect.mapError(() => unread)
    )
