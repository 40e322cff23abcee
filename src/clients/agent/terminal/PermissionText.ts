import type { Approvals } from "../boundary/Approvals.ts"
import { permissionLines } from "../boundary/PermissionLines.ts"
import { safeText } from "./SafeText.ts"

/** The permissions of this session and workspace; a revoked one is asked for again at once. */
export type Permissions = Pick<Approvals, "list" | "revoke" | "tellProblems">

const usage =
  "/permissions lists what you allowed; /permissions revoke ID takes one back, /permissions revoke all all"

/** Does what `/permissions` with this argument asks for, and gives what to say. Throws where the file cannot be changed. */
export const changePermissions = (argument: string, permissions: Permissions): string => {
  const [verb = "list", which = "", ...rest] = argument.split(/\s+/).filter((word) => word !== "")
  if (rest.length > 0) return usage
  if (verb === "list" && which === "") return safeText(permissionLines(permissions.list()))
  if (verb !== "revoke" || which === "") return usage
  const isAll = which === "all" || which === "--all"
  const count = permissions.revoke(isAll ? { all: true } : which)
  if (!isAll && count === 0) return `There is no permission ${safeText(which)}: /permissions lists them`
  return `${count} taken back${count === 0 ? "" : ": it is asked for again from now on"}`
}
