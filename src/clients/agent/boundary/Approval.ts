/** One kind of need that the user is asked for before it is met. */
interface KindOfNeed {
  /** ends the sentence "Run a command …" */
  readonly says: string
  /** whether a rule wider than one exact command or file may cover it */
  readonly byRule: boolean
}

/**
 * Everything that is asked, the gravest last:
 * - `sockets`: a command that may use Unix sockets, and so reach services of this machine that listen on one
 * - `network`: a command that may reach the network, and every service of this machine with it
 * - `commit`: a command that may write to the repository's history (commit, push, merge, tag …)
 * - `repository`: a command that may also write hooks and configuration of a repository (git init, git config …)
 * - `install`: a command that installs packages, whose scripts run
 * - `unsandboxed`: every command where no sandbox holds it
 * - `self_running`: writing what other programs run by themselves, such as hooks, editors' tasks, shells' start-up files
 * - `hard_link`: a write to a file that has other names, perhaps outside of the workspace
 */
const kinds = {
  sockets: { says: "with Unix sockets, those of this machine's own services included", byRule: true },
  network: { says: "with the network, this machine's own services included", byRule: true },
  commit: { says: "with the repository's history open to changes", byRule: true },
  // Hooks and configuration run by themselves later: each such command is looked at.
  repository: { says: "with the repository's hooks and configuration open to changes", byRule: false },
  install: { says: "that installs packages, whose scripts run", byRule: true },
  unsandboxed: { says: "without a sandbox: it can do all that you can", byRule: true },
  // Read before it is written: a rule would allow contents that were not seen.
  self_running: {
    says: "that may write what other programs run by themselves, such as hooks and editors' tasks",
    byRule: false
  },
  hard_link: { says: "that replaces a file with several names", byRule: true }
} as const satisfies Readonly<Record<string, KindOfNeed>>

export type ApprovalKind = keyof typeof kinds
export const kindsOfNeed: Readonly<Record<ApprovalKind, KindOfNeed>> = kinds
export const approvalKinds = Object.keys(kinds) as ReadonlyArray<string> as ReadonlyArray<ApprovalKind>

/** A rule to give instead of a yes to this one call, and its coverage. */
export interface RuleOffer {
  /** short: `npm test *`, `src/generated/` */
  readonly name: string
  readonly covers: string
  /** of this session's calls those that it would have covered beside the one that is asked about; at most 3 */
  readonly examples: ReadonlyArray<string>
}

export interface ApprovalAsk {
  readonly callId: string
  /** all that the call needs; the first is the gravest */
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly title: string
  /** exactly what would run or be changed, as it is: print it with `printable` */
  readonly detail: string
  /** the coverage of `session` and `always`, and no more */
  readonly scope: string
  /** absent: none fits */
  readonly rules?: ReadonlyArray<RuleOffer>
  /** why nothing can be kept beyond this session; absent: it can */
  readonly unkept?: string
}

export type Kept = "session" | "always"

/** The rule of this place in `ApprovalAsk.rules`, for this session or for this workspace. */
interface RuleApproval {
  readonly rule: number
  readonly kept: Kept
}

/** `session` ends with the server's session. `always` is kept in the client's configuration, for this workspace. */
export type Approval = "once" | "session" | "always" | "no" | RuleApproval
