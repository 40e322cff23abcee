import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

/** Writes a file that only its owner can read (mode 0600), whole or not at all. */
export const writePrivate = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}`
  // On disk before it has its name: after a power cut the file is the old one or the new one, never a part.
  writeFileSync(temporary, text, { mode: 0o600, flush: true })
  renameSync(temporary, path)
}

/** The file's text; undefined when there is none. */
export const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    // ESRCH: a file of /proc whose process ended meanwhile.
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH"))
      return undefined
    throw error
  }
}
