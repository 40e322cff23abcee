import { assert, describe, it } from "vitest"
import { Interrupted } from "#bench/harness/Interrupt.ts"
import { comparison, listing, table } from "#bench/harness/Report.ts"
import { type BenchSuite, latencyOf } from "#bench/harness/Suite.ts"
import { differencesOf, disagreements, summarize, usesOf } from "#bench/harness/Summary.ts"
import { runTiny } from "./TinyRun.ts"

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
    { ...one("ours", (round) => [4000, 2000, 500][round] ?? 0), compared: "always" },
    { ...one("peer", () => 1), unavailable: () => "it is not installed" }
  ]
}

/** Rejects with the error that it is expected to reject with. */
const failure = async (work: Promise<unknown>): Promise<Error> => {
  try {
    await work
  } catch (error) {
    if (error instanceof Error) return error
  }
  return assert.fail("a failure is expected")
}

describe("a run", () => {
  it("interleaves rounds, every other one backwards, and compares medians with the baseline", async () => {
    order.length = 0
    const stored = await runTiny(suite, { rounds: 3 })
    assert.deepStrictEqual(order, ["raw", "ours", "ours", "raw", "raw", "ours"])
    const [raw, ours] = summarize(stored)
    assert.deepInclude(raw, { perSecond: 1000, throughputRatio: undefined })
    assert.deepInclude(ours, { perSecond: 500, throughputRatio: 0.5, cpuRatio: 2, cpuMicrosPerUnit: 4000 })
    assert.deepInclude(ours, { slowestPerSecond: 250, fastestPerSecond: 2000 })
    assert.include(table(stored), "peer: not run: it is not installed")
  })

  it("takes cases by a part of the name or a pattern, and names those that there are", async () => {
    const chosen = async (...patterns: ReadonlyArray<string>) =>
      (await runTiny(suite, { rounds: 1, patterns })).begun.cases.map(({ name }) => name)
    assert.deepStrictEqual(await chosen("OUR"), ["ours"])
    assert.deepStrictEqual(await chosen("r*w", "ours"), ["raw", "ours"])
    assert.deepStrictEqual(await chosen("r"), ["raw", "ours"])
    const longer = { ...suite, cases: [...suite.cases, one("ours, later", () => 1)] }
    const begun = (await runTiny(longer, { rounds: 1, patterns: ["ours"] })).begun
    assert.deepStrictEqual(
      begun.cases.map(({ name }) => name),
      ["ours"]
    )
    const { message } = await failure(runTiny(suite, { rounds: 1, patterns: ["none"] }))
    assert.include(message, "made-up has no case like none; it has:\n  raw\n  ours\n  peer")
  })

  it("says when cases that are compared did not do the same work", async () => {
    const cases = [one("a", () => 1), one("b", () => 1, "other")]
    const stored = await runTiny({ ...suite, cases }, { rounds: 1 })
    assert.deepStrictEqual(disagreements(stored), ["made-up : results differ: same, other"])
  })

  it("sets a suite's stage up once, gives it to every case, and leaves it after the last, or a failure", async () => {
    const happened: Array<string> = []
    const staged = (fails: boolean): BenchSuite => ({
      ...suite,
      stage: async ({ cases, settings }) => {
        happened.push(`set up with ${settings.events} events for ${cases.join(", ")}`)
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
    const options = { rounds: 1, settings: { events: 5 } }
    await runTiny(staged(false), options)
    const setUp = "set up with 5 events for a, b"
    assert.deepStrictEqual(happened, [setUp, 'a {"port":1}', 'b {"port":1}', "left"])
    happened.length = 0
    assert.strictEqual((await failure(runTiny(staged(true), options))).message, "it fails")
    assert.deepStrictEqual(happened, [setUp, 'a {"port":1}', "left"])
  })

  it("leaves the side that was opened where the other one cannot be", async () => {
    const happened: Array<string> = []
    let opened = 0
    const broken: BenchSuite = {
      ...suite,
      stage: async () => {
        if (opened++ === 1) throw new Error("it does not open")
        happened.push("opened")
        return { given: undefined, leave: async () => void happened.push("left") }
      }
    }
    const { message } = await failure(runTiny(broken, { rounds: 1, sides: 2, patterns: ["ours"] }))
    assert.strictEqual(message, "it does not open")
    assert.deepStrictEqual(happened, ["opened", "left"])
  })

  it("ends at once when it is interrupted, with everything measured until then", async () => {
    const interrupt = new AbortController()
    const never: BenchSuite = {
      ...suite,
      cases: [one("quick", () => 1), { name: "endless", run: () => new Promise(() => undefined) }]
    }
    const measured: Array<string> = []
    const run = runTiny(never, {
      rounds: 2,
      signal: interrupt.signal,
      onRan: (ran) => {
        measured.push(ran.case)
        setImmediate(() => interrupt.abort())
      }
    })
    assert.instanceOf(await failure(run), Interrupted)
    assert.deepStrictEqual(measured, ["quick"])
  })
})

describe("two trees", () => {
  const sides: Array<string> = []
  /** each side's stage is opened anew, and so gets numbers in turn */
  let opened = 0
  const compared = (ratio: number): BenchSuite => ({
    ...suite,
    stage: async () => {
      const side = opened++ % 2
      return { given: side, leave: async () => undefined }
    },
    cases: ["fast", "slow"].map((name) => ({
      name,
      compared: "always",
      run: async ({ given, round }) => {
        sides.push(`${round} ${name} ${String(given)}`)
        const slower = name === "slow" && given === 0 ? ratio : 1
        return { work: 1000, elapsedMillis: 1000, cpuMillis: 100 * slower * (1 + round / 100) }
      }
    }))
  })

  it("take turns in being first, each round with stages of its own", async () => {
    sides.length = 0
    opened = 0
    await runTiny(compared(1), { rounds: 2, sides: 2 })
    assert.strictEqual(opened, 4)
    assert.deepStrictEqual(sides, [
      "0 fast 0",
      "0 fast 1",
      "0 slow 0",
      "0 slow 1",
      "1 slow 1",
      "1 slow 0",
      "1 fast 1",
      "1 fast 0"
    ])
  })

  it("differ where a case does in every round, and only there", async () => {
    const stored = await runTiny(compared(1.08), { rounds: 4, sides: 2 })
    const [fast, slow] = differencesOf(stored)
    assert.isFalse(fast?.cpuDiffers)
    assert.isTrue(slow?.cpuDiffers)
    assert.approximately(slow?.cpu?.ratio ?? 0, 1.08, 1e-9)
    assert.isFalse(slow?.throughputDiffers)
    assert.match(table(stored), /slow .* CPU \+8\.0 %: outside the noise/)
    assert.match(table(stored), /fast .* within the noise/)
  })

  it("are compared part by part where a case has them, without the outermost on each side", async () => {
    // The machine is up to twice as slow for a while, and a collection falls into two parts of one side.
    const parts = (side: number, ratio: number) =>
      Array.from({ length: 12 }, (_, place) => ({
        work: 100,
        elapsedMillis: 10,
        cpuMillis: 10 * (1 + place / 12) * ratio * (place % 6 === 2 + side ? 5 : 1)
      }))
    const inParts = (ratio: number): BenchSuite => {
      let stages = 0
      return {
        ...suite,
        stage: async () => ({ given: stages++ % 2, leave: async () => undefined }),
        cases: [
          {
            name: "collected",
            compared: "always",
            run: async ({ given }) => ({
              work: 1_200,
              elapsedMillis: 120,
              cpuMillis: 99,
              parts: parts(Number(given), given === 0 ? ratio : 1)
            })
          }
        ]
      }
    }
    const differenceOf = async (ratio: number) =>
      differencesOf(await runTiny(inParts(ratio), { rounds: 4, sides: 2 }))[0]
    const same = await differenceOf(1)
    assert.approximately(same?.cpu?.ratio ?? 0, 1, 1e-9)
    assert.isFalse(same?.cpuDiffers)
    const slower = await differenceOf(1.08)
    assert.approximately(slower?.cpu?.ratio ?? 0, 1.08, 1e-9)
    assert.isTrue(slower?.cpuDiffers)
  })

  it("are compared only by cases that measure the project's own code", async () => {
    const stored = await runTiny(suite, { rounds: 1, sides: 2 })
    assert.deepStrictEqual(
      stored.begun.cases.map(({ name }) => name),
      ["ours"]
    )
    assert.include(table(stored), "too few rounds to tell")
  })
})

describe("a table", () => {
  it("shows what the process under test used, by unit of work", async () => {
    const use = {
      cpuMillis: 30,
      threads: { main: 20, V8: 10 },
      rssMiB: 100,
      heap: { collections: 2, gcMillis: 4, allocatedBytes: 2_048_000 }
    }
    const measured: BenchSuite = {
      ...suite,
      cases: [{ name: "a", run: async () => ({ work: 1000, elapsedMillis: 1000, use }) }]
    }
    const stored = await runTiny(measured, { rounds: 1 })
    assert.deepStrictEqual(usesOf(stored), [
      { case: "a", threads: { main: 20, V8: 10 }, gcShare: 0.2, allocatedBytesPerUnit: 2048, rssMiB: 100 }
    ])
    assert.strictEqual(summarize(stored)[0]?.cpuMicrosPerUnit, 30)
    assert.match(table(stored), /a +20\.0 +10\.0 +20\.0 +2\.00 +100/)
  })

  it("names the measurement from which the machine's host took the most", async () => {
    const whole = await runTiny(suite, { rounds: 2 })
    const robbed = (...shares: ReadonlyArray<number>) =>
      table({ ...whole, ran: whole.ran.map((one, at) => ({ ...one, stolen: shares[at] ?? 0 })) })
    assert.include(
      robbed(0, 0.06, 0.25),
      "Warning: the machine's host took 25 % of all cores while ours was measured in round 2, and over 5 % in 2 of 4 measurements"
    )
    assert.notInclude(robbed(0, 0.05), "the machine's host")
  })

  it("of a run that was killed names the cases that are missing", async () => {
    const whole = await runTiny(suite, { rounds: 2 })
    const cut = { ...whole, ran: whole.ran.slice(0, 3), ended: undefined }
    assert.include(table(cut), "This run ended early: it was killed, or still runs.")
    assert.include(table(cut), "Not measured in round 2: raw")
    assert.include(table({ ...cut, ran: whole.ran.slice(0, 1) }), "Not measured: ours")
    assert.include(table({ ...cut, ran: [] }), "Nothing was measured.")
  })

  it("of two stored runs compares them, and doubts what does not compare", async () => {
    const first = await runTiny(suite, { rounds: 3 })
    const { begun } = first
    const versions = { ...begun.machine.versions, undici: "0.0.1" }
    const changes = { windowMillis: 5, settings: { events: 7 }, machine: { ...begun.machine, versions } }
    const early = `the server did not start:\n${"a line of its log\n".repeat(50)}`
    const other = {
      ...first,
      begun: { ...begun, ...changes, size: "full" as const, warnings: ["it was busy"] },
      ended: { kind: "ended" as const, at: begun.at, warnings: [], early }
    }
    const text = comparison(first, other)
    assert.match(text, /ours .* within the noise/)
    assert.include(text, "Welch's t-test")
    const warnings = text.split("\n").filter((line) => line.startsWith("Warning: "))
    assert.deepStrictEqual(warnings, [
      "Warning: one is a tiny run, the other a full run",
      "Warning: their windows are not as long as each other",
      "Warning: their settings differ",
      "Warning: they ran with other versions of undici",
      "Warning: a-run ended early",
      "Warning: a-run: it was busy"
    ])
    assert.include(table(other), "window 0.005 s; events 7; load before it 0.00")
    assert.include(table(other), "This run ended early: the server did not start:. The table")
    assert.lengthOf(listing([first, other]).split("\n"), 3)
  })
})

describe("latencies", () => {
  it("have percentiles", () => {
    const latencies = Float64Array.from({ length: 100 }, (_, index) => 100 - index)
    assert.deepStrictEqual(latencyOf(latencies), { p50Millis: 51, p99Millis: 100, maxMillis: 100 })
  })
})
