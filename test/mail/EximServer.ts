import { spawn, spawnSync } from "node:child_process"
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import { type Requirement, requirement } from "#test/harness/Requirement.ts"
import { freePort } from "#test/harness/ServerProcess.ts"

/** The user that Debian's Exim delivers as: it delivers as root to nobody. */
const user = "Debian-exim"

export const exim: Requirement = requirement("Exim", () => {
  const { error, status } = spawnSync("exim4", ["-bV"])
  if (error !== undefined || status !== 0)
    return "it is not in PATH (Debian: apt-get install exim4-daemon-light)"
  return process.getuid?.() === 0 ? undefined : "it delivers as a user of its own; run as root"
})

/** A mail server on loopback that delivers what it takes into a Maildir. */
export interface EximServer {
  readonly port: number
  /** the files of the Maildir, each one mail with the lines that the server has put in front of it */
  readonly mails: () => Promise<ReadonlyArray<string>>
}

const configuration = (directory: string, port: number): string => `
spool_directory = ${directory}/spool
log_file_path = ${directory}/log/%slog
pid_file_path = ${directory}/pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
primary_hostname = mta.test
tls_advertise_hosts =
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
acl_smtp_rcpt = accept
begin routers
all:
  driver = accept
  transport = maildir
begin transports
maildir:
  driver = appendfile
  directory = ${directory}/Maildir
  maildir_format
  user = ${user}
`

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("data", () => socket.end("QUIT\r\n"))
    socket.once("close", (hadError) => resolve(!hadError))
    socket.once("error", () => socket.destroy())
  })

/** Debian's Exim with a configuration, a spool and a Maildir of its own. */
export const startExim: Effect.Effect<EximServer, never, Scope.Scope> = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-exim-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true, maxRetries: 5 }))
  )
  const port = yield* Effect.promise(freePort)
  const child = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      for (const name of ["spool", "log", "Maildir"]) await mkdir(join(directory, name))
      await writeFile(join(directory, "exim.conf"), configuration(directory, port))
      await chmod(directory, 0o755)
      spawnSync("chown", ["-R", user, directory])
      // Exim reads no configuration that others than root could have written.
      spawnSync("chown", ["root", directory, join(directory, "exim.conf")])
      return spawn("exim4", ["-C", join(directory, "exim.conf"), "-bdf"], { stdio: "ignore" })
    }),
    (running) =>
      Effect.promise(async () => {
        if (running.exitCode !== null || running.signalCode !== null) return
        const gone = new Promise((resolve) => running.once("exit", resolve))
        running.kill("SIGTERM")
        await gone
      })
  )
  yield* Effect.promise(async () => {
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`exim4 ended with ${child.exitCode}`)
      await sleep(20)
    }
  })
  const arrived = join(directory, "Maildir", "new")
  return {
    port,
    mails: async () => {
      const names = await readdir(arrived).catch(() => [])
      return Promise.all(names.map((name) => readFile(join(arrived, name), "latin1")))
    }
  }
})
