import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { readArguments } from "#bench/harness/Arguments.ts"
import { storedRuns } from "#bench/harness/Store.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { root } from "#test/harness/ServerProcess.ts"

let directory = ""
let results = ""

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "signalbox-bench-test-"))
  results = join(directory, "results")
})

afterEach(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  readonly code: Promise<number | null>
}

const bench = (...args: ReadonlyArray<string>): Started => {
  const child = spawn(process.execPath, ["bench/harness/main.ts", ...args, "--results", results], {
    cwd: root,
    env: { ...process.env, TMPDIR: directory },
    // A process group of its own, which can be interrupted as a terminal does it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
  return { child, output: () => output, code: once(child, "close").then(([code]) => code as number | null) }
}

/** Processes that were started with the test's directory as TMPDIR, or work in it as the embedded Postgres does. */
const running = (): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        (readFileSync(`/proc/${pid}/environ`, "latin1").includes(`TMPDIR=${directory}`) ||
          readlinkSync(`/proc/${pid}/cwd`).startsWith(directory))
      )
    } catch {
      // Ended, or another user's.
      return false
    }
  })

const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, "latin1")

/** A server and its warm-up take a minute and more on a machine that has other work. */
const untilMillis = 240_000

const until = async (what: string, holds: () => boolean): Promise<void> => {
  const deadline = Date.now() + untilMillis
  while (!holds()) {
    if (Date.now() > deadline) assert.fail(`not within ${untilMillis} ms: ${what}`)
    await pause(50)
  }
}

const pressInterrupt = ({ pid = 0 }: ChildProcess): boolean => process.kill(-pid, "SIGINT")

/** BENCH_KILLS sets how many runs are ended at random instants, BENCH_SEED repeats them. */
const kills = Number(process.env["BENCH_KILLS"] ?? 4)
const seed = Number(process.env["BENCH_SEED"] ?? Date.now() % 1_000_000)

const measured = (): number => storedRuns(results)[0]?.ran.length ?? 0

const slow = { timeout: 600_000 }

