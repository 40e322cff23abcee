import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isAlive, isSame, self } from "#src/infra/process/ProcessIdentity.ts"
import { lockDirectory } from "#streams/kernel/DirectoryLock.ts"
import { makeUnreaped, type Unreaped } from "./Unreaped.ts"

describe("a process that was killed and is not reaped yet", () => {
  let zombie: Unreaped
  const directory = mkdtempSync(join(tmpdir(), "signalbox-lock-"))

  beforeAll(async () => {
    zombie = await makeUnreaped("signalbox")
  })
  afterAll(() => {
    zombie.dispose()
    rmSync(directory, { recursive: true, force: true })
  })

  it("is gone", () => {
    assert.isFalse(isAlive(zombie.pid))
    assert.isFalse(isSame(zombie))
    assert.isTrue(isAlive(process.pid))
    assert.isTrue(isSame(self()))
  })

  it.live("holds no lock on a log", () =>
    Effect.gen(function* () {
      writeFileSync(join(directory, "lock"), `${zombie.pid} ${zombie.startedAt} 0011223344556677`)
      yield* lockDirectory(directory)
    }).pipe(Effect.scoped)
  )
})
