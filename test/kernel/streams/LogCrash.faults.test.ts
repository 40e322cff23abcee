import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { readAll, temporaryDirectory, texts } from "./TemporaryLog.ts"

const program = join(import.meta.dirname, "AppendingProcess.ts")

interface Appending {
  readonly child: ChildProcess
  /** the numbers acknowledged so far */
  readonly acknowledged: Array<number>
  /** resolves when so many have been acknowledged */
  readonly until: (count: number) => Promise<void>
  /** resolves when the process is gone and all it wrote has been read */
  readonly killed: () => Promise<void>
}

const startAppending = (
  directory: string,
  firstNumber: number
): Effect.Effect<Appending, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [program, directory, `${firstNumber}`], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const acknowledged: Array<number> = []
      let waiting: (() => void) | undefined
      let rest = ""
      child.stdout.setEncoding("latin1").on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) if (line !== "open") acknowledged.push(Number(line))
        waiting?.()
      })
      const ended = once(child, "exit").then(() => {
        throw new Error("the appending process ended by itself")
      })
      // Ends with the kill, when there is no listener any more.
      ended.catch(() => waiting?.())
      const until = async (count: number): Promise<void> => {
        while (acknowledged.length < count) {
          await Promise.race([ended, new Promise<void>((resolve) => (waiting = resolve))])
        }
      }
      const killed = async (): Promise<void> => {
        const closed = once(child, "close")
        child.kill("SIGKILL")
        await closed
      }
      return { child, acknowledged, until, killed }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

describe("a process killed with SIGKILL", () => {
  it.live("leaves every record it acknowledged, once and in order", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const acknowledged = new Set<number>()
      let firstNumber = 0
      for (const kill of [1, 50, 333, 1000, 2500]) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const appending = yield* startAppending(directory, firstNumber)
            yield* Effect.promise(() => appending.until(kill))
            yield* Effect.promise(appending.killed)
            for (const number of appending.acknowledged) acknowledged.add(number)
          })
        )
        const found = yield* Effect.scoped(
          Effect.flatMap(DurableLog.open({ directory, consumers: ["sink"] }), (log) => readAll(log, "sink"))
        )
        const numbers = texts(found).map((text) => Number(text.split(":")[0]))
        const present = new Set(numbers)
        assert.strictEqual(present.size, numbers.length, "a record came twice")
        assert.deepStrictEqual(
          numbers.toSorted((a, b) => a - b),
          numbers,
          "records are out of order"
        )
        assert.deepStrictEqual(
          Array.from(acknowledged).filter((number) => !present.has(number)),
          []
        )
        firstNumber = (numbers.at(-1) ?? -1) + 100
      }
    }).pipe(Effect.scoped)
  )

  it.live("keeps every other process out while it lives, and nobody once it is dead", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const appending = yield* startAppending(directory, 0)
      yield* Effect.promise(() => appending.until(1))
      const open = Effect.scoped(DurableLog.open({ directory, consumers: ["sink"] }))
      const refusal = yield* Effect.flip(open)
      assert.instanceOf(refusal, DurableLog.LogLocked)
      assert.deepInclude(refusal, { directory, holder: `${appending.child.pid}` })
      yield* Effect.promise(appending.killed)
      yield* open
    }).pipe(Effect.scoped)
  )

  it.live("is told from another process that got its pid", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      fs.writeFileSync(join(directory, "lock"), `${process.pid} 1 0123456789abcdef`)
      yield* Effect.scoped(DurableLog.open({ directory, consumers: [] }))
      fs.writeFileSync(join(directory, "lock"), "torn")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* DurableLog.open({ directory, consumers: [] })
          const second = yield* Effect.flip(Effect.scoped(DurableLog.open({ directory, consumers: [] })))
          assert.instanceOf(second, DurableLog.LogLocked)
        })
      )
      assert.deepStrictEqual(
        fs.readdirSync(directory).filter((name) => name.startsWith("lock")),
        []
      )
    }).pipe(Effect.scoped)
  )
})

/** Why no small file system can be mounted here, or undefined where it can. */
const mountProblem = (directory: string): string | undefined => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "signalbox-test", directory], { stdio: "pipe" })
    return undefined
  } catch (error) {
    return String(error)
  }
}

describe("a full disk", () => {
  it.live("refuses records, keeps those acknowledged, and goes on by itself when there is room", (context) =>
    Effect.gen(function* () {
      const mountPoint = yield* temporaryDirectory
      const problem = mountProblem(mountPoint)
      if (problem !== undefined) {
        assert.notStrictEqual(process.env["REQUIRE_ALL"], "1", problem)
        return context.skip(`mounting a tmpfs takes root: ${problem}`)
      }
      yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("umount", ["-l", mountPoint])))
      const ballast = join(mountPoint, "ballast")
      fs.writeFileSync(ballast, Buffer.alloc(1024 * 1024))
      const options = { directory: join(mountPoint, "log"), consumers: ["sink"], repairEveryMillis: 5 }
      let acknowledged = 0
      const append = (log: DurableLog.DurableLog) =>
        Effect.suspend(() => log.appendEffect(new Uint8Array(5000).fill(acknowledged))).pipe(
          Effect.tap(() => Effect.sync(() => acknowledged++))
        )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* DurableLog.open(options)
          const refusal = yield* Effect.flip(Effect.forever(append(log)))
          assert.instanceOf(refusal, DurableLog.LogUnavailable)
          assert.include(refusal, { reason: "disk_full" })
          const beforeRoom = acknowledged
          assert.isAbove(beforeRoom, 100)
          assert.strictEqual((yield* Effect.flip(append(log)))._tag, "LogUnavailable")
          fs.unlinkSync(ballast)
          yield* append(log).pipe(Effect.retry({ while: (error) => error._tag === "LogUnavailable" }))
          yield* Effect.replicateEffect(append(log), 20)
          assert.strictEqual(acknowledged, beforeRoom + 21)
        })
      )
      const found = yield* Effect.scoped(
        Effect.flatMap(DurableLog.open(options), (log) => readAll(log, "sink"))
      )
      assert.deepStrictEqual(
        found.map((record) => record.payload[0]),
        Array.from({ length: acknowledged }, (_, index) => index & 255)
      )
    }).pipe(Effect.scoped)
  )
})
