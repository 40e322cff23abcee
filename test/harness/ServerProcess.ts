import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { cpus, tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

import { makePrivateDatabase } from "./PrivateDatabase.ts"

/**
 * A real Signalbox process on a private data directory, which integration tests start, ask, kill with -9 and start
 * again. The port stays the same over restarts, so a client can simply try again.
 */
export interface ServerProcess {
  readonly url: string
  readonly dataDir: string
  /** the admin's account key, from DATA_DIR/admin.json */
  readonly adminKey: () => string
  /** of the store that it counts in, with credentials */
  readonly clickhouseUrl: () => string
  readonly pid: () => number
  /** everything printed since the first start */
  readonly output: () => string
  /** how it ended: its exit code, or null after a signal */
  readonly ended: () => Promise<number | null>
  /** ends the process with the signal and returns when it is gone */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
  /** starts a stopped process again on the same data and port; returns when it is ready */
  readonly start: () => Promise<void>
  /** stops it for good and removes its data */
  readonly dispose: () => Promise<void>
}

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>
  /** shared with another process; the caller then removes it */
  readonly dataDir?: string
}

export const root = normalize(join(import.meta.dirname, "../.."))

/** Started as `npm start` does it (deploy/setup.mjs); a comparison of the bench adds flags (bench/harness/AlikeFlags.ts). */
const serverArguments: ReadonlyArray<string> = [
  `--v8-pool-size=${Math.max(1, Math.min(4, cpus().length - 1))}`,
  ...(process.env["BENCH_SERVER_FLAGS"]?.split(" ") ?? []),
  join(root, "src/main.ts")
]

/** Nothing of the test runner's own environment (vitest sets BASE_URL) reaches the server. */
const inherited = ["PATH", "HOME", "TMPDIR", "LANG"]

export const serverEnvironment = (
  changes: Readonly<Record<string, string>> = {}
): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(inherited.map((name) => [name, process.env[name] ?? ""])),
  UV_THREADPOOL_SIZE: "16",
  NODE_COMPILE_CACHE: join(root, ".runtime/compiled"),
  ...changes
})

/** Ports that no system gives to connections and to listeners that ask for any: those come and go in other tests. */
const lowestPort = 10_000
const highestPort = 32_000

/** A port of loopback that is free, and that stays so until its server has come so far. */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < 100; tries++) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort))
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${lowestPort} to ${highestPort} is free`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Runs a server that is expected not to start (it is stopped after 30 s); answers its exit and its output. */
export const runServer = (
  env: Readonly<Record<string, string>>
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, serverArguments, {
      cwd: root,
      env: serverEnvironment(env),
      stdio: ["ignore", "pipe", "pipe"]
    })
    const timer = setTimeout(() => child.kill("SIGTERM"), 30_000)
    // One that does not even listen to that would be left behind, and take a core.
    const lastTimer = setTimeout(() => child.kill("SIGKILL"), 45_000)
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    child.once("close", (code) => {
      clearTimeout(timer)
      clearTimeout(lastTimer)
      resolve({ code, output })
    })
  })

const isReady = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    // Not listening yet: the caller asks again until its own deadline.
    return false
  }
}

/** A part of the start message, which comes as a whole a moment after `/readyz` is 200. */
const startMessage = "is ready after"

/** A start that takes longer has failed: with disks being filled beside it, one has taken 36 s. */
const startMillis = 60_000

/** Starts a server and returns when `/readyz` answers 200 and the start message is there. */
export const startServer = async (options: ServerOptions = {}): Promise<ServerProcess> => {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "signalbox-")))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let output = ""
  let child: ChildProcess | undefined
  let gone: Promise<number | null> = Promise.resolve(null)

  // A suite that runs on a given PostgreSQL gives every server process a database of its own there.
  const serverUrl = process.env["DATABASE_URL"]
  const database =
    serverUrl === undefined || options.env?.["DATABASE_URL"] !== undefined
      ? undefined
      : await makePrivateDatabase(serverUrl)

  const start = async (): Promise<void> => {
    const env = serverEnvironment({
      PORT: String(port),
      DATA_DIR: dataDir,
      ...(database === undefined ? {} : { DATABASE_URL: database.url }),
      ...options.env
    })
    const started = spawn(process.execPath, serverArguments, {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"]
    })
    child = started
    let announced = false
    const isUp = async (): Promise<boolean> => (await isReady(url)) && announced
    gone = new Promise((resolve) => started.once("exit", (code) => resolve(code)))
    const collect = (chunk: Buffer): void => {
      const text = chunk.toString()
      if (text.includes(startMessage)) announced = true
      output = (output + text).slice(-1_000_000)
    }
    started.stdout.on("data", collect)
    started.stderr.on("data", collect)
    const deadline = performance.now() + startMillis
    while (!(await isUp())) {
      if (started.exitCode !== null || started.signalCode !== null) {
        throw new Error(
          `the server ended before it was ready (${started.exitCode ?? started.signalCode}):\n${output}`
        )
      }
      if (performance.now() > deadline) throw new Error(`the server is not ready in time:\n${output}`)
      await sleep(50)
    }
  }

  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> => {
    child?.kill(signal)
    return gone
  }

  const server: ServerProcess = {
    url,
    dataDir,
    adminKey: () =>
      (JSON.parse(readFileSync(join(dataDir, "admin.json"), "utf8")) as { adminKey: string }).adminKey,
    clickhouseUrl: () =>
      options.env?.["CLICKHOUSE_URL"] ??
      (JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8")) as { url: string }).url,
    pid: () => child?.pid ?? -1,
    output: () => output,
    ended: () => gone,
    stop,
    start,
    dispose: async () => {
      await stop()
      await database?.drop()
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    }
  }
  try {
    await start()
  } catch (error) {
    await server.dispose()
    throw error
  }
  return server
}
