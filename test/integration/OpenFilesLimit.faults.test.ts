import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { connectionsFor } from "#src/infra/process/OpenFiles.ts"
import { captureLog } from "#test/harness/CapturedLog.ts"
import { root, serverEnvironment } from "#test/harness/ServerProcess.ts"

const limits = { connections: 50_000, connectionsMin: 100, filesReserved: 900 }

describe("the limit of open files", () => {
  it("that leaves no room for connections keeps the server from starting, with both numbers", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "signalbox-files-"))
    const env = serverEnvironment({ PORT: "0", DATA_DIR: dataDir })
    const args = ["-c", `ulimit -n 900; exec timeout 30 "$0" src/main.ts`, process.execPath]
    const ended = await new Promise<{ code: unknown; said: string }>((resolve) => {
      execFile("sh", args, { cwd: root, env }, (error, out, err) =>
        resolve({ code: error?.code, said: out + err })
      )
    })
    rmSync(dataDir, { recursive: true, force: true })
    assert.strictEqual(ended.code, 78, ended.said)
    assert.match(ended.said, /900 files open, and 1000 are needed/)
    assert.notInclude(ended.said, "is ready")
  })

  it.effect("is said where it leaves room for few", () =>
    Effect.gen(function* () {
      let room = 0
      const said = yield* captureLog(Effect.map(connectionsFor(limits, 1_024), (found) => (room = found)))
      assert.strictEqual(room, 124)
      assert.match(said, /1024 files open: room for 124 connections of 50000/)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(connectionsFor(limits, 999))))
      assert.strictEqual(yield* connectionsFor(limits, 1_000), 100)
      assert.strictEqual(yield* connectionsFor(limits, 60_000), 50_000)
    })
  )
})
