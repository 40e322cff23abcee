import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

/** Writes a file that only its owner can read (mode 0600), whole or not at all. */
export const writePrivate = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, text, { mode: 0o600 })
  renameSync(temporary, path)
}

/** The file's text; undefined when there is none. */
export const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
    throw error
  }
}
