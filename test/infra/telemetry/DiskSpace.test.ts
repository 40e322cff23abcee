import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { AppConfig } from "#src/Config.ts"
import * as DiskSpace from "#src/infra/telemetry/DiskSpace.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { describeWith } from "#test/harness/Requirement.ts"

const mebibyte = 1024 * 1024

describeWith(smallDisk, "the room under DATA_DIR", () => {
  it("is on /readyz and /metrics, and in the log once it has gone and once it is there again", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "signalbox-"))
    const disk = new SmallDisk(join(dataDir, "disk"), 8)
    const lines: Array<string> = []
    const limits = { diskFreeBytesMin: mebibyte, diskCheckMillis: 3_600_000 }
    const layer = DiskSpace.layer.pipe(
      Layer.provideMerge(Readiness.layer),
      Layer.provide(AppConfig.layerOf({ dataDir: disk.directory, limits })),
      Layer.provideMerge(Log.layer("Info", (line) => void lines.push(line)))
    )
    const said = (): ReadonlyArray<string> => lines.map((line) => String(JSON.parse(line).message))
    const program = Effect.gen(function* () {
      const { report } = yield* Readiness
      const state = () => Effect.map(report, ({ components }) => components["disk"])
      const free = Effect.map(Metric.snapshot, (all) => {
        const found = all.find(({ id }) => id === "signalbox_disk_free_bytes")
        return found?.type === "Gauge" ? Number(found.state.value) : undefined
      })
      assert.deepStrictEqual(yield* state(), { status: "up" })
      assert.isAbove((yield* free) ?? 0, mebibyte)
      yield* Effect.promise(() => disk.fill())
      const full = yield* state()
      assert.strictEqual(full?.status, "degraded")
      assert.match(full?.detail ?? "", /the disk of DATA_DIR is full: 0\.\d MiB are left/)
      assert.isBelow((yield* free) ?? mebibyte, mebibyte)
      yield* state()
      assert.deepStrictEqual(said(), [
        "The disk is full: events and changes are refused until there is room again"
      ])
      yield* Effect.promise(() => disk.free())
      assert.deepStrictEqual(yield* state(), { status: "up" })
      assert.strictEqual(said().at(-1), "The disk has room again")
      assert.lengthOf(said(), 2)
    })
    try {
      await Effect.runPromise(Effect.provide(program, layer))
    } finally {
      disk.remove()
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})
