import type { ApprovalKind } from "../boundary/Approval.ts"
import { argumentsOf, hasOption, words, type Arguments } from "./ProgramArguments.ts"

type Kinds = ReadonlyArray<ApprovalKind>
const none: Kinds = []
const history: Kinds = ["commit"]
const setup: Kinds = ["repository"]
/** Branches and worktrees that are also written down in the configuration. */
const both: Kinds = ["commit", "repository"]
const remote: Kinds = ["network", "commit"]

const ownValued = words("-C -c --git-dir --work-tree --namespace --super-prefix --config-env")

/** Write to the index, to references or to objects. Source: git(1) and each command's page. */
const writes = words(
  "add am bisect checkout cherry-pick commit commit-tree fast-import filter-branch filter-repo gc merge mktag mktree mv pack-refs prune read-tree rebase repack replace rerere reset restore revert rm stage switch unpack-objects update-index update-ref write-tree"
)
const remotes = words("fetch pull push send-pack fetch-pack http-fetch http-push")
const networks = words("clone ls-remote send-email imap-send svn p4 cvsimport request-pull")
const isRemote = (place: string): boolean =>
  /^[\w+.-]+:\/\/|^[^/]+:/.test(place) && !place.startsWith("file:")
/** An address that only the shell knows may be anywhere. */
const isLocalClone = (place: string): boolean => place !== "" && !isRemote(place) && !place.startsWith("$")
const isPath = (place: string): boolean => /^(\.|\/|~|file:)/.test(place)
/** Whether a branch that begins at it tracks it, which is written to the configuration. */
const isTracked = (start: string | undefined): boolean => /^(origin|upstream)\//.test(start ?? "")

const configValued = words("-f --file --blob --type --default --comment --value --url")
const configReads = words("get list")
const configWrites = words("set unset rename-section remove-section edit")
const configWriteOptions = words(
  "--add --replace-all --unset --unset-all --rename-section --remove-section -e --edit"
)
const configReadOptions = words(
  "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool -l --list"
)
/** A file of its own: for a command the user's is empty, and a file in the workspace is a file. */
const otherFile = words("--global --system -f --file --blob")

const config = (rest: ReadonlyArray<string>): Kinds => {
  const { operands, options } = argumentsOf(rest, configValued)
  if (hasOption(options, otherFile) || hasOption(options, configReadOptions)) return none
  const [first = ""] = operands
  if (hasOption(options, configWriteOptions) || (configWrites.has(first) && operands.length > 1)) return setup
  if (configReads.has(first) || first === "") return none
  return operands.length > 1 || first === "edit" ? setup : none
}

const branchLists = words(
  "-l --list -a --all -r --remotes -v -vv --verbose --show-current --contains --no-contains --merged --no-merged --points-at --sort --format --column"
)
const branchSetup = words(
  "-m -M --move -c -C --copy -u --set-upstream-to --unset-upstream --edit-description -t --track"
)
const branch = ({ operands, options }: Arguments): Kinds => {
  if (hasOption(options, branchSetup)) return both
  if (operands.length === 0 || hasOption(options, branchLists)) return none
  return isTracked(operands[1]) ? both : history
}

const tagLists = words(
  "-l --list -n --contains --no-contains --merged --no-merged --points-at --sort --format -v --verify --column"
)
const tag = ({ operands, options }: Arguments): Kinds =>
  operands.length === 0 || options.some((option) => /^-n\d/.test(option)) || hasOption(options, tagLists)
    ? none
    : history

const checkoutSetup = words("-t --track")
const checkout = ({ operands, options }: Arguments): Kinds =>
  hasOption(options, checkoutSetup) || (/^-[bBcC]$/.test(options[0] ?? "") && isTracked(operands[1]))
    ? both
    : history

/** The first operand of a command that has commands of its own; those that only look need nothing. */
const looking: Readonly<Record<string, ReadonlySet<string>>> = {
  stash: words("list show"),
  notes: words("list show get-ref"),
  reflog: words("show exists list"),
  worktree: words("list"),
  bisect: words("log view visualize terms"),
  "sparse-checkout": words("list check-rules"),
  lfs: words("ls-files status env version logs ext track untrack pointer"),
  submodule: words("status summary foreach"),
  remote: words("get-url"),
  maintenance: words("is-needed")
}

