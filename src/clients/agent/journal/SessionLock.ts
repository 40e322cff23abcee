import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"

/**
 * The holder of a session on this machine. It is named by the file `lock.<n>` of the highest `n`, made by linking,
 * which fails where it exists. The highest file is never removed, only emptied, or outlived by its process; so two that
 * take over from the same dead holder try for the same name.
 */
const Holder = Schema.fromJsonString(
  Schema.Struct({ pid: Schema.Int, began: Schema.String.annotate({ description: "Of the process" }) })
)

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : ""

/** When the process began, in the system's own measure: process ids come back. "" where the system does not say. */
const beganOf = (pid: number): string => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The second field is the program's name in parentheses and may hold anything; the 22nd is the start time.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ESRCH") return ""
    throw error
  }
}

const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === "EPERM"
  }
}

const generationsIn = (directory: string): ReadonlyArray<number> =>
  readdirSync(directory)
    .flatMap((name) => /^lock\.(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => b - a)

/** The process that holds it by this file; undefined where it let go or is dead. */
const holderOf = (file: string): number | undefined => {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
  const holder = Schema.decodeUnknownOption(Holder)(text)
  if (holder._tag === "None") return undefined
  const { began, pid } = holder.value
  return lives(pid) && beganOf(pid) === began ? pid : undefined
}

export type LockAnswer =
  | { readonly held: true; readonly release: () => void }
  | { readonly held: false; readonly byPid: number }

const tryFor = (directory: string, generation: number): boolean => {
  const draft = join(directory, `draft.${process.pid}.${Math.random().toString(36).slice(2)}`)
  writeFileSync(draft, JSON.stringify({ pid: process.pid, began: beganOf(process.pid) }), { mode: 0o600 })
  try {
    linkSync(draft, join(directory, `lock.${generation}`))
    return true
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

const letGo = (file: string): void => {
  try {
    truncateSync(file)
  } catch (error) {
    // Somebody has removed what this client kept: then there is nothing to let go.
    if (codeOf(error) !== "ENOENT") throw error
  }
}

/** Takes the session for this process, or says who has it. Throws what the file system says. */
export const lockSession = (directory: string): LockAnswer => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  for (;;) {
    const [newest = 0] = generationsIn(directory)
    const byPid = newest === 0 ? undefined : holderOf(join(directory, `lock.${newest}`))
    if (byPid !== undefined) return { held: false, byPid }
    const mine = newest + 1
    if (!tryFor(directory, mine)) continue
    const generations = generationsIn(directory)
    const file = join(directory, `lock.${mine}`)
    // The name was free because its holder is long gone: a later holder has a higher one.
    if (generations[0] !== mine) {
      rmSync(file, { force: true })
      continue
    }
    for (const older of generations.slice(1)) rmSync(join(directory, `lock.${older}`), { force: true })
    return { held: true, release: () => letGo(file) }
  }
}
