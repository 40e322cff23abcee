import { writeSync } from "node:fs"
import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import * as CallLog from "#src/llm/usage/CallLog.ts"
import { callRecord } from "./Calls.ts"

/** A process that ends calls, says which, and kills itself in the same turn. */
const [, , directory = ""] = process.argv

const program = Effect.gen(function* () {
  const consumers = Object.values(CallLog.callLogConsumers)
  const log = yield* DurableLog.open({ directory, consumers, writeThrough: true })
  const { append } = yield* CallLog.make(log, 100, () => undefined)
  for (let index = 0; index < 20; index++) {
    const call = callRecord()
    append(call)
    writeSync(1, `${call.id}\n`)
  }
  process.kill(process.pid, "SIGKILL")
})

await Effect.runPromise(Effect.scoped(program))
