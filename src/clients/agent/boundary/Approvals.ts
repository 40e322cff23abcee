import { randomBytes } from "node:crypto"
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { systemCode } from "../tools/ToolFailure.ts"
import type { Approval, ApprovalAsk } from "./Approval.ts"

const fileName = "approvals.json"
const maxRemembered = 1_000

/** `always`, by workspace: the keys of what was allowed. */
const Remembered = Schema.Record(Schema.String, Schema.Array(Schema.String))
type Remembered = typeof Remembered.Type

/** What is asked, and the key under which an answer for longer than once is kept. */
export interface Question {
  readonly ask: ApprovalAsk
  /** two questions with one key are the same question; its words are `ask.scope` */
  readonly key: string
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A file that others could have written is not believed: it would answer for the user. */
const load = (path: string): Remembered => {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes(systemCode(error))) return {}
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile() || stats.uid !== process.getuid?.() || (stats.mode & 0o022) !== 0) return {}
    const result = Schema.decodeUnknownResult(Remembered)(parsed(readFileSync(fd, "utf8")))
    return Result.isSuccess(result) ? result.success : {}
  } finally {
    closeSync(fd)
  }
}

const store = (directory: string, remembered: Remembered): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, fileName)
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeFileSync(fd, `${JSON.stringify(remembered, null, 2)}\n`)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(temporary, path)
}

/** What the user allowed in one workspace: for this session in memory, for always in the client's configuration. */
export class Approvals {
  readonly #directory: string
  readonly #root: string
  readonly #session = new Set<string>()

  constructor(configDir: string, root: string) {
    this.#directory = configDir
    this.#root = root
  }

  /** Whether it may be done: as remembered, else as the user says. */
  async allows({ ask, key }: Question, approve: (ask: ApprovalAsk) => Promise<Approval>): Promise<boolean> {
    if (this.#session.has(key) || this.#always().includes(key)) return true
    const approval = await approve(ask)
    if (approval === "session") this.#session.add(key)
    if (approval === "always") this.#keep(key)
    return approval === "once" || approval === "session" || approval === "always"
  }

  #always(): ReadonlyArray<string> {
    const all = load(join(this.#directory, fileName))
    return Object.hasOwn(all, this.#root) ? (all[this.#root] ?? []) : []
  }

  #keep(key: string): void {
    const all = load(join(this.#directory, fileName))
    const kept = [...this.#always().filter((one) => one !== key), key].slice(-maxRemembered)
    store(this.#directory, { ...all, [this.#root]: kept })
  }
}
