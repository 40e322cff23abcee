import { existsSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Predicate } from "effect"
import { AppConfig, type Config, ConfigInvalid } from "#src/Config.ts"
import { createServer } from "node:net"

const mebibyte = 1024 * 1024

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error)

const self = (): string => {
  const uid = process.getuid?.()
  return uid === undefined ? "this account" : `this account (uid ${uid})`
}

/** In words that say what to do; `place` is the directory in which something could not be made. */
const faultOf = (error: unknown, place: string): string => {
  const code = codeOf(error)
  switch (code) {
    case "EACCES":
    case "EPERM":
      return `cannot be used: ${self()} may not write in ${place}; give it that directory (chown), or set another`
    case "EROFS":
      return `cannot be used: ${place} is on a file system that is read-only; set another`
    case "ENOSPC":
    case "EDQUOT":
      return `cannot be used: the disk of ${place} is full; free some, or set another`
    default:
      return `cannot be used: nothing can be kept in ${place} (${code}); set another`
  }
}

/**
 * Makes the directory and those above it, one by one: Node's own recursive way never ends under /proc, where the system
 * says of a directory that is there that it is not.
 */
const made = (directory: string): string | undefined => {
  const missing: Array<string> = []
  let place = directory
  for (; statSync(place, { throwIfNoEntry: false }) === undefined; place = dirname(place)) missing.push(place)
  if (!statSync(place).isDirectory())
    return `cannot be used: ${place} is a file, and a directory is needed; move it away, or set another`
  for (const one of missing.toReversed()) {
    try {
      mkdirSync(one)
    } catch (error) {
      // Another process may have made it meanwhile.
      if (codeOf(error) !== "EEXIST") return faultOf(error, dirname(one))
    }
  }
  return undefined
}

/** A file that is written and removed again: rights, mounts and quotas say no in many ways. */
const written = (directory: string): string | undefined => {
  const probe = join(directory, `.writable.${process.pid}`)
  try {
    writeFileSync(probe, "signalbox", { flush: true })
    return undefined
  } catch (error) {
    return faultOf(error, directory)
  } finally {
    rmSync(probe, { force: true })
  }
}

/** The embedded stores' files are made at the first start: a disk without room for them is reported ahead. */
const roomy = ({ databaseUrl, dataDir, limits }: Config): string | undefined => {
  if (databaseUrl !== undefined || existsSync(join(dataDir, "postgres/PG_VERSION"))) return undefined
  const { bavail, bsize } = statfsSync(dataDir)
  if (bavail * bsize >= limits.dataDirFreeBytes) return undefined
  const free = Math.floor((bavail * bsize) / mebibyte)
  const needed = Math.ceil(limits.dataDirFreeBytes / mebibyte)
  return `has too little room: ${free} MiB are free in ${dataDir}, and the first start takes ${needed}; free some, or set another`
}

const faultIn = (config: Config): string | undefined => {
  const { dataDir } = config
  try {
    return made(dataDir) ?? written(dataDir) ?? roomy(config)
  } catch (error) {
    return faultOf(error, dataDir)
  }
}

/** A DATA_DIR in which nothing can be kept is found before the stores start. */
export const checkDataDirectory: Effect.Effect<void, ConfigInvalid, AppConfig> = Effect.flatMap(
  AppConfig,
  (config) => {
    const fault = faultIn(config)
    return fault === undefined
      ? Effect.void
      : Effect.fail(
          new ConfigInvalid({ faults: [{ variable: "DATA_DIR", fault: `"${config.dataDir}" ${fault}` }] })
        )
  }
)

const faults: Readonly<Record<string, string>> = {
  ENOTFOUND: "does not resolve to an address",
  EAI_AGAIN: "does not resolve to an address at the moment",
  EADDRNOTAVAIL: "is no address of this machine",
  EINVAL: "is no address that can be listened on",
  EAFNOSUPPORT: "is of a family of addresses that this machine does not have"
}

/** A HOST that cannot be listened on is found before the stores start, on a port of the system's choice. */
export const checkHost: Effect.Effect<void, ConfigInvalid, AppConfig> = Effect.flatMap(
  AppConfig,
  ({ host }) =>
    Effect.callback<void, ConfigInvalid>((resume) => {
      const server = createServer()
      server.once("error", (error) => {
        const code = Predicate.hasProperty(error, "code") ? String(error.code) : error.message
        const fault = `"${host}" ${faults[code] ?? `cannot be listened on (${code})`}`
        resume(Effect.fail(new ConfigInvalid({ faults: [{ variable: "HOST", fault }] })))
      })
      server.listen({ host, port: 0 }, () => server.close(() => resume(Effect.void)))
    })
)
