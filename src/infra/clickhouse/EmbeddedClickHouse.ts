import { Effect, Schedule, Schema, type Scope } from "effect"
import { fork } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Limits } from "#src/Limits.ts"
import { childEnvironment } from "../process/ChildEnvironment.ts"
import { endOf, endsWithin, lastLines } from "../process/ChildEnd.ts"
import { keepRunning, type Running } from "../process/KeepRunning.ts"
import { writePrivate } from "../process/PrivateFile.ts"
import { readState } from "../process/StateFile.ts"
import { type ChildOptions, type ChildReady, optionsVariable } from "./child/ChildOptions.ts"
import { EmbeddedClickHouseFailed } from "./ClickHouseFailed.ts"
import { forgetLostEngine } from "./LostEngine.ts"

/** User and database of the embedded ClickHouse. */
const name = "signalbox"

/** Threads of the child: four connections of the engine, and files. */
const childThreads = 8

export interface Endpoint {
  /** `http://host:port`, without credentials */
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
}

export interface EmbeddedClickHouse {
  readonly current: () => Endpoint
  readonly restarts: () => number
  /** the fault of its directory at the start, and the possible losses */
  readonly damage: string | undefined
  /** undefined while it is down */
  readonly pid: () => number | undefined
}

/** The contents of `DATA_DIR/clickhouse.json` (mode 0600), for other processes of this machine. */
const Published = Schema.Struct({
  url: Schema.String.check(
    Schema.makeFilter((text: string) => URL.canParse(text), { expected: "an address" })
  )
})

const isReady = (message: unknown): message is ChildReady =>
  typeof message === "object" && message !== null && "port" in message && typeof message.port === "number"

interface Started extends Running {
  readonly port: number
  readonly pid: number
}

/** Starts the child; returns when it listens. The engine's lock on its directory is freed by the end of an old child. */
const startChild = (
  options: ChildOptions,
  limits: Limits
): Effect.Effect<Started, EmbeddedClickHouseFailed> =>
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const child = fork(join(import.meta.dirname, "child", "main.ts"), {
      execArgv: [],
      // A group of its own: Ctrl-C in a terminal is for the server, which then stops its stores in order.
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: childEnvironment({
        UV_THREADPOOL_SIZE: String(childThreads),
        [optionsVariable]: JSON.stringify(options)
      })
    })
    const exited = endOf(child)
    const last = lastLines(child, (line) => runFork(Effect.logDebug(line)))
    const port = yield* Effect.promise(
      () =>
        new Promise<number | undefined>((resolve) => {
          child.on("message", (message) => resolve(isReady(message) ? message.port : undefined))
          void exited.then(() => resolve(undefined))
        })
    ).pipe(Effect.timeoutOrElse({ duration: limits.clickhouseStartMillis, orElse: () => Effect.undefined }))
    const stop = Effect.gen(function* () {
      if (child.connected) child.disconnect()
      if (!(yield* endsWithin(exited, limits.storeStopMillis))) child.kill("SIGKILL")
    })
    if (port !== undefined && child.pid !== undefined) return { exited, stop, port, pid: child.pid }
    child.kill("SIGKILL")
    const end = yield* Effect.promise(() => exited)
    return yield* new EmbeddedClickHouseFailed({
      problem: `the embedded ClickHouse did not start on ${options.engineDirectory} (${end}); CLICKHOUSE_URL names a server to use instead`,
      output: last.join("\n")
    })
  })

/** An earlier server process that was killed may still hold the engine's directory while its child ends. */
const isLocked = (error: EmbeddedClickHouseFailed): boolean => error.output.includes("Cannot lock file")

/** The port of the last start, so that others find it where it was; 0 for one that is free. */
const portBefore = (publishedAt: string): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = readState(publishedAt, Published)
    if (before._tag === "Found") return Effect.succeed(Number(new URL(before.state.url).port))
    if (before._tag === "Missing") return Effect.succeed(0)
    const text = `${before.file} is damaged; it is written anew, and the port may be another`
    return Effect.as(Effect.logWarning(text), 0)
  })

/**
 * Runs the ClickHouse engine in a child process on `<dataDirectory>/clickhouse` until the scope closes; a child that
 * dies is started again. A native crash or a busy engine so takes nothing of this process with it. Address and
 * credentials are in `<dataDirectory>/clickhouse.json` (mode 0600), for other processes of this machine.
 */
export const start = Effect.fnUntraced(function* (
  dataDirectory: string,
  limits: Limits
): Effect.fn.Return<EmbeddedClickHouse, EmbeddedClickHouseFailed, Scope.Scope> {
  const directory = join(dataDirectory, "clickhouse")
  const publishedAt = join(dataDirectory, "clickhouse.json")
  const password = randomBytes(24).toString("base64url")
  yield* Effect.sync(() => mkdirSync(directory, { recursive: true, mode: 0o700 }))
  const engineDirectory = join(directory, "engine")
  const damage = yield* forgetLostEngine(dataDirectory, engineDirectory)
  let port = yield* portBefore(publishedAt)
  let pid: number | undefined
  const startOnce = Effect.suspend(() =>
    startChild(
      {
        engineDirectory,
        incomingDirectory: join(directory, "incoming"),
        port,
        username: name,
        password,
        database: name,
        queryBytes: limits.clickhouseQueryBytes,
        serverBytes: limits.clickhouseServerBytes,
        resultBytes: limits.clickhouseResultBytes,
        bodyBytes: limits.clickhouseBodyBytes,
        queryMillis: limits.clickhouseQueryMillis,
        waiting: limits.clickhouseWaiting,
        stopMillis: limits.storeStopMillis / 2,
        mendMillis: limits.clickhouseMendMillis
      },
      limits
    )
  ).pipe(
    Effect.tap((child) =>
      Effect.sync(() => {
        port = child.port
        pid = child.pid
        void child.exited.then(() => (pid = undefined))
        const url = `http://${name}:${password}@127.0.0.1:${port}/${name}`
        writePrivate(publishedAt, JSON.stringify({ url, pid }))
      })
    )
  )
  const supervised = yield* keepRunning({
    name: "ClickHouse",
    start: Effect.retry(startOnce, {
      schedule: Schedule.spaced(100),
      while: isLocked,
      times: limits.storeStopMillis / 100
    }),
    minMillis: limits.storeRestartMinMillis,
    maxMillis: limits.storeRestartMaxMillis
  })
  return {
    current: () => ({ url: `http://127.0.0.1:${port}`, username: name, password, database: name }),
    restarts: supervised.restarts,
    damage,
    pid: () => pid
  }
})
