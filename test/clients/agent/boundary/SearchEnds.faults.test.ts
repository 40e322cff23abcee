import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { codeOf, put, withWorkspace } from "./TestWorkspace.ts"

/** SEARCH_SEED repeats a run. */
const seed = Number(process.env["SEARCH_SEED"] ?? Date.now() % 1_000_000)

describe("searches that have no end", () => {
  // V8 may lose the order to end that comes while a thread loads its modules: twice in some hundred of these.
  it("end at whatever instant of a thread's start their time is over", () =>
    withWorkspace(async ({ root, run, runner }) => {
      const random = seededRandom(seed)
      put(join(root, "a".repeat(40)), `${"a".repeat(60)}b`)
      const signal = new AbortController().signal
      const hooks = { onOutput: () => undefined, approve: () => Promise.resolve("no" as const), signal }
      const began = performance.now()
      await run("fs.grep", { pattern: "nothing" })
      const startMillis = performance.now() - began
      const endless = (): Promise<string> => {
        const timeoutMs = Math.ceil(startMillis * (0.5 + 1.5 * random()))
        const call = { callId: "x", method: "fs.grep", params: { pattern: "(a+)+$" }, timeoutMs } as const
        return runner.run(call, hooks).then(codeOf)
      }
      for (let round = 0; round < 50; round++)
        assert.deepStrictEqual(
          await Promise.all([endless(), endless()]),
          ["timeout", "timeout"],
          `SEARCH_SEED=${seed}, round ${round}`
        )
    }))
})
