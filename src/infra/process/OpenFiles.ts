import { readFileSync } from "node:fs"

/** How many files, sockets included, this process may have open; undefined where the system does not tell (not Linux). */
export const openFilesMax = (): number | undefined => {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}
