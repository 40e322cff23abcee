import { writeSync } from "node:fs"
import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import * as CallLog from "#src/llm/usage/CallLog.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { callRecord } from "./Calls.ts"

/** A process that ends calls, each alone or all of a turn together, says which, and kills itself in the same turn. */
const [, , directory = "", way = "alone"] = process.argv

const program = Effect.gen(function* () {
  const consumers = Object.values(CallLog.callLogConsumers)
  const log = yield* DurableLog.open({ directory, consumers, writeThrough: true })
  const { append, appendThen } = yield* CallLog.make(log, 100, () => undefined)
  const calls = Array.from({ length: 20 }, () => callRecord())
  const tell = ({ id }: CallRecord) => writeSync(1, `${id}\n`)
  const die = () => process.kill(process.pid, "SIGKILL")
  if (way === "alone") {
    for (const call of calls) {
      append(call)
      tell(call)
    }
    die()
  }
  for (const [index, call] of calls.entries())
    appendThen(call, () => {
      tell(call)
      if (index === calls.length - 1) die()
    })
  yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
