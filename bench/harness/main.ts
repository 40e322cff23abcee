import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { machine } from "./Machine.ts"
import { disagreements, save, table } from "./Report.ts"
import { runSuite } from "./Runner.ts"
import { loadSuite, suiteNames } from "./Suites.ts"

/**
 * `npm run bench -- <suite>… [--quick] [--rounds N] [--only part-of-a-name]`; without a suite, all of them.
 * For suites with a stage: `[--data DIR] [--events N] [--days N]`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean" },
    rounds: { type: "string" },
    only: { type: "string" },
    data: { type: "string" },
    events: { type: "string" },
    days: { type: "string" }
  }
})

const facts = machine()
console.log(`${facts.cpu}, ${facts.cores} cores, ${facts.system}, Node ${facts.node}, commit ${facts.commit}`)

for (const name of positionals.length > 0 ? positionals : suiteNames()) {
  const suiteRun = await runSuite(await loadSuite(name), {
    quick: values.quick ?? false,
    freshProcesses: true,
    sizes: {
      ...(values.data === undefined ? {} : { data: resolve(values.data) }),
      ...(values.events === undefined ? {} : { events: Number(values.events) }),
      ...(values.days === undefined ? {} : { days: Number(values.days) })
    },
    ...(values.rounds === undefined ? {} : { rounds: Number(values.rounds) }),
    ...(values.only === undefined ? {} : { only: values.only }),
    onRun: (one, round, run) =>
      console.log(`  round ${round + 1}  ${one}: ${Math.round((run.work / run.elapsedMillis) * 1000)}/s`)
  })
  console.log(`\n${table(suiteRun)}\n${save(suiteRun, facts, new Date().toISOString())}\n`)
  if (disagreements(suiteRun).length > 0) process.exitCode = 1
}
