import { askVariable } from "./CommandNeeds.ts"
import type { GitAccess } from "./MountPlan.ts"

/** What a command was given. */
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
    // the C library, and what prints its words: curl, wget, git, ssh, apt, Python, Ruby, PHP
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
const withoutHistory = new RegExp(`\\.git\\b${refusedWrite}`, "i")
const withoutDocker = /cannot connect to the docker daemon|docker\.sock/i

const lines = (output: string, given: Given): ReadonlyArray<string> => {
  const lacksSetup = given.access !== "all" && withoutSetup.test(output)
  const kinds = [
    ...(!given.network && withoutNetwork.test(output) ? ["network"] : []),
    ...(!given.sockets && withoutSockets.test(output) ? ["sockets"] : []),
    ...(lacksSetup ? ["repository"] : []),
    ...(given.access === "look" && !lacksSetup && withoutHistory.test(output) ? ["commit"] : [])
  ]
  const asked = kinds.join(",")
  return [
    ...(kinds.length === 0
      ? []
      : [
          `This command ran without ${kinds.join(" and ")}, which the user has to allow. If it failed for that, start it with ${askVariable}=${asked} to ask the user.`
        ]),
    ...(withoutDocker.test(output)
      ? [
          "Docker's socket is not there for commands in the sandbox, and no approval of a command brings it. The user can run this."
        ]
      : [])
  ]
}

/** What a command ran into that the user could allow: words behind its output that tell the model how to ask. "" for none. */
export const missedNeeds = (output: string, given: Given): string =>
  lines(output, given)
    .map((line) => `\n[${line}]\n`)
    .join("")
