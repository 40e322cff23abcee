import { systemCode, ToolFailure } from "./ToolFailure.ts"
import type { ToolErrorCode } from "#schemas/agents/ToolCall.ts"

/** The meanings of the operating system's errors for a tool. Others are `exec_failed`. */
const meanings: Readonly<Record<string, readonly [ToolErrorCode, string]>> = {
  ENOENT: ["not_found", "does not exist"],
  ENOTDIR: ["not_found", "is not a directory, or one of its directories is not"],
  ELOOP: ["not_found", "was changed while it was being opened"],
  ENXIO: ["invalid_params", "is not a file"],
  EISDIR: ["invalid_params", "is a directory"],
  ENAMETOOLONG: ["invalid_params", "is too long a name"],
  EACCES: ["denied", "is not open to this user"],
  EPERM: ["denied", "is not open to this user"],
  EROFS: ["denied", "is on a read-only file system"],
  ENOSPC: ["exec_failed", "does not fit: the disk is full"],
  EMFILE: ["exec_failed", "could not be opened: too many files are open"]
}

/** Every error as the model sees it. Messages of the system are not passed on: they name paths of this process. */
export const failureOf = (error: unknown, path: string): ToolFailure => {
  if (error instanceof ToolFailure) return error
  const code = systemCode(error)
  const [meaning, words] = meanings[code] ?? [
    "exec_failed",
    `could not be used (${code || "internal error"})`
  ]
  return new ToolFailure(meaning, `${path} ${words}`)
}
