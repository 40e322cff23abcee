import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import type { DrainProcessOptions } from "./DrainProcess.ts"
import { flushed, notOnce, running, stage, temporaryDirectory, throughOutage } from "./DrainStage.ts"
import { drainTable } from "./DrainTable.ts"

/** Of each drain; `DRAIN_KILLS=50` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["DRAIN_KILLS"] ?? 4)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)

const program = join(import.meta.dirname, "DrainProcess.ts")

/** Starts a process with the drain, kills it some time after its first records, and answers those that it had in its log. */
const killed = async (options: DrainProcessOptions, random: SeededRandom): Promise<ReadonlyArray<string>> => {
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const marks: Array<string> = []
  const closed = once(child, "close")
  const first = 1 + random.below(200)
  const laterMillis = random.below(1_200)
  createInterface({ input: child.stdout }).on("line", (mark) => {
    // A line that was cut off is no mark.
    if (/-\d+\.$/.test(mark)) marks.push(mark.slice(0, -1))
    if (marks.length === first) setTimeout(() => child.kill("SIGKILL"), laterMillis)
  })
  const [, signal] = await closed
  assert.strictEqual(signal, "SIGKILL", "it ended by itself")
  return marks
}

layer(stage, { excludeTestServices: true })("a drain", (it) => {
  for (const one of drainTable.filter(({ isDurable }) => isDurable)) {
    for (const way of ["stall", "mute"] as const)
      it.effect(`${one.name}: has everything once after an outage (${way})`, () => throughOutage(one, way))

    it.effect(
      `${one.name}: loses and doubles nothing when its process is killed ${kills} times while it drains`,
      () =>
        Effect.gen(function* () {
          const { clickhouseUrl, databaseUrl } = yield* TestStores
          const dataDir = yield* temporaryDirectory
          const random = new SeededRandom(seed)
          const all = `killed-${one.name}-`
          const marks: Array<string> = []
          for (let kill = 0; kill < kills; kill++) {
            const options = { name: one.name, clickhouseUrl, databaseUrl, dataDir, prefix: `${all}${kill}-` }
            marks.push(...(yield* Effect.promise(() => killed(options, random))))
          }
          assert.isAbove(marks.length, kills)
          yield* running(one, dataDir, flushed)
          assert.deepStrictEqual(yield* notOnce(one, marks, all), [], `SIMULATION_SEED=${seed}`)
        }).pipe(Effect.scoped)
    )
  }
})
