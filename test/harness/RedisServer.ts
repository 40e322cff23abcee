import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type Requirement, requirement } from "./Requirement.ts"
import { freePort } from "./ServerProcess.ts"

export const redisServer: Requirement = requirement("redis-server", () => {
  const { error, status } = spawnSync("redis-server", ["--version"])
  return error === undefined && status === 0
    ? undefined
    : "it is not in PATH (Debian: apt-get install redis-server)"
})

/** A private Redis on loopback, without persistence; it can be stopped and started again on the same port. */
export interface RedisServer {
  readonly url: Redacted.Redacted
  readonly start: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => socket.write("PING\r\n"))
    socket.once("data", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

export const startRedis: Effect.Effect<RedisServer, never, Scope.Scope> = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-redis-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const port = yield* Effect.promise(freePort)
  let child: ChildProcess | undefined
  const start = Effect.promise(async () => {
    const args = [
      "--port",
      `${port}`,
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--appendonly",
      "no",
      "--dir",
      directory
    ]
    child = spawn("redis-server", args, { stdio: "ignore" })
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`)
      await sleep(10)
    }
  })
  const stop = Effect.promise(async () => {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const gone = new Promise((resolve) => running.once("exit", resolve))
    running.kill("SIGKILL")
    await gone
  })
  yield* Effect.acquireRelease(start, () => stop)
  return { url: Redacted.make(`redis://127.0.0.1:${port}`), start, stop }
})
