import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/** A process that appends records with write-through and kills itself in the same turn, before anything is acknowledged. */
const [, , directory = "", count = "1"] = process.argv

const program = Effect.gen(function* () {
  const log = yield* DurableLog.open({ directory, consumers: ["sink"], writeThrough: true })
  const first = log.nextOffset()
  for (let index = 0; index < Number(count); index++) {
    const refused = log.append(Buffer.from(`record ${first + index}`), () => process.exit(1))
    if (typeof refused !== "number") throw refused
  }
  process.kill(process.pid, "SIGKILL")
})

await Effect.runPromise(Effect.scoped(program))
