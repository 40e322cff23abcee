import { homedir } from "node:os"
import { selfRunningFiles } from "../boundary/SelfRunningFiles.ts"
import { isEnvironmentHidden } from "../hideEnvironment.mjs"
import { findBubblewrap, versionOf } from "./Bubblewrap.ts"
import { findProgram } from "./CommandEnvironment.ts"

/** The protections of this machine, for `signalbox-agent doctor`. */
export interface Protections {
  /** such as "linux x64" */
  readonly platform: string
  readonly sandbox:
    | { readonly usable: true; readonly program: string; readonly version: string }
    | { readonly usable: false; readonly reason: string }
  /** one line each: the protected thing, and its protection */
  readonly protected: ReadonlyArray<string>
  readonly notProtected: ReadonlyArray<string>
  /** the self-running files, asked for before they are written: a line for each program, with its documentation */
  readonly askedFor: ReadonlyArray<string>
  /** the remedies for the user */
  readonly advice: ReadonlyArray<string>
}

const filesOnLinux =
  "Files outside of the workspace, from the file tools: every directory is held open and no link is passed (O_NOFOLLOW, /proc/self/fd)"
const filesElsewhere =
  "Files outside of the workspace, from the file tools: real paths, checked before and after each use"

const always = [
  ".git and the client's own configuration, from the file tools: never written, existing or not",
  "Keys and tokens in the environment: commands get a short list of variables and an empty home directory",
  "Hooks and fsmonitor of git: switched off for every command",
  "Hooks, editors' tasks, shells' start-up files and others that run by themselves: written only when you allow it",
  "Your word: never taken from keys typed ahead, a paste or a window too small; listed and revoked by `permissions`",
  "This machine from outside: the client listens on no port"
]
const bySandbox = [
  "All but the workspace, from commands: read only; homes, /run and /tmp empty (bubblewrap)",
  ".git/hooks, .git/config and the client's configuration, from commands: read only, also when missing (bubblewrap)",
  "Repositories and self-running files that a command makes: renamed when it ends, and told",
  "The network, from commands: off until you allow it for a command (network namespace)",
  "Other programs, from commands: out of sight, and none can raise its rights (process namespace, no_new_privs)"
]
const never = [
  "Code in the workspace that you run yourself later: read what was changed",
  "Files that a command makes, until it ends: do not run git or an editor in a directory that it works in",
  "What is readable on this system outside of home directories: commands can read it",
  "Where a command connects to, once you allow it the network: no single host can be allowed",
  "Services of this machine, a display server among them, from a command that you allow the network",
  "Memory and processor time: a command may use all of it until its time is up"
]

const askedFor = selfRunningFiles.map(({ by, paths, source }) => `${by}: ${paths.join(", ")} (${source})`)
const sockets =
  "Unix and VM sockets and the kernel's keyrings, from commands: sockets refused until you allow them or the network, keyrings always (seccomp)"
const socketsOpen = (reason: string): string =>
  `Services with a Unix socket outside of homes, /tmp and /run: commands can reach them, as no filter of system calls can be loaded (${reason})`
const pipes = "Named pipes outside of homes, /tmp and /run: commands can open those that you can"

const environment =
  "The client's environment, keys and tokens in it, from commands without a sandbox: emptied at the start (/proc/self/mem)"
const environmentOpen =
  "The client's environment, keys and tokens in it, from commands that you allow without a sandbox: they can read it"
const descendants =
  "Programs that a command without a sandbox leaves running: ended with it, by its control group or a mark in their environment"

const install = "Install bubblewrap (apt-get install bubblewrap)"
/** Source: the system's switches in user_namespaces(7), sysctl/user.rst, and AppArmor's in Ubuntu 24.04's release notes. */
const allowNamespaces =
  "bubblewrap is installed, but this system does not let it make a sandbox: allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 where there is one, on Ubuntu an AppArmor profile for bwrap); a container has to allow them and a new /proc"

/** `root`: the workspace, in which no program is looked for. */
export const protections = async (root: string = process.cwd()): Promise<Protections> => {
  const found = await findBubblewrap(root)
  const isLinux = process.platform === "linux"
  const setpriv = isLinux ? findProgram("setpriv", root) : undefined
  const files = isLinux ? filesOnLinux : filesElsewhere
  const common = { platform: `${process.platform} ${process.arch}`, askedFor }
  const asRoot = process.getuid?.() === 0 ? ["The client runs as root: take a user of your own"] : []
  if (!("reason" in found))
    return {
      ...common,
      sandbox: { usable: true, program: found.program, version: await versionOf(found) },
      protected: [files, ...always, ...bySandbox, ...(found.filter === true ? [sockets] : [])],
      notProtected: [...(found.filter === true ? [] : [socketsOpen(found.filter.reason)]), pipes, ...never],
      advice: asRoot
    }
  const hidden = isEnvironmentHidden()
  const raised =
    setpriv === undefined ? [] : ["Raised rights: no program of a command gets them (no_new_privs)"]
  return {
    ...common,
    sandbox: { usable: false, reason: found.reason },
    protected: [
      files,
      ...always,
      "Commands: none runs before you have read and allowed it",
      ...raised,
      ...(hidden ? [environment] : []),
      ...(isLinux ? [descendants] : [])
    ],
    notProtected: [
      ...(hidden ? [] : [environmentOpen]),
      `Everything of yours below ${homedir()} and elsewhere, from a command that you allowed`,
      ...never
    ],
    advice: [...(isLinux ? [found.installed ? allowNamespaces : install] : []), ...asRoot]
  }
}
