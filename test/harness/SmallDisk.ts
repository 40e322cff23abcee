import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Requirement, requirement } from "./Requirement.ts"

const mount = (directory: string, mebibytes: number): string | undefined => {
  const { error, status, stderr } = spawnSync("mount", [
    "-t",
    "tmpfs",
    "-o",
    `size=${mebibytes}m,mode=755`,
    "tmpfs",
    directory
  ])
  return status === 0 ? undefined : (error?.message ?? String(stderr).trim())
}

const unmount = (directory: string): void => {
  spawnSync("umount", ["-l", directory])
}

export const smallDisk: Requirement = requirement("a file system of its own", () => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-mount-"))
  const problem = mount(directory, 1)
  if (problem === undefined) unmount(directory)
  rmSync(directory, { recursive: true })
  return problem === undefined ? undefined : `tmpfs cannot be mounted (${problem}); run as root`
})

/** A file system of so many mebibytes in a directory that it makes. */
export class SmallDisk {
  readonly directory: string
  private readonly ballast: string

  constructor(directory: string, mebibytes: number) {
    mkdirSync(directory, { recursive: true })
    const problem = mount(directory, mebibytes)
    if (problem !== undefined) throw new Error(problem)
    this.directory = directory
    this.ballast = join(directory, "ballast")
  }

  /** Takes all the space that is left, but for `spareBytes`. */
  async fill(spareBytes = 0): Promise<void> {
    const file = await open(this.ballast, "w")
    const chunk = Buffer.alloc(64 * 1024)
    let size = 0
    try {
      for (;;) size += (await file.write(chunk)).bytesWritten
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error
      await file.truncate(Math.max(0, size - spareBytes))
    } finally {
      await file.close()
    }
  }

  free(): Promise<void> {
    return rm(this.ballast)
  }

  remove(): void {
    unmount(this.directory)
  }
}
