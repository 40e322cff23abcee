import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { FileFailed } from "#streams/kernel/LogFailure.ts"
import { LogFiles, type LogFileSystem, nodeLogFiles } from "#streams/kernel/LogFiles.ts"
import { appendTexts, bytes, readAll, temporaryDirectory, texts } from "./TemporaryLog.ts"

const found = (directory: string) =>
  Effect.scoped(
    Effect.flatMap(DurableLog.open({ directory, consumers: ["sink"], writeThrough: true }), (log) =>
      Effect.map(readAll(log, "sink"), texts)
    )
  )

/** Node's files, where an fdatasync takes for ever or a write fails. */
const filesWith = (changed: {
  readonly isSyncStuck?: () => boolean
  readonly writeNow?: (path: string) => FileFailed | undefined
}): LogFileSystem => ({
  ...nodeLogFiles,
  open: (path, mode) =>
    Effect.map(nodeLogFiles.open(path, mode), (file) => ({
      ...file,
      sync: Effect.suspend(() => (changed.isSyncStuck?.() === true ? Effect.never : file.sync)),
      writeNow: (data, position) => changed.writeNow?.(path) ?? file.writeNow(data, position)
    }))
})

/** Appends records whose fdatasync never comes, as a killed process leaves them, and answers the files it left. */
const abandoned = Effect.fnUntraced(function* (directory: string, records: ReadonlyArray<string>) {
  const state = { isStuck: false }
  const scope = yield* Scope.make()
  const log = yield* DurableLog.open({ directory, consumers: ["sink"], writeThrough: true }).pipe(
    Scope.provide(scope),
    Effect.provideService(LogFiles, filesWith({ isSyncStuck: () => state.isStuck }))
  )
  yield* appendTexts(log, ["acknowledged"])
  state.isStuck = true
  for (const record of records) log.append(bytes(record), () => undefined)
  const left = join(directory, "..", `${Math.random()}`)
  fs.cpSync(directory, left, { recursive: true, filter: (path) => !path.endsWith("/lock") })
  state.isStuck = false
  yield* Scope.close(scope, Exit.void)
  return left
})

describe("a log with write-through", () => {
  it.live("keeps what was appended by a process that was killed in the same turn", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const program = join(import.meta.dirname, "DyingProcess.ts")
      let total = 0
      for (const count of [1, 3, 500]) {
        const died = spawnSync(process.execPath, [program, directory, `${count}`], { stdio: "pipe" })
        assert.strictEqual(died.signal, "SIGKILL", `${died.stderr}`)
        total += count
      }
      assert.deepStrictEqual(
        yield* found(directory),
        Array.from({ length: total }, (_, index) => `record ${index}`)
      )
    }).pipe(Effect.scoped)
  )

  it.live("keeps the whole records before the byte at which a crash tore its file, and takes new ones", () =>
    Effect.gen(function* () {
      const directory = join(yield* temporaryDirectory, "log")
      const records = ["first", "second one", "third"]
      const left = yield* abandoned(directory, records)
      // Without the segments' share: the write of the batch had not begun.
      const file = join(left, "write-through-1")
      const whole = fs.readFileSync(file).subarray(0, 400)
      const ends = records.map((_, index) =>
        records.slice(0, index + 1).reduce((sum, text) => sum + 40 + text.length, 0)
      )
      assert.strictEqual(whole[ends.at(-1) ?? 0], 0)
      const untouched = fs.readdirSync(left).filter((name) => name.endsWith(".segment"))
      assert.lengthOf(untouched, 1)
      for (let cut = 0; cut <= (ends.at(-1) ?? 0); cut++) {
        const copy = `${left}-${cut}`
        fs.cpSync(left, copy, { recursive: true })
        const torn = Buffer.alloc(whole.length, cut % 2 === 0 ? 0 : 0xa5)
        whole.copy(torn, 0, 0, cut)
        fs.writeFileSync(join(copy, "write-through-1"), torn)
        const kept = records.slice(0, ends.filter((end) => end <= cut).length)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* DurableLog.open({ directory: copy, consumers: ["sink"], writeThrough: true })
            assert.deepStrictEqual(yield* appendTexts(log, ["after"]), [1 + kept.length])
            const held = texts(yield* readAll(log, "sink"))
            assert.deepStrictEqual(held, ["acknowledged", ...kept, "after"], `cut at ${cut}`)
          })
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses a record that the operating system does not take, and counts none of it", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const state = { code: "" }
      const full = (path: string) =>
        state.code === "" || !path.includes("write-through")
          ? undefined
          : new FileFailed({ operation: "write", path, code: state.code, cause: new Error(state.code) })
      yield* Effect.gen(function* () {
        const log = yield* DurableLog.open({ directory, consumers: ["sink"], writeThrough: true })
        yield* appendTexts(log, ["before"])
        for (const [code, reason] of [
          ["ENOSPC", "disk_full"],
          ["EIO", "io"]
        ] as const) {
          state.code = code
          const refused = log.append(bytes("refused"), () => assert.fail("it was refused"))
          assert.instanceOf(refused, DurableLog.LogUnavailable)
          assert.include(refused, { reason })
          const allRefused = log.appendAll([bytes("refused")], () => assert.fail("it was refused"))
          assert.instanceOf(allRefused, DurableLog.LogUnavailable)
          assert.strictEqual(log.nextOffset(), 1)
        }
        state.code = ""
        assert.deepStrictEqual(yield* appendTexts(log, ["after"]), [1])
      }).pipe(Effect.scoped, Effect.provideService(LogFiles, filesWith({ writeNow: full })))
      assert.deepStrictEqual(yield* found(directory), ["before", "after"])
    }).pipe(Effect.scoped)
  )
})
