import { basename } from "node:path"
import { approvalKinds, type ApprovalKind } from "../boundary/Approval.ts"
import { readShell, shells, type SimpleCommand } from "./ShellWords.ts"

/**
 * What a command's text says it needs. It is a courtesy: the user is asked in time. What the command really can do is up
 * to the sandbox, which gives it only what was allowed; a command that hides what it does simply does not get it.
 */
export interface CommandNeeds {
  readonly kinds: ReadonlyArray<ApprovalKind>
  /** a program that raises rights: never run */
  readonly privileged: string | undefined
  /** only `git add`, `git commit` and commands that look, written out plainly */
  readonly isPlainCommit: boolean
}

/** A command can ask for what its text does not show: `SIGNALBOX_ASK=network,commit make release`. */
export const askVariable = "SIGNALBOX_ASK"
const askable: ReadonlyArray<ApprovalKind> = ["network", "commit", "repository", "install", "self_running"]

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

const privileged = words(
  "sudo sudoedit su doas pkexec run0 runuser nsenter machinectl systemd-run setcap chroot"
)
/** These run nothing that they are given as an argument. */
const readers = words(
  "echo printf grep egrep fgrep rg cat ls head tail wc which type man test [ cd mkdir touch git hg svn jj npm pnpm yarn bun node python python3 tsc apt-cache sed cut sort uniq jq tr diff cp mv rm export"
)
const network = words(
  "curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp ping dig nslookup host whois http https aria2c gh glab hub aws gcloud az kubectl helm terraform vercel netlify fly heroku"
)
const gitWrites = words(
  "add am apply bisect branch checkout cherry-pick clean commit fetch filter-branch gc merge mv notes prune pull push rebase repack replace reset restore revert rm sparse-checkout stash switch symbolic-ref tag update-index update-ref worktree"
)
const gitSetup = words("config init remote submodule worktree sparse-checkout maintenance lfs")
const gitNetwork = words("clone fetch ls-remote pull push")
const gitLooks = words("status diff log show rev-parse add commit")
const otherHistory = words("commit ci push merge rebase tag update import describe new squash bookmark")

/** Package managers, with the first words after which they fetch and run what others wrote. */
const installs: Readonly<Record<string, ReadonlySet<string>>> = {
  npm: words("install i in ci add update up upgrade create init link rebuild audit publish"),
  pnpm: words("install i add update up upgrade create dlx import publish"),
  yarn: words("install add up upgrade create dlx import"),
  bun: words("install i add update upgrade create x"),
  pip: words("install download wheel"),
  pip3: words("install download wheel"),
  uv: words("add sync pip tool lock run"),
  poetry: words("add install update lock"),
  pipenv: words("install update sync lock"),
  cargo: words("add install fetch update publish"),
  go: words("get install mod"),
  gem: words("install update"),
  bundle: words("install update add"),
  composer: words("install update require create-project"),
  deno: words("add install cache"),
  dotnet: words("add restore tool"),
  conda: words("install create update"),
  mamba: words("install create update"),
  brew: words("install upgrade update tap"),
  apt: words("install update upgrade remove full-upgrade"),
  "apt-get": words("install update upgrade remove dist-upgrade"),
  dnf: words("install update upgrade remove"),
  yum: words("install update upgrade remove"),
  apk: words("add update upgrade del"),
  pacman: words("-S -Sy -Syu -U -R"),
  snap: words("install refresh"),
  flatpak: words("install update"),
  rustup: words("install update toolchain component target"),
  nix: words("profile shell run develop")
}

const assignment = /^[A-Za-z_]\w*=/

/** The first word that is not an option, and what is after it. Options of git that take a value are passed with it. */
const subcommand = (rest: SimpleCommand): { readonly name: string; readonly after: SimpleCommand } => {
  let at = 0
  while (at < rest.length && (rest[at] ?? "").startsWith("-"))
    at += /^(-C|-c|--git-dir|--work-tree|--prefix|--cwd)$/.test(rest[at] ?? "") ? 2 : 1
  return { name: rest[at] ?? "", after: rest.slice(at + 1) }
}

const looksOnly = (after: SimpleCommand): boolean =>
  after.every((word) => /^(-l|--list|-v|-vv|-a|-r|--show-current|list|show|--get.*)$/.test(word))

const gitKinds = (rest: SimpleCommand): ReadonlyArray<ApprovalKind> => {
  const { name, after } = subcommand(rest)
  const listing = words("branch tag stash remote config worktree notes")
  if (listing.has(name) && (name !== "stash" || after.length > 0)) {
    if (looksOnly(after)) return []
    if (name === "config" && (after[0] ?? "").startsWith("--get")) return []
  }
  const setsUpstream = name === "push" && after.some((word) => /^(-u|--set-upstream)$/.test(word))
  return [
    ...(gitWrites.has(name) ? (["commit"] as const) : []),
    ...(gitSetup.has(name) || setsUpstream ? (["repository"] as const) : []),
    ...(gitNetwork.has(name) || name === "submodule" ? (["network"] as const) : [])
  ]
}

const kindsAt = (program: string, rest: SimpleCommand): ReadonlyArray<ApprovalKind> => {
  if (program === "git") return gitKinds(rest)
  const { name } = subcommand(rest)
  if (["hg", "svn", "jj", "sl", "fossil"].includes(program) && otherHistory.has(name)) return ["commit"]
  const isModulePip = /^python[\d.]*$/.test(program) && rest[0] === "-m" && rest[1] === "pip"
  const isBareYarn = program === "yarn" && rest.length === 0
  const manager = Object.hasOwn(installs, program) ? installs[program] : undefined
  if (isModulePip || isBareYarn || manager?.has(name) === true || manager?.has(rest[0] ?? "") === true)
    return ["install", "network"]
  return network.has(program) ? ["network"] : []
}

/** As many words after a program tell what it does. */
const telling = 16

interface Found {
  readonly kinds: Set<ApprovalKind>
  privileged: string | undefined
}

const look = (command: SimpleCommand, found: Found, depth: number): void => {
  const asked = command.find((word) => word.startsWith(`${askVariable}=`))
  for (const kind of asked?.slice(askVariable.length + 1).split(",") ?? [])
    for (const known of askable) if (known === kind) found.kinds.add(known)
  const own = command.slice(command.findIndex((word) => !assignment.test(word)))
  const first = basename(own[0] ?? "")
  // What is not known to keep its arguments to itself may run any of them.
  const places = readers.has(first) ? [0] : own.keys()
  for (const at of places) {
    const program = basename(own[at] ?? "")
    if (privileged.has(program)) found.privileged ??= program
    const rest = own.slice(at + 1, at + 1 + telling)
    for (const kind of kindsAt(program, rest)) found.kinds.add(kind)
    if (!shells.has(program) || depth >= 4) continue
    for (const inner of rest) for (const one of readShell(inner).commands) look(one, found, depth + 1)
  }
}

const isPlainGit = (command: SimpleCommand): boolean =>
  command[0] === "git" && gitLooks.has(command[1] ?? "") && !command.some((word) => word.startsWith("--exec"))

/** `kinds` are in the order of approvalKinds, the gravest last. */
export const needsOf = (text: string): CommandNeeds => {
  const { commands, isPlain } = readShell(text)
  const found: Found = { kinds: new Set(), privileged: undefined }
  for (const command of commands) look(command, found, 0)
  return {
    kinds: approvalKinds.filter((kind) => found.kinds.has(kind)),
    privileged: found.privileged,
    isPlainCommit: isPlain && commands.length > 0 && commands.every(isPlainGit)
  }
}
