/**
 * What the user is asked before it is done:
 * - `sockets`: a command that may use Unix sockets, and so reach services of this machine that listen on one
 * - `network`: a command that may reach the network, and every service of this machine with it
 * - `commit`: a command that may write to the repository's history (commit, push, merge, tag …)
 * - `repository`: a command that may also write hooks and configuration of a repository (git init, git config …)
 * - `install`: a command that installs packages, whose scripts run
 * - `unsandboxed`: every command where no sandbox holds it
 * - `self_running`: writing what other programs run by themselves, such as hooks, editors' tasks, shells' start-up files
 * - `hard_link`: a write to a file that has other names, perhaps outside of the workspace
 */
export const approvalKinds = [
  "sockets",
  "network",
  "commit",
  "repository",
  "install",
  "unsandboxed",
  "self_running",
  "hard_link"
] as const
export type ApprovalKind = (typeof approvalKinds)[number]

export interface ApprovalAsk {
  readonly callId: string
  /** all that the call needs; the first is the gravest */
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly title: string
  /** exactly what would run or be changed, as it is: print it with `printable` */
  readonly detail: string
  /** what `session` and `always` would cover, and no more */
  readonly scope: string
}

/** `always` is kept in the client's configuration, for this workspace. */
export type Approval = "once" | "session" | "always" | "no"
