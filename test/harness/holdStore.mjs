// A process that runs one embedded store and waits: `holdStore.mjs postgres|clickhouse <DATA_DIR>`. For tests that kill
// a server process. Prints "up", or the error that it cannot start with.
import { Effect } from "effect"
import { start as startClickHouse } from "../../src/infra/clickhouse/EmbeddedClickHouse.ts"
import { start as startPostgres } from "../../src/infra/postgres/EmbeddedPostgres.ts"
import { limits } from "../../src/Limits.ts"

const [store, dataDirectory = ""] = process.argv.slice(2)
const start = store === "postgres" ? startPostgres : startClickHouse

const hold = Effect.gen(function* () {
  yield* start(dataDirectory, limits)
  process.stdout.write("up\n")
  return yield* Effect.never
})

Effect.runPromise(Effect.scoped(hold)).catch((error) => process.stdout.write(`${error.message}\n`))
