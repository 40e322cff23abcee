import { existsSync, readdirSync, readFileSync } from "node:fs"
import { extname, join, normalize } from "node:path"
import { staticBody, type StaticBodies } from "#src/http/StaticAnswer.ts"

/** The built page, read once at the start: some fifty kilobytes, in three encodings. */
export interface ConsoleFiles {
  /** undefined where no file of the page has that name */
  file(name: string): ConsoleFile | undefined
}

export interface ConsoleFile {
  readonly contentType: string
  /** whether the name changes with the content; the page's own name never does */
  readonly isHashed: boolean
  readonly bodies: StaticBodies
}

/** The output directory of `deploy/setup/console.mjs`. */
const home = normalize(join(import.meta.dirname, "../../.runtime/console"))

/** The name of the page itself. */
export const pageName = "index.html"

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8"
}

/** Reads the built page; undefined where it was not built. */
export const readConsoleFiles = (directory = home): ConsoleFiles | undefined => {
  if (!existsSync(join(directory, pageName))) return undefined
  const files = new Map<string, ConsoleFile>()
  for (const name of readdirSync(directory)) {
    const contentType = contentTypes[extname(name)]
    if (contentType === undefined) continue
    const body = (suffix: string) => staticBody(readFileSync(join(directory, `${name}${suffix}`)))
    const bodies = { identity: body(""), gzip: body(".gz"), br: body(".br") }
    files.set(name, { contentType, isHashed: name !== pageName, bodies })
  }
  return { file: (name) => files.get(name) }
}
