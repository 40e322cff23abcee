import { closeSync, readSync } from "node:fs"
import { locate, openFile, type Workspace } from "../boundary/Walk.ts"
import { partsOf } from "../boundary/WorkspacePath.ts"
import { failureOf } from "../tools/FailureOf.ts"

const imageBytesMax = 5 * 1024 * 1024

type ImageRead =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly code: string; readonly problem: string }
export type ImageReader = (path: string) => ImageRead

const readAtMost = (fd: number, size: number): Uint8Array => {
  const bytes = Buffer.alloc(size)
  let at = 0
  for (;;) {
    const read = readSync(fd, bytes, at, bytes.length - at, null)
    at += read
    if (read === 0 || at === bytes.length) return bytes.subarray(0, at)
  }
}

/** Reads images of the workspace the way its tools read files: through no link that leads out. */
export const imageReader =
  (workspace: Workspace): ImageReader =>
  (path) => {
    try {
      const place = locate(workspace, partsOf(workspace.jail.root, path), "read")
      try {
        const { fd } = openFile(place)
        try {
          const bytes = readAtMost(fd, imageBytesMax + 1)
          if (bytes.length <= imageBytesMax) return { ok: true, bytes }
          return { ok: false, code: "too_large", problem: `@${path} is larger than 5 MiB` }
        } finally {
          closeSync(fd)
        }
      } finally {
        place.directory.close()
      }
    } catch (error) {
      const { code, message } = failureOf(error, path)
      return { ok: false, code, problem: `@${path}: ${message}` }
    }
  }
