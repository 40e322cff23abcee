import { spawnSync } from "node:child_process"
import { childEnvironment } from "../process/ChildEnvironment.ts"
import { readFileSync } from "node:fs"

/** The account of the system that PostgreSQL runs under. */
export interface PostgresAccount {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

const created = "signalbox-postgres"

const lookUp = (name: string): PostgresAccount | undefined => {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(":") ?? []
  return uid === undefined || gid === undefined ? undefined : { name, uid: Number(uid), gid: Number(gid) }
}

/** useradd is shadow's (Debian, Fedora …), the second form of adduser is busybox's (Alpine). */
const creations: ReadonlyArray<readonly [string, ...ReadonlyArray<string>]> = [
  ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", created],
  ["adduser", "-S", "-D", "-H", "-s", "/bin/false", created]
]

/**
 * PostgreSQL refuses to run as root. Undefined: this process is not root, and PostgreSQL runs as itself does.
 * Otherwise the account `postgres`, else one that is made; "none" where neither is possible.
 */
export const findAccount = (): PostgresAccount | "none" | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const known = lookUp("postgres") ?? lookUp(created)
  if (known !== undefined) return known
  for (const [command, ...args] of creations) {
    if (spawnSync(command, args, { stdio: "ignore", env: childEnvironment() }).status === 0)
      return lookUp(created) ?? "none"
  }
  return "none"
}
