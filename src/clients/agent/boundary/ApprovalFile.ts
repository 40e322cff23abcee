import { createHash, randomBytes } from "node:crypto"
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
import { lockSession } from "../journal/SessionLock.ts"
import { systemCode } from "../tools/ToolFailure.ts"
import { Rule } from "./Rule.ts"

const fileBytes = 8 * 1024 * 1024
const othersMayWrite = 0o022
const lockMillis = 2_000
const lockPollMillis = 10

/** One approval that is kept: an exact question by its `key`, or a rule. */
export const Granted = Schema.Struct({
  id: Schema.NonEmptyString,
  /** root of the workspace that it holds in */
  workspace: Schema.NonEmptyString,
  kinds: Schema.Array(Schema.String),
  /** in words, for the list */
  covers: Schema.String,
  /** ISO 8601; null: an earlier version did not note it */
  given: Schema.NullOr(Schema.String),
  key: Schema.optionalKey(Schema.String),
  rule: Schema.optionalKey(Rule)
})
export type Granted = typeof Granted.Type

const Current = Schema.Struct({ version: Schema.Literal(2), approvals: Schema.Array(Schema.Unknown) })
/** By workspace the keys of what was allowed: the first form of the file. */
const First = Schema.Record(Schema.String, Schema.Array(Schema.String))

const decodeCurrent = Schema.decodeUnknownResult(Current)
const decodeFirst = Schema.decodeUnknownResult(First)
const decodeGranted = Schema.decodeUnknownResult(Granted)

export interface Contents {
  readonly granted: ReadonlyArray<Granted>
  /** entries of another version: they count for nothing, and stay in the file */
  readonly strange: ReadonlyArray<unknown>
  /** why nothing in the file counts, and the remedy; absent: all is well */
  readonly problem?: string
}

const nothing: Contents = { granted: [], strange: [] }

export const approvalFile = (directory: string): string => join(directory, "approvals.json")

const damaged = (path: string, why: string): Contents => ({
  ...nothing,
  problem: `${path} ${why}: nothing in it counts, and nothing is kept in it. Mend it, or remove it to begin anew`
})

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** The coverage of a key of the first form. */
const coversOf = (key: string): { readonly kinds: ReadonlyArray<string>; readonly covers: string } => {
  const value = parsed(key)
  const [first, second] = Array.isArray(value) ? (value as ReadonlyArray<unknown>) : []
  if (first === "plain commit")
    return { kinds: ["commit"], covers: "git add, commit, status, diff, log and show" }
  if (first === "hard_link") return { kinds: ["hard_link"], covers: `Replacing ${String(second)}` }
  const kinds = Array.isArray(first) ? first.map(String) : []
  return { kinds, covers: typeof second === "string" ? `Exactly: ${second}` : key }
}

const idOf = (text: string): string => `ap_${createHash("sha256").update(text).digest("hex").slice(0, 12)}`

const ofFirst = (value: typeof First.Type): Contents => ({
  ...nothing,
  granted: Object.entries(value).flatMap(([workspace, keys]) =>
    keys.map((key) => ({ id: idOf(`${workspace}\n${key}`), workspace, key, given: null, ...coversOf(key) }))
  )
})

const contentsOf = (path: string, text: string): Contents => {
  const value = parsed(text)
  if (value === undefined) return damaged(path, "is damaged (no JSON)")
  const current = decodeCurrent(value)
  if (Result.isSuccess(current)) {
    const entries = current.success.approvals.map((entry) => ({ entry, read: decodeGranted(entry) }))
    return {
      granted: entries.flatMap(({ read }) => (Result.isSuccess(read) ? [read.success] : [])),
      strange: entries.flatMap(({ entry, read }) => (Result.isSuccess(read) ? [] : [entry]))
    }
  }
  const first = decodeFirst(value)
  if (Result.isSuccess(first)) return ofFirst(first.success)
  return damaged(path, "is damaged (no list of approvals, or of a newer version)")
}

/** A file that others could have written is not believed: it would answer for the user. */
export const readApprovals = (directory: string): Contents => {
  const path = approvalFile(directory)
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT") return nothing
    return damaged(path, code === "ELOOP" ? "is a link" : `cannot be read (${code})`)
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return damaged(path, "is no file")
    const isOwn = process.getuid === undefined || stats.uid === process.getuid()
    if (process.platform !== "win32" && (!isOwn || (stats.mode & othersMayWrite) !== 0))
      return damaged(path, "can be written by others than you")
    if (stats.size > fileBytes) return damaged(path, `is larger than ${fileBytes} bytes`)
    return contentsOf(path, readFileSync(fd, "utf8"))
  } finally {
    closeSync(fd)
  }
}

const write = (directory: string, { granted, strange }: Contents): void => {
  const text = `${JSON.stringify({ version: 2, approvals: [...granted, ...strange] }, null, 2)}\n`
  if (Buffer.byteLength(text) > fileBytes)
    throw new Error(
      `${approvalFile(directory)} would be larger than ${fileBytes} bytes: revoke some approvals`
    )
  const temporary = `${approvalFile(directory)}.${randomBytes(6).toString("hex")}`
  const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeFileSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(temporary, approvalFile(directory))
}

const pause = new Int32Array(new SharedArrayBuffer(4))

/**
 * Reads the file, applies `change` and writes the result, with every other client of this user locked out, so that none
 * writes back a revoked rule. Throws where the file is damaged, locked for 2 s, or cannot be written.
 */
export const changeApprovals = (
  directory: string,
  change: (granted: ReadonlyArray<Granted>) => ReadonlyArray<Granted>
): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const until = performance.now() + lockMillis
  let lock = lockSession(join(directory, "approvals.lock"))
  while (!lock.held) {
    if (performance.now() > until)
      throw new Error(`${approvalFile(directory)} is being changed by process ${lock.byPid}`)
    Atomics.wait(pause, 0, 0, lockPollMillis)
    lock = lockSession(join(directory, "approvals.lock"))
  }
  try {
    const contents = readApprovals(directory)
    if (contents.problem !== undefined) throw new Error(contents.problem)
    const granted = change(contents.granted)
    if (granted !== contents.granted) write(directory, { ...contents, granted })
  } finally {
    lock.release()
  }
}
