import { Effect, Redacted, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Limits } from "#src/Limits.ts"
import { freePort } from "../process/FreePort.ts"
import { keepRunning, type Supervised } from "../process/KeepRunning.ts"
import { readIfThere, writePrivate } from "../process/PrivateFile.ts"
import { isAlive, isSame, type ProcessIdentity, self } from "../process/ProcessIdentity.ts"
import { findAccount, type PostgresAccount } from "./PostgresAccount.ts"
import { locate } from "./PostgresBinaries.ts"
import { DataDirectoryInUse, PostgresFailed } from "./PostgresFailed.ts"
import { run, startServer } from "./PostgresProcess.ts"

/** The role and the database of the embedded cluster. */
export const role = "signalbox"

export interface EmbeddedPostgres extends Supervised {
  /** `postgres://signalbox:…@127.0.0.1:<port>/signalbox` */
  readonly url: Redacted.Redacted
}

/** What `DATA_DIR/postgres.json` (mode 0600) tells other processes of this machine. */
interface Published {
  readonly url: string
  readonly owner: ProcessIdentity
}

interface Cluster {
  /** PostgreSQL's data directory */
  readonly directory: string
  readonly publishedAt: string
  readonly account: PostgresAccount | undefined
  readonly native: string
}

const published = (cluster: Cluster): Published | undefined => {
  const text = readIfThere(cluster.publishedAt)
  return text === undefined ? undefined : JSON.parse(text)
}

/**
 * initdb into a directory beside the final one, renamed when complete: a start that is killed half-way leaves no half
 * cluster. The password is part of it, in a file that only this account reads.
 */
const initialise = Effect.fnUntraced(function* (cluster: Cluster): Effect.fn.Return<void, PostgresFailed> {
  if (existsSync(join(cluster.directory, "PG_VERSION"))) return
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

/** The process id of a postmaster that lives on this data directory. */
const livingPostmaster = (cluster: Cluster): number | undefined => {
  const pid = Number(readIfThere(join(cluster.directory, "postmaster.pid"))?.split("\n")[0])
  if (!Number.isInteger(pid) || pid <= 1 || !isAlive(pid)) return undefined
  // Where the system tells: a reused process id is not a postmaster.
  const name = readIfThere(`/proc/${pid}/comm`)
  return name === undefined || name.trim() === "postgres" ? pid : undefined
}

/**
 * A server process that was killed leaves a PostgreSQL that is on its way out (see PostgresProcess.ts). Waits for it,
 * then ends it; a PostgreSQL whose server process lives is not ours to end.
 */
const endOrphan = Effect.fnUntraced(function* (
  cluster: Cluster,
  limits: Limits
): Effect.fn.Return<void, PostgresFailed | DataDirectoryInUse> {
  const owner = published(cluster)?.owner
  for (const signal of ["SIGINT", "SIGQUIT"] as const) {
    const pid = livingPostmaster(cluster)
    if (pid === undefined) return
    if (owner !== undefined && owner.pid !== process.pid && isSame(owner)) {
      return yield* new DataDirectoryInUse({ directory: cluster.directory, pid: owner.pid })
    }
    yield* Effect.logInfo("Stopping the PostgreSQL that an earlier process left behind")
    yield* Effect.sync(() => process.kill(pid, signal))
    const deadline = performance.now() + limits.storeStopMillis / 2
    while (livingPostmaster(cluster) !== undefined && performance.now() < deadline) yield* Effect.sleep(10)
  }
  if (livingPostmaster(cluster) === undefined) return
  return yield* new PostgresFailed({
    problem: `a PostgreSQL on ${cluster.directory} does not stop`,
    output: ""
  })
})

const settings = (port: number, limits: Limits): ReadonlyArray<string> =>
  Object.entries({
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: 100,
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
    // A directory restored from a copy may belong to somebody else; PostgreSQL insists on owning its own.
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
  yield* endOrphan(cluster, limits)
  const password = readIfThere(join(cluster.directory, "password"))
  if (password === undefined) {
    return yield* new PostgresFailed({ problem: `${cluster.directory}/password is missing`, output: "" })
  }
  const before = published(cluster)
  const port =
    (yield* freePort(before === undefined ? 0 : Number(new URL(before.url).port))) ??
    (yield* freePort(0)) ??
    0
  const url = `postgres://${role}:${password}@127.0.0.1:${port}/${role}`
  yield* Effect.sync(() =>
    writePrivate(cluster.publishedAt, JSON.stringify({ url, owner: self() } satisfies Published))
  )
  const supervised = yield* keepRunning({
    name: "PostgreSQL",
    start: Effect.andThen(
      endOrphan(cluster, limits),
      startServer({ ...cluster, args: settings(port, limits), stopMillis: limits.storeStopMillis })
    ),
    minMillis: limits.storeRestartMinMillis,
    maxMillis: limits.storeRestartMaxMillis
  })
  return { ...supervised, url: Redacted.make(url, { label: "DATABASE_URL" }) }
})
