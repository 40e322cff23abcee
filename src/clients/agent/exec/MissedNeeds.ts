import type { GitAccess } from "./MountPlan.ts"

/** A command can ask for what its text does not show: `SIGNALBOX_ASK=network,commit make release`. */
export const askVariable = "SIGNALBOX_ASK"

/** The permissions of a command. */
export interface Given {
  readonly network: boolean
  readonly sockets: boolean
  readonly access: GitAccess
}

/** Words of programs and libraries for a name that is not found, or a network that is not there. */
const withoutNetwork = new RegExp(
  [
    // Node, Bun, Deno
    "ENOTFOUND|EAI_AGAIN|ENETUNREACH|ConnectionRefused|FailedToOpenSocket",
    // the C library, and the programs that print its messages: curl, wget, git, ssh, apt, Python, Ruby, PHP
    "name resolution|name or service not known|temporary failure resolving|getaddrinfo|network is unreachable",
    "(could not|couldn't|cannot|unable to) resolve|resolve host|no route to host|bad address",
    // curl, Rust, Java, Go
    "failed to lookup address|dns error|UnknownHostException|no such host|dial (tcp|udp)",
    "Failed to establish a new connection|NewConnectionError|NameResolutionError",
    // nothing listens in the command's own network, where a service of this machine would
    "ECONNREFUSED|connection refused|(failed|couldn't|could not) (to )?connect to"
  ].join("|"),
  "i"
)
/** EAFNOSUPPORT, which the socket filter answers with. */
const withoutSockets = /EAFNOSUPPORT|address family not supported/i
/** Such as "Unable to create '/w/.git/index.lock': Read-only file system". */
const refusedWrite = "[^\\n]*(read-only file system|device or resource busy|permission denied|EROFS)"
const withoutSetup = new RegExp(
  `(config file|\\.git/(config|hooks|modules|worktrees|info/attributes))${refusedWrite}`,
  "i"
)
const isReadOnly = /read-only file system|EROFS/i
const withoutDocker = /cannot connect to the docker daemon|docker\.sock/i

const mentionsGit = /\bgit\b/
/** Some of git's commands do not say what could not be written, and git stash says nothing at all. */
const isHistory = (command: string, output: string): boolean =>
  output.trim() === ""
    ? mentionsGit.test(command)
    : isReadOnly.test(output) && mentionsGit.test(command + output)

const lines = (command: string, output: string, given: Given): ReadonlyArray<string> => {
  const lacksSetup = given.access !== "all" && withoutSetup.test(output)
  const lacksHistory = isHistory(command, output)
  const kinds = [
    ...(!given.network && withoutNetwork.test(output) ? ["network"] : []),
    ...(!given.sockets && withoutSockets.test(output) ? ["sockets"] : []),
    ...(lacksSetup ? ["repository"] : []),
    ...(given.access === "look" && !lacksSetup && lacksHistory ? ["commit"] : [])
  ]
  const asked = kinds.join(",")
  return [
    ...(kinds.length === 0
      ? []
      : [
          `This command ran without ${kinds.join(" and ")}, which the user has to allow. If it failed for that, start it with ${askVariable}=${asked} to ask the user.`
        ]),
    ...(kinds.includes("sockets")
      ? ["A server and its clients on 127.0.0.1, within one command, need nothing."]
      : []),
    ...(withoutDocker.test(output)
      ? [
          "Docker's socket is not there for commands in the sandbox, and no approval of a command brings it. The user can run this."
        ]
      : [])
  ]
}

/** The end of the output decides if the exit code is a part's, or of a git that went on without its configuration. */
const hidesFailure = /[|;\n]|\bgit\b/
const tellingLines = 20

/** The output to search for missing permissions; undefined if nothing failed, as far as can be known. */
export const failureIn = (command: string, output: string, exitCode: number | null): string | undefined => {
  if (exitCode !== 0) return output
  const end = output.trimEnd().split("\n").slice(-tellingLines).join("\n")
  return hidesFailure.test(command.trim()) && end !== "" ? end : undefined
}

/**
 * The missing permissions that made a command fail and the user could grant: words behind its output that tell the
 * model how to ask. "" for none.
 */
export const missedNeeds = (command: string, output: string, given: Given): string =>
  lines(command, output, given)
    .map((line) => `\n[${line}]\n`)
    .join("")
