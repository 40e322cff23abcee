import { assert, describe, it } from "vitest"
import { summarize } from "#bench/harness/Summary.ts"
import { table } from "#bench/harness/Report.ts"
import { loadSuite, suiteNames } from "#bench/harness/Suites.ts"
import { disagreements } from "#bench/harness/Summary.ts"
import { runTiny } from "./TinyRun.ts"

describe("every bench suite", () => {
  // Whole servers are started, one case after the other, on a machine that runs other tests too.
  const options = { timeout: 600_000 }
  it.each(suiteNames())(
    "%s still runs, at its tiny size, and its cases do the same work",
    options,
    async (name) => {
      const suite = await loadSuite(name)
      const stored = await runTiny(suite, { rounds: 1 })
      for (const { case: one, measured } of stored.ran) {
        assert.isAbove(measured.work, 0, one)
        assert.isAbove(measured.elapsedMillis, 0, one)
      }
      assert.strictEqual(stored.ran.length + stored.begun.unavailable.length, suite.cases.length)
      assert.strictEqual(summarize(stored).length, stored.ran.length)
      assert.deepStrictEqual(disagreements(stored), [])
      assert.include(table(stored), suite.about)
    }
  )

  it.each(suiteNames())("%s has cases that compare two trees", async (name) => {
    const { cases } = await loadSuite(name)
    assert.isNotEmpty(cases.filter(({ compared }) => compared === "always"))
    assert.isEmpty(cases.filter(({ baseline, compared }) => baseline === true && compared === "always"))
  })
})
