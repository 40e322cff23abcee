import { Effect, Redacted, Schema, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import { chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Limits } from "#src/Limits.ts"
import { keepRunning, type Supervised } from "../process/KeepRunning.ts"
import { readIfThere, writePrivate } from "../process/PrivateFile.ts"
import { isSame, self } from "../process/ProcessIdentity.ts"
import { readState, type StateFile } from "../process/StateFile.ts"
import { findAccount, type PostgresAccount } from "./PostgresAccount.ts"
import { locate } from "./PostgresBinaries.ts"
import { DataDirectoryInUse, PostgresFailed } from "./PostgresFailed.ts"
import { run, startServer } from "./PostgresProcess.ts"
import { endOrphan, type Holder, livingPostmaster } from "./Postmaster.ts"
import { createServer } from "node:net"

/** Is a loopback port free right now? 0 asks the system for one; undefined when taken. */
const freePort = (wanted: number): Effect.Effect<number | undefined> =>
  Effect.callback<number | undefined>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(undefined)))
    server.listen({ port: wanted, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : undefined
      server.close(() => resume(Effect.succeed(port)))
    })
  })

/** The role and the database of the embedded cluster. */
export const role = "signalbox"

export interface EmbeddedPostgres extends Supervised {
  /** `postgres://signalbox:…@127.0.0.1:<port>/signalbox` */
  readonly url: Redacted.Redacted
}

/** The contents of `DATA_DIR/postgres.json` (mode 0600), for other processes of this machine. */
const Published = Schema.Struct({
  url: Schema.String.check(
    Schema.makeFilter((text: string) => URL.canParse(text), { expected: "an address" })
  ),
  owner: Schema.Struct({ pid: Schema.Int, startedAt: Schema.String })
})
type Published = typeof Published.Type

interface Cluster {
  /** PostgreSQL's data directory */
  readonly directory: string
  readonly publishedAt: string
  readonly account: PostgresAccount | undefined
  readonly native: string
}

const published = (cluster: Cluster): StateFile<Published> => readState(cluster.publishedAt, Published)

/**
 * The address of the PostgreSQL that a server process of this machine runs on `<dataDirectory>/postgres` now; undefined
 * where none does. A copy of a directory holds the address of its original: that one's PostgreSQL works elsewhere.
 */
export const runningOn = (dataDirectory: string): Redacted.Redacted | undefined => {
  const file = readState(join(dataDirectory, "postgres.json"), Published)
  if (file._tag !== "Found" || !isSame(file.state.owner)) return undefined
  if (livingPostmaster(join(dataDirectory, "postgres")) === undefined) return undefined
  return Redacted.make(file.state.url, { label: "DATABASE_URL" })
}

const holderOf = (cluster: Cluster): Holder => {
  const file = published(cluster)
  return {
    directory: cluster.directory,
    owner: file._tag === "Found" ? file.state.owner : undefined,
    damagedFile: file._tag === "Damaged" ? file.file : undefined
  }
}

/**
 * initdb into a directory beside the final one, renamed when complete: a start that is killed half-way leaves no half
 * cluster. The password is part of it, in a file that only this account reads.
 */
