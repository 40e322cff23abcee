import { assert, describe, it } from "vitest"
import { disagreements, summarize, table } from "#bench/harness/Report.ts"
import { runSuite } from "#bench/harness/Runner.ts"
import { latencyOf, type BenchSuite } from "#bench/harness/Suite.ts"
import { loadSuite, suiteNames } from "#bench/harness/Suites.ts"

describe("every bench suite", () => {
  // Whole servers are started, one case after the other, on a machine that tests beside.
  const options = { timeout: 240_000 }
  it.each(suiteNames())(
    "%s still runs, at its tiny size, and its cases do the same work",
    options,
    async (name) => {
      const suiteRun = await runSuite(await loadSuite(name), { quick: true, freshProcesses: false })
      for (const { case: one, run } of suiteRun.runs) {
        assert.isAbove(run.work, 0, one)
        assert.isAbove(run.elapsedMillis, 0, one)
      }
      assert.strictEqual(suiteRun.runs.length + suiteRun.unavailable.length, suiteRun.suite.cases.length)
      assert.deepStrictEqual(disagreements(suiteRun), [])
      assert.include(table(suiteRun), suiteRun.suite.about)
    }
  )
})

describe("the harness", () => {
  const order: Array<string> = []
  const one = (name: string, elapsedMillis: (round: number) => number, result = "same") => ({
    name,
    run: async ({ round }: { readonly round: number }) => {
      order.push(name)
      return { work: 1000, elapsedMillis: elapsedMillis(round), cpuMillis: 2 * elapsedMillis(round), result }
    }
  })
  const suite: BenchSuite = {
    name: "made-up",
    about: "nothing",
    unit: "things",
    rounds: 3,
    cases: [
      { ...one("raw", () => 1000), baseline: true },
      one("ours", (round) => [4000, 2000, 500][round] ?? 0),
      { ...one("peer", () => 1), unavailable: () => "it is not installed" }
    ]
  }

  it("interleaves rounds, every other one backwards, and compares medians with the baseline", async () => {
    order.length = 0
    const suiteRun = await runSuite(suite, { quick: false, freshProcesses: false })
    assert.deepStrictEqual(order, ["raw", "ours", "ours", "raw", "raw", "ours"])
    const [raw, ours] = summarize(suiteRun)
    assert.deepInclude(raw, { perSecond: 1000, throughputRatio: undefined })
    assert.deepInclude(ours, { perSecond: 500, throughputRatio: 0.5, cpuRatio: 2, cpuMicrosPerUnit: 4000 })
    assert.deepInclude(ours, { slowestPerSecond: 250, fastestPerSecond: 2000 })
    assert.include(table(suiteRun), "peer: not run: it is not installed")
  })

  it("says when cases that are compared did not do the same work", async () => {
    const cases = [one("a", () => 1), one("b", () => 1, "other")]
    const suiteRun = await runSuite({ ...suite, cases }, { quick: true, freshProcesses: false })
    assert.deepStrictEqual(disagreements(suiteRun), ["made-up : results differ: same, other"])
  })

  it("sets a suite's stage up once, gives it to every case, and leaves it after the last, or a failure", async () => {
    const happened: Array<string> = []
    const staged = (fails: boolean): BenchSuite => ({
      ...suite,
      stage: async ({ sizes }) => {
        happened.push(`set up with ${sizes.events} events`)
        return { given: { port: 1 }, leave: async () => void happened.push("left") }
      },
      cases: ["a", "b"].map((name) => ({
        name,
        run: async ({ given }) => {
          happened.push(`${name} ${JSON.stringify(given)}`)
          if (fails) throw new Error("it fails")
          return { work: 1, elapsedMillis: 1 }
        }
      }))
    })
    const options = { quick: true, freshProcesses: false, sizes: { events: 5 } }
    await runSuite(staged(false), options)
    assert.deepStrictEqual(happened, ["set up with 5 events", 'a {"port":1}', 'b {"port":1}', "left"])
    happened.length = 0
    await runSuite(staged(true), options).then(
      () => assert.fail("it is expected to fail"),
      (error: Error) => assert.strictEqual(error.message, "it fails")
    )
    assert.deepStrictEqual(happened, ["set up with 5 events", 'a {"port":1}', "left"])
  })

  it("gives the percentiles of latencies", () => {
    const latencies = Float64Array.from({ length: 100 }, (_, index) => 100 - index)
    assert.deepStrictEqual(latencyOf(latencies), { p50Millis: 51, p99Millis: 100, maxMillis: 100 })
  })
})
