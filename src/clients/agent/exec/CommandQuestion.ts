import { kindsOfNeed, type ApprovalKind } from "../boundary/Approval.ts"
import type { Question } from "../boundary/Approvals.ts"
import type { CommandNeeds } from "./CommandNeeds.ts"

export interface CommandRequest {
  readonly callId: string
  readonly command: string
  readonly root: string
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly needs: CommandNeeds
  /** repositories outside of the workspace that would be written to */
  readonly writes: ReadonlyArray<string>
  /** why there is no sandbox, or what it cannot hold; "" when all is well */
  readonly remark: string
}

/** The question to the user about a command; everything that would run is in `detail`, word for word. */
export const questionOf = (request: CommandRequest): Question => {
  const { callId, command, root, kinds, needs, writes, remark } = request
  const isPlainCommit = needs.isPlainCommit && kinds.length === 1 && kinds[0] === "commit"
  const notes = [...writes.map((path) => `It may write to ${path}.`), ...(remark === "" ? [] : [remark])]
  return {
    // The same words with other rights are another question.
    key: JSON.stringify(isPlainCommit ? ["plain commit", writes] : [kinds, command, writes]),
    // A rule does not tell which repositories elsewhere it would open, and a plain commit is as wide as one already.
    ...(!isPlainCommit && writes.length === 0 && { subject: { type: "command" as const, command } }),
    ask: {
      callId,
      kinds,
      title: `Run a command ${kinds.map((kind) => kindsOfNeed[kind].says).join("; ")}`,
      detail: [command, ...notes].join("\n\n"),
      scope: isPlainCommit
        ? `git add, git commit and git's status, diff, log and show in ${root}, without hooks`
        : `Exactly this command in ${root}, ${kinds.join(" and ")} included`
    }
  }
}
