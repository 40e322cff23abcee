import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A directory of this machine, until the test ends. */
export const localDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-files-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)
