import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { until } from "#test/harness/Eventually.ts"

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    assert.propertyVal(error, "code", "ESRCH")
    return false
  }
}

describe("a worker's process", () => {
  it("ends with the server, however that ends, amid a job that does not", async () => {
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      const server = spawn(process.execPath, [join(import.meta.dirname, "WorkersProcess.ts")], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const [line] = (await once(createInterface(server.stdout), "line")) as [string]
      const pid = Number(line)
      // The endless job has begun by then, or is on its way.
      await sleep(500)
      assert.isTrue(isThere(pid))
      server.kill(signal)
      await once(server, "exit")
      await until("the worker's process", async () => (isThere(pid) ? "is there" : undefined))
    }
  })
})
