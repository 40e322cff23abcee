import { renameSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { workerData } from "node:worker_threads"

/**
 * The attacker of the race test: exchanges, as fast as it can, a directory of the workspace with a link that leads out,
 * and a file with a link to a file outside. It counts its rounds in shared memory, and stops when told there.
 */
const { root, outside, counters } = workerData as {
  readonly root: string
  readonly outside: string
  readonly counters: SharedArrayBuffer
}
const shared = new Int32Array(counters)

/** Whether it was done; false where the client has just made something of that name, which it may. */
const done = (step: () => void): boolean => {
  try {
    step()
    return true
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    if (["EEXIST", "ENOTEMPTY", "EISDIR", "ENOTDIR"].includes(code)) return false
    throw error
  }
}

const exchange = (name: string, target: string): void => {
  const path = join(root, name)
  renameSync(path, `${path}.away`)
  done(() => symlinkSync(target, path))
  while (!done(() => rmSync(path, { recursive: true, force: true }))) Atomics.add(shared, 1, 1)
  while (!done(() => renameSync(`${path}.away`, path))) done(() => rmSync(path, { recursive: true }))
}

while (Atomics.load(shared, 0) === 0) {
  exchange("d", outside)
  exchange(join("d", "f"), join(outside, "f"))
  Atomics.add(shared, 1, 1)
}
