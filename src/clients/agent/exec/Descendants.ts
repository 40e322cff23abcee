import { randomBytes } from "node:crypto"
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { systemCode } from "../tools/ToolFailure.ts"

/**
 * The processes that a command without a sandbox starts in a session of their own (setsid, a daemon) leave its process
 * group, so they are found by two marks: a control group of the call, where this user may make one (cgroups(7), version
 * 2), and a variable in the environment, which is inherited (proc(5), /proc/PID/environ). A program that sheds both is
 * not found; without a sandbox it may do all that the user may.
 */
export interface Descendants {
  /** the command, started in the control group */
  readonly wrapped: { readonly file: string; readonly args: ReadonlyArray<string> }
  readonly env: Readonly<Record<string, string>>
  /** ends all that is left, and returns when it is gone or after `maxRounds` */
  readonly end: () => Promise<void>
}

const variable = "SIGNALBOX_CALL"
const prefix = "signalbox-call-"
/** Each finds what was started while the one before it killed: a command may start processes as fast as it likes. */
const maxRounds = 200
const roundMillis = 5

const gone = ["ENOENT", "ESRCH", "EACCES", "EPERM"]

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch (error) {
    if (!gone.includes(systemCode(error))) throw error
  }
}

/** A file below /proc or of a control group; "" where the process or the group is gone, or is someone else's. */
const textOf = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch (error) {
    if (gone.includes(systemCode(error)) || systemCode(error) === "ENODEV") return ""
    throw error
  }
}

const marked = (mark: string): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => `\0${textOf(`/proc/${name}/environ`)}`.includes(`\0${mark}\0`))
    .map(Number)

/** The control group that this process is in, of version 2; undefined where there is none. */
const ownGroup = (): string | undefined => {
  const path = /^0::(\/.*)$/m.exec(textOf("/proc/self/cgroup"))?.[1]
  if (path === undefined) return undefined
  return ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
    .map((mount) => join(mount, path))
    .find(
      (directory) =>
        existsSync(join(directory, "cgroup.procs")) && existsSync(join(directory, "cgroup.threads"))
    )
}

const members = (group: string): ReadonlyArray<number> =>
  textOf(join(group, "cgroup.procs")).split("\n").filter(Boolean).map(Number)

/** Whether there was a group that is gone now. It cannot be removed before its last process is. */
const removed = (group: string): boolean => {
  try {
    rmdirSync(group)
    return true
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true
    if (["EBUSY", "EACCES", "EPERM", "EROFS"].includes(systemCode(error))) return false
    throw error
  }
}

/** Groups of clients that were killed before their calls ended. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? name.slice(prefix.length).split("-")[0] : undefined
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const group = join(parent, name)
    for (const member of members(group)) kill(member)
    removed(group)
  }
}

/** Not every user may make one; and in a threaded one no list of processes can be read. */
const noGroup = ["EACCES", "EPERM", "EROFS", "ENOENT", "EINVAL", "EAGAIN", "ENOTSUP", "EOPNOTSUPP"]

const makeGroup = (id: string): string | undefined => {
  const parent = ownGroup()
  if (parent === undefined) return undefined
  const group = join(parent, `${prefix}${process.pid}-${id}`)
  try {
    sweep(parent)
    mkdirSync(group)
    accessSync(join(group, "cgroup.procs"), constants.R_OK | constants.W_OK)
    readFileSync(join(group, "cgroup.procs"))
    return group
  } catch (error) {
    if (!noGroup.includes(systemCode(error))) throw error
    removed(group)
    return undefined
  }
}

/** A command starts even if its group cannot be entered: the variable is left. */
const entering = '{ echo 0 > "$1"; } 2>/dev/null; shift; exec "$@"'

const endAll = async (mark: string, group: string | undefined): Promise<void> => {
  for (let round = 0; round < maxRounds; round++) {
    const left = [...marked(mark), ...(group === undefined ? [] : members(group))]
    for (const pid of left) kill(pid)
    if (left.length === 0 && (group === undefined || removed(group))) return
    await delay(roundMillis)
  }
}

/** Marks what a command is going to start. Where there is no /proc, nothing is marked or found. */
export const descendantsOf = (file: string, args: ReadonlyArray<string>): Descendants => {
  if (process.platform !== "linux") return { wrapped: { file, args }, env: {}, end: () => Promise.resolve() }
  const id = randomBytes(12).toString("hex")
  const group = makeGroup(id)
  const wrapped =
    group === undefined
      ? { file, args }
      : { file: "/bin/sh", args: ["-c", entering, "sh", join(group, "cgroup.procs"), file, ...args] }
  return { wrapped, env: { [variable]: id }, end: () => endAll(`${variable}=${id}`, group) }
}