const lfs = (first: string): Kinds =>
  /^(pull|push|fetch|clone|prune|migrate|lock|unlock|locks)$/.test(first) ? remote : setup

const remoteKinds = (first: string, options: ReadonlyArray<string>): Kinds => {
  if (first === "show") return options.includes("-n") ? none : ["network"]
  return first === "update" || first === "prune" ? remote : setup
}

/** Commands of git that have commands of their own. */
const grouped = (name: string, { operands, options }: Arguments): Kinds | undefined => {
  if (!Object.hasOwn(looking, name)) return undefined
  const first = operands[0] ?? ""
  if (looking[name]?.has(first) === true) return none
  switch (name) {
    case "stash":
    case "bisect":
      return history
    case "reflog":
      return /^(expire|delete|drop|write)$/.test(first) ? history : none
    case "notes":
      return first === "" ? none : history
    case "submodule":
      if (first === "") return none
      return /^(update|add)$/.test(first) ? ["network", "repository"] : setup
    case "remote":
      return first === "" ? none : remoteKinds(first, options)
    case "lfs":
      return first === "" ? none : lfs(first)
    case "maintenance":
      return first === "run" ? history : setup
    default:
      return first === "" ? none : both
  }
}

const valued = words(
  "-m --message -F --file -C -c --author --date -b -B --branch --depth -o --origin -s --strategy -X --onto --sort --format -n --max-count --contains --points-at"
)
const upstream = words("-u --set-upstream")
const applied = words("--index --cached -3 --3way --intent-to-add -N")

/** `git submodule foreach`, `git bisect run`, `git rebase --exec`: a shell's text, or a command's words. */
export const gitRuns = (
  rest: ReadonlyArray<string>
): { readonly text?: string; readonly command?: ReadonlyArray<string> } => {
  const [name, ...after] = argumentsOf(rest, ownValued, true).operands
  const { operands, options } = argumentsOf(after, words("-x --exec"), name !== "rebase")
  if (name === "submodule" && operands[0] === "foreach")
    return {
      text: operands
        .slice(1)
        .filter((word) => word !== "--recursive")
        .join(" ")
    }
  if (name === "bisect" && operands[0] === "run") return { command: operands.slice(1) }
  const at = after.findIndex((word) => word === "-x" || word === "--exec")
  const joined = options.find((option) => option.startsWith("--exec="))?.slice("--exec=".length)
  return name === "rebase" && (at >= 0 || joined !== undefined) ? { text: joined ?? after[at + 1] ?? "" } : {}
}

/** The needs of `git REST`. An unknown command, an alias perhaps, is run with nothing. */
export const gitKinds = (rest: ReadonlyArray<string>): Kinds => {
  const [name = "", ...after] = argumentsOf(rest, ownValued, true).operands
  if (name === "config") return config(after)
  const told = argumentsOf(after, name === "branch" || name === "tag" ? words("-m -F") : valued)
  const { operands, options } = told
  if (hasOption(options, words("-h --help"))) return none
  const kinds = grouped(name, told)
  if (kinds !== undefined) return kinds
  switch (name) {
    case "branch":
      return branch(argumentsOf(after, words("--sort --format --contains --points-at -u --set-upstream-to")))
    case "tag":
      return tag(told)
    case "checkout":
    case "switch":
      return checkout(argumentsOf(after, words("--conflict")))
    case "init":
      return setup
    case "apply":
      return hasOption(options, applied) ? history : none
    case "symbolic-ref":
      return operands.length > 1 || options.includes("-d") ? history : none
    case "hash-object":
      return options.includes("-w") ? history : none
    case "archive":
      return hasOption(options, words("--remote")) ? ["network"] : none
    case "clone":
      return isLocalClone(operands[0] ?? "") ? none : ["network"]
  }
  if (remotes.has(name)) {
    const kinds = operands[0] !== undefined && isPath(operands[0]) ? history : remote
    return hasOption(options, upstream) || options.includes("--set-upstream")
      ? [...kinds, "repository"]
      : kinds
  }
  if (networks.has(name)) return ["network"]
  return writes.has(name) ? history : none
}
