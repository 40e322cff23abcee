import { homedir } from "node:os"
import { findBubblewrap, versionOf } from "./Bubblewrap.ts"
import { findProgram } from "./CommandEnvironment.ts"

/** What protects this machine, for `signalbox-agent doctor`. */
export interface Protections {
  /** such as "linux x64" */
  readonly platform: string
  readonly sandbox:
    | { readonly usable: true; readonly program: string; readonly version: string }
    | { readonly usable: false; readonly reason: string }
  /** one line each: what, and by what */
  readonly protected: ReadonlyArray<string>
  readonly notProtected: ReadonlyArray<string>
  /** what the user can do about it */
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
  "Your word: never taken from keys typed ahead, a paste or a window too small; listed and revoked by `permissions`",
  "This machine from outside: the client listens on no port"
]
const bySandbox = [
  "All but the workspace, from commands: read only; homes, /run and /tmp empty (bubblewrap)",
  ".git/hooks, .git/config and the client's configuration, from commands: read only, also when missing (bubblewrap)",
  "The network, from commands: off until you allow it for a command (network namespace)",
  "Other programs, from commands: out of sight, and none can raise its rights (process namespace, no_new_privs)"
]
const never = [
  "Code in the workspace that you run yourself later: read what was changed",
  "Repositories that a command makes in new directories: look at their .git/config before you run git there",
  "What is readable on this system outside of home directories: commands can read it",
  "Where a command connects to, once you allow it the network: no single host can be allowed",
  "Services of this machine, a display server among them, from a command that you allow the network",
  "Memory and processor time: a command may use all of it until its time is up"
]

/** `root`: the workspace, in which no program is looked for. */
export const protections = async (root: string = process.cwd()): Promise<Protections> => {
  const found = await findBubblewrap(root)
  const isLinux = process.platform === "linux"
  const setpriv = isLinux ? findProgram("setpriv", root) : undefined
  const files = isLinux ? filesOnLinux : filesElsewhere
  const common = { platform: `${process.platform} ${process.arch}` }
  const asRoot = process.getuid?.() === 0 ? ["The client runs as root: take a user of your own"] : []
  if (!("reason" in found))
    return {
      ...common,
      sandbox: { usable: true, program: found.program, version: await versionOf(found) },
      protected: [files, ...always, ...bySandbox],
      notProtected: never,
      advice: asRoot
    }
  const raised =
    setpriv === undefined ? [] : ["Raised rights: no program of a command gets them (no_new_privs)"]
  return {
    ...common,
    sandbox: { usable: false, reason: found.reason },
    protected: [files, ...always, "Commands: none runs before you have read and allowed it", ...raised],
    notProtected: [
      `Everything of yours below ${homedir()} and elsewhere, from a command that you allowed`,
      ...never
    ],
    advice: [...(isLinux ? ["Install bubblewrap (apt-get install bubblewrap)"] : []), ...asRoot]
  }
}