describe("the command line of the bench", () => {
  it("reads suites with their cases, sizes and windows, and names what it does not understand", () => {
    const command = readArguments([
      "llm",
      "ours",
      "*idle*",
      "http",
      "--quick",
      "--seconds",
      "2.5",
      "--rounds",
      "3"
    ])
    assert.strictEqual(command.do, "run")
    if (command.do !== "run") return
    assert.deepStrictEqual(command.asked.suites, [
      { name: "llm", patterns: ["ours", "*idle*"] },
      { name: "http", patterns: [] }
    ])
    assert.deepInclude(command.asked, { size: "quick", windowMillis: 2_500, rounds: 3, against: undefined })
    assert.throws(
      () => readArguments(["nothing"]),
      'there is no suite "nothing"; there are: actors, files, http'
    )
    assert.throws(() => readArguments(["http", "--rounds", "1.5"]), "--rounds: expected a whole number")
    assert.throws(() => readArguments(["http", "--seconds", "no"]), "--seconds: expected a number above 0")
    assert.throws(() => readArguments(["compare", "a"]), "compare: name two runs")
    assert.strictEqual(readArguments([]).do, "usage")
  })

  it(
    "stores each measurement as it ends; an interrupt prints the table of them and leaves nothing behind",
    slow,
    async () => {
      const { child, code, output } = bench(
        "http",
        "GET raw Node",
        "--quick",
        "--rounds",
        "500",
        "--seconds",
        "0.2"
      )
      await until("two measurements", () => measured() >= 2)
      assert.isNotEmpty(running())
      child.kill("SIGINT")
      assert.strictEqual(await code, 130, output())
      assert.include(output(), "This run ended early: interrupted.")
      assert.match(output(), /GET: GET raw Node +[\d,]+/)
      assert.match(output(), /round 2 of 500 .* left: /)
      assert.isEmpty(running())
      assert.deepStrictEqual(readdirSync(directory), ["results"])
    }
  )

  it(
    `keeps what was measured and leaves nothing behind, whenever it is ended (${kills} times)`,
    {
      timeout: 300_000 + kills * 60_000
    },
    async () => {
      const random = seededRandom(seed)
      const asked = ["ingest", "durable", "--quick", "--rounds", "500", "--seconds", "0.2"]
      for (let kill = 0; kill < kills; kill++) {
        const isComparison = random() < 0.5
        const { child, code, output } = bench(...asked, ...(isComparison ? ["--against", "HEAD"] : []))
        const isKilled = random() < 0.5
        await pause(30_000 * random() ** 2)
        const before = measured()
        const at = `BENCH_SEED=${seed}, kill ${kill}, ${isKilled ? "SIGKILL" : "SIGINT"}\n`
        if (isKilled) child.kill("SIGKILL")
        else pressInterrupt(child)
        const ended = await code
        // An interrupt that comes before the first line of the bench has run finds nothing to end.
        if (isKilled || output() === "") assert.oneOf(ended, [null, 130], at)
        else assert.strictEqual(ended, 130, at + output())
        await until(`${at}everything has ended`, () => running().length === 0)
        await until(`${at}the run's directory is removed`, () =>
          readdirSync(directory).every((name) => name === "results")
        )
        assert.isAtLeast(measured(), before, at)
        const [stored] = storedRuns(results)
        if (!isKilled && stored !== undefined) {
          assert.strictEqual(stored.ended?.early, "interrupted", at)
          assert.include(output(), "This run ended early: interrupted.", at)
        }
        assert.notMatch(output(), /^ +at /m, `${at}a stack trace`)
        rmSync(results, { recursive: true, force: true })
      }
    }
  )

  it("leaves nothing behind where it is killed as soon as its directory is there", slow, async () => {
    const entries = (): ReadonlyArray<string> => readdirSync(directory).filter((name) => name !== "results")
    for (let kill = 0; kill < 3; kill++) {
      const { child, code, output } = bench("http", "GET raw Node", "--quick")
      const deadline = Date.now() + untilMillis
      // Without a pause: the instant after would be too late.
      while (entries().length === 0) assert.isBelow(Date.now(), deadline, output())
      child.kill("SIGKILL")
      await code
      await until("the run's directory is removed", () => entries().length === 0)
    }
  })

  it("ends at once when it is interrupted a second time", slow, async () => {
    const { child, output } = bench("ingest", "durable", "--quick", "--seconds", "60")
    // Not its "close": the reaper has its stderr.
    const exit = once(child, "exit")
    await until("a server", () => running().length > 3)
    // It cannot be left in an orderly way, nor reaped.
    const [reaper] = running().filter((pid) => commandOf(pid).includes("Reaper.ts"))
    process.kill(Number(reaper), "SIGSTOP")
    pressInterrupt(child)
    await until("the table", () => output().includes("This run ended early: interrupted."))
    await pause(600)
    assert.isNull(child.exitCode)
    pressInterrupt(child)
    assert.deepStrictEqual(await exit, [130, null], output())
    process.kill(Number(reaper), "SIGCONT")
    await until("everything has ended", () => running().length === 0)
  })

  it("loses no finished measurement to kill -9 and leaves no process behind", slow, async () => {
    const { child, code } = bench("ingest", "durable", "--quick", "--rounds", "500", "--seconds", "0.2")
    await until("a measurement", () => measured() >= 1)
    const before = measured()
    child.kill("SIGKILL")
    await code
    await until("everything has ended", () => running().length === 0)
    // The machine itself stopped in the middle of a line.
    const [file = ""] = readdirSync(results)
    appendFileSync(join(results, file), '{"kind":"ran","case":"dur')
    assert.isAtLeast(measured(), before)
    const show = bench("show", "ingest")
    assert.strictEqual(await show.code, 0, show.output())
    assert.include(show.output(), "This run ended early: it was killed, or still runs.")
    assert.match(show.output(), /accept: durable +[\d,]+/)
    const list = bench("list")
    assert.strictEqual(await list.code, 0, list.output())
    assert.include(list.output(), "killed or running")
    await until("the run's directory is removed", () => readdirSync(directory).length === 1)
  })

  it(
    "compares a commit and a directory with the working tree, and two stored runs with each other",
    slow,
    async () => {
      const against = async (other: string): Promise<string> => {
        const { code, output } = bench(
          "http",
          "GET raw Node",
          "--quick",
          "--rounds",
          "2",
          "--seconds",
          "0.2",
          "--against",
          other
        )
        assert.strictEqual(await code, 0, output())
        return output()
      }
      assert.match(await against("HEAD"), /GET raw Node .*(within|outside) the noise/)
      assert.include(await against(root), `against ${root} (`)
      const [first, second] = storedRuns(results).map(({ begun }) => begun.run)
      const compare = bench("compare", first ?? "", second ?? "")
      assert.strictEqual(await compare.code, 0, compare.output())
      assert.include(compare.output(), `${second} over ${first}`)
      const unknown = bench("http", "GET raw Node", "--quick", "--against", "no-such-commit")
      assert.strictEqual(await unknown.code, 1)
      assert.include(unknown.output(), "no-such-commit")
    }
  )

  it("writes CPU profiles and prints their heaviest functions", slow, async () => {
    const { code, output } = bench("http", "GET raw Node", "--quick", "--rounds", "1", "--profile")
    assert.strictEqual(await code, 0, output())
    assert.match(output(), /GET-raw-Node\.cpuprofile\n( +\d+\.\d %  .+\n){20}/)
  })
})
