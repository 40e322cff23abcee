import { basename } from "node:path"
import { approvalKinds, type ApprovalKind } from "../boundary/Approval.ts"
import { askVariable } from "./MissedNeeds.ts"
import { programKinds, type Surroundings } from "./ProgramNeeds.ts"
import { readShell, type ShellCommand } from "./ShellCommands.ts"
import { words } from "./ProgramArguments.ts"
import { runsOf } from "./Wrappers.ts"

/**
 * The needs of a command according to its text, by the programs that it names in the place of a program and by their
 * arguments. This lets the user be asked in time; the sandbox decides what a command can do, and gives it only what was
 * allowed. A text that is not understood is run with nothing, and its failures are reported (`missedNeeds`).
 */
export interface CommandNeeds {
  readonly kinds: ReadonlyArray<ApprovalKind>
  /** a program that raises rights: never run */
  readonly privileged: string | undefined
  /** only `git add`, `git commit` and commands that look, written out plainly */
  readonly isPlainCommit: boolean
}

const askable: ReadonlyArray<ApprovalKind> = [
  "sockets",
  "network",
  "commit",
  "repository",
  "install",
  "self_running"
]

const privileged = words(
  "sudo sudoedit su doas pkexec run0 runuser nsenter machinectl systemd-run setcap chroot"
)
const gitLooks = words("status diff log show rev-parse add commit")

/** Commands that run commands that run commands: so deep, and so many in all, are looked at. */
const maxDepth = 8
const maxCommands = 10_000

class Search {
  readonly kinds = new Set<ApprovalKind>()
  privileged: string | undefined
  #looked = 0

  text(text: string, depth: number): void {
    if (depth > maxDepth || this.#looked > maxCommands) return
    const { commands, hasJobs } = readShell(text)
    for (const command of commands) this.command(command, { hasJobs }, depth)
  }

  command({ words: all, assignments, input }: ShellCommand, around: Surroundings, depth: number): void {
    if (depth > maxDepth || ++this.#looked > maxCommands) return
    for (const [name, value] of assignments) if (name === askVariable) this.#ask(value)
    const [first = "", ...rest] = all
    const program = basename(first)
    if (program === "env" || program === "export")
      for (const word of rest)
        if (word.startsWith(`${askVariable}=`)) this.#ask(word.slice(askVariable.length + 1))
    if (privileged.has(program)) this.privileged ??= program
    for (const kind of programKinds(program, rest, around)) this.kinds.add(kind)
    const { commands = [], texts = [] } = runsOf(program, rest, input)
    for (const inner of commands)
      if (inner.length > 0) this.command({ words: inner, assignments: [], input }, around, depth + 1)
    for (const text of texts) this.text(text, depth + 1)
  }

  #ask(list: string): void {
    for (const kind of list.split(",")) for (const known of askable) if (known === kind) this.kinds.add(known)
  }
}

const isPlainGit = ({ words: [program, name = "", ...rest] }: ShellCommand): boolean =>
  program === "git" && gitLooks.has(name) && !rest.some((word) => word.startsWith("--exec"))

/** `kinds` are in the order of approvalKinds, the gravest last. The network brings the sockets with it. */
export const needsOf = (text: string): CommandNeeds => {
  const { commands, hasJobs, isPlain } = readShell(text)
  const search = new Search()
  for (const command of commands) search.command(command, { hasJobs }, 0)
  const { kinds } = search
  if (kinds.has("network")) kinds.delete("sockets")
  return {
    kinds: approvalKinds.filter((kind) => kinds.has(kind)),
    privileged: search.privileged,
    isPlainCommit: isPlain && commands.length > 0 && commands.every(isPlainGit)
  }
}
