import { writeSync } from "node:fs"
import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/**
 * A process to be killed: appends numbered records as fast as they are acknowledged, and writes the number of each
 * acknowledged one to its standard output before anything else happens.
 */
const [, , directory = "", firstNumber = "0"] = process.argv

const program = Effect.gen(function* () {
  const log = yield* DurableLog.open({ directory, consumers: ["sink"], segmentBytes: 200_000 })
  writeSync(1, "open\n")
  let number = Number(firstNumber)
  const appendNext = (): void => {
    const mine = number++
    const record = Buffer.from(`${mine}:`.padEnd(20 + (mine % 500), "x"))
    const refused = log.append(record, (error) => {
      if (error !== undefined) throw error
      writeSync(1, `${mine}\n`)
      appendNext()
    })
    if (typeof refused !== "number") throw refused
  }
  for (let i = 0; i < 16; i++) appendNext()
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
