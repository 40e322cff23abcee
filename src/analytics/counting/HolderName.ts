import { createHash } from "node:crypto"
import { statSync } from "node:fs"
import { hostname } from "node:os"
import type { Config } from "#src/Config.ts"

/**
 * By which name this process holds the lease: the same when it is started again, so that it need not wait for itself. The
 * lock of the log sees to it that one process has a directory; a copy of the directory, or another machine, has another
 * name. Beside a Postgres of its own a process is the only one by design, wherever its data was moved.
 */
export const holderName = ({ databaseUrl, dataDir }: Config, logId: bigint): string => {
  if (databaseUrl === undefined) return "embedded"
  const { dev, ino } = statSync(dataDir, { bigint: true })
  return createHash("sha256").update(`${logId} ${hostname()} ${dev}:${ino}`).digest("base64url").slice(0, 22)
}
