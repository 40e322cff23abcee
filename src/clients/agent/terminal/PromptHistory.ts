import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync, appendFileSync } from "node:fs"
import { dirname } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"

/** The limits of the stored history. */
export const historyLimits = { entries: 100, entryCharacters: 16_384, fileEntries: 400 } as const

/** The history of prompts, over the runs of this program: a file that only its owner reads, one JSON text a line. */
export class PromptHistory {
  readonly #file: string
  #lines = 0

  constructor(file: string) {
    this.#file = file
  }

  /** Oldest first. Lines that are no text are left out. */
  load(): ReadonlyArray<string> {
    const entries = this.#read().flatMap(entryOf)
    this.#lines = entries.length
    if (entries.length > historyLimits.fileEntries) this.#rewrite(entries.slice(-historyLimits.entries))
    return entries.slice(-historyLimits.entries)
  }

  add(text: string): void {
    if (text.length > historyLimits.entryCharacters) return
    appendFileSync(this.#file, `${JSON.stringify(text)}\n`, { mode: 0o600 })
    this.#lines += 1
    if (this.#lines > historyLimits.fileEntries) this.load()
  }

  #read(): ReadonlyArray<string> {
    try {
      const text = readFileSync(this.#file, "utf8")
      // Also if another program made it, or a copy changed it.
      chmodSync(this.#file, 0o600)
      return text.split("\n")
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 })
      return []
    }
  }

  #rewrite(entries: ReadonlyArray<string>): void {
    const fresh = `${this.#file}.${process.pid}`
    writeFileSync(fresh, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: 0o600 })
    renameSync(fresh, this.#file)
    this.#lines = entries.length
  }
}

const entryOf = (line: string): ReadonlyArray<string> => {
  if (line === "") return []
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === "string" && entry !== "" ? [entry] : []
  } catch (error) {
    // Torn by a crash while it was written.
    if (error instanceof SyntaxError) return []
    throw error
  }
}