const initialise = Effect.fnUntraced(function* (cluster: Cluster): Effect.fn.Return<void, PostgresFailed> {
  if (existsSync(join(cluster.directory, "PG_VERSION"))) return
  if (existsSync(cluster.directory) && readdirSync(cluster.directory).length > 0) {
    const problem = `${cluster.directory}/PG_VERSION is missing: restore the directory from a copy, or move it away`
    return yield* new PostgresFailed({ problem, output: "" })
  }
  const fresh = `${cluster.directory}.new`
  const password = randomBytes(24).toString("base64url")
  yield* Effect.sync(() => {
    rmSync(fresh, { recursive: true, force: true })
    mkdirSync(fresh, { recursive: true, mode: 0o700 })
    if (cluster.account !== undefined) chownSync(fresh, cluster.account.uid, cluster.account.gid)
  })
  yield* run({
    ...cluster,
    directory: fresh,
    // The password goes through a pipe: neither arguments nor a file show it.
    script: `printf '%s\\n' "$SIGNALBOX_POSTGRES_PASSWORD" | "$0" "$@" --pwfile=/dev/stdin`,
    environment: { SIGNALBOX_POSTGRES_PASSWORD: password },
    command: "initdb",
    args: [
      `--username=${role}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale-provider=builtin",
      "--locale=C.UTF-8"
    ]
  })
  yield* run({
    ...cluster,
    directory: fresh,
    script: `printf 'CREATE DATABASE ${role}\\n' | "$0" --single "$@" postgres`,
    environment: {},
    command: "postgres",
    args: []
  })
  yield* Effect.sync(() => {
    writePrivate(join(fresh, "password"), password)
    renameSync(fresh, cluster.directory)
  })
})

const settings = (port: number, limits: Limits): ReadonlyArray<string> =>
  Object.entries({
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: 200,
    shared_buffers: `${Math.ceil(limits.postgresSharedBufferBytes / 1024)}kB`,
    huge_pages: "off",
    timezone: "UTC",
    log_timezone: "UTC",
    log_checkpoints: "off"
  }).flatMap(([name, value]) => ["-c", `${name}=${value}`])

const makeCluster = Effect.fnUntraced(function* (
  dataDirectory: string
): Effect.fn.Return<Cluster, PostgresFailed> {
  const account = findAccount()
  if (account === "none") {
    const problem =
      "PostgreSQL refuses to run as root, and there is no account for it: run as another user, " +
      "add an account named postgres, or set DATABASE_URL"
    return yield* new PostgresFailed({ problem, output: "" })
  }
  const native = yield* locate(account !== undefined)
  const directory = join(dataDirectory, "postgres")
  yield* Effect.sync(() => {
    mkdirSync(dataDirectory, { recursive: true })
    // A directory restored from a copy may belong to another user; PostgreSQL insists on owning its own.
    const owner = statSync(directory, { throwIfNoEntry: false })?.uid
    if (owner !== undefined && account !== undefined && owner !== account.uid) {
      return `${directory} does not belong to the account ${account.name}: chown -R ${account.name} ${directory}`
    }
    return undefined
  }).pipe(
    Effect.flatMap((problem) =>
      problem === undefined ? Effect.void : Effect.fail(new PostgresFailed({ problem, output: "" }))
    )
  )
  return { directory, publishedAt: join(dataDirectory, "postgres.json"), account, native }
})

/**
 * Runs PostgreSQL on `<dataDirectory>/postgres` until the scope closes, on a loopback port that stays the same through
 * restarts. A cluster is made on the first start. Returns when it accepts connections.
 */
export const start = Effect.fnUntraced(function* (
  dataDirectory: string,
  limits: Limits
): Effect.fn.Return<EmbeddedPostgres, PostgresFailed | DataDirectoryInUse, Scope.Scope> {
  const cluster = yield* makeCluster(dataDirectory)
  yield* initialise(cluster)
  yield* endOrphan(holderOf(cluster), limits)
  const password = readIfThere(join(cluster.directory, "password"))
  if (password === undefined || !/^[\w-]+$/.test(password)) {
    const problem = `${cluster.directory}/password is ${password === undefined ? "missing" : "damaged"}`
    return yield* new PostgresFailed({ problem, output: "" })
  }
  const before = published(cluster)
  if (before._tag === "Damaged") {
    yield* Effect.logWarning(`${before.file} is damaged; it is written anew, and the port may be another`)
  }
  const startOn = Effect.fnUntraced(function* (wanted: number) {
    const port = (yield* freePort(wanted)) ?? (yield* freePort(0)) ?? 0
    const url = `postgres://${role}:${password}@127.0.0.1:${port}/${role}`
    yield* Effect.sync(() =>
      writePrivate(cluster.publishedAt, JSON.stringify({ url, owner: self() } satisfies Published))
    )
    const supervised = yield* keepRunning({
      name: "PostgreSQL",
      start: Effect.andThen(
        Effect.suspend(() => endOrphan(holderOf(cluster), limits)),
        startServer({ ...cluster, args: settings(port, limits), stopMillis: limits.storeStopMillis })
      ),
      minMillis: limits.storeRestartMinMillis,
      maxMillis: limits.storeRestartMaxMillis
    })
    return { ...supervised, url: Redacted.make(url, { label: "DATABASE_URL" }) }
  })
  const kept = before._tag === "Found" ? Number(new URL(before.state.url).port) : 0
  // A port that was free a moment ago may be taken by now: two copies of one directory want the same at once.
  return yield* startOn(kept).pipe(
    Effect.catchIf(isPortRefused, () => Effect.retry(startOn(0), { times: 4, while: isPortRefused }))
  )
})

/** PostgreSQL's last message when it may not listen on its port. */
const isPortRefused = (error: { readonly message: string }): boolean =>
  error.message.includes("could not create any TCP/IP sockets")
