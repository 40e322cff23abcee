import { statfsSync } from "node:fs"

/** ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS. Source: statfs(2). */
const local = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010])

/** Whether times of change there are of this machine's clock, and renaming sets them. Over a network they may not. */
export const hasLocalTimes = (root: string): boolean => local.has(statfsSync(root).type)

/** Steps in which the times of a file system move, and more. */
const stepMillis = 20

/** The moment at which a command began. No program can set a time of change: older files are not the command's. */
export class Beginning {
  readonly #isLocal: boolean
  readonly #wall = Date.now()
  readonly #steady = performance.now()

  constructor(isLocal: boolean) {
    this.#isLocal = isLocal
  }

  /** Milliseconds since 1970, before which nothing of the command's was changed; 0 where that cannot be known. */
  get since(): number {
    const drift = Date.now() - this.#wall - (performance.now() - this.#steady)
    return this.#isLocal && Math.abs(drift) < stepMillis / 2 ? this.#wall - stepMillis : 0
  }
}
