import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs"
import { getPriority, tmpdir } from "node:os"
import { join } from "node:path"
import { AppConfig, type ConfigChanges } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import { keepingOldParts } from "#src/infra/clickhouse/Migrations.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { holdStore } from "#test/harness/StoreHolder.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-clickhouse-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const withClickHouse = <A, E>(
  dataDir: string,
  test: Effect.Effect<A, E, ClickHouse | ClickHouseEndpoint | Scope.Scope>,
  changes: ConfigChanges = {}
) =>
  Effect.scoped(test).pipe(
    Effect.provide(
      ClickHouse.layer.pipe(
        Layer.provideMerge(ClickHouseEndpoint.layer),
        Layer.provide(AppConfig.layerOf({ dataDir, ...changes }))
      )
    )
  )

const makeTable = Effect.flatMap(ClickHouse, (clickhouse) =>
  clickhouse.command(
    `CREATE TABLE IF NOT EXISTS t (n UInt64) ENGINE = MergeTree ORDER BY n
     SETTINGS non_replicated_deduplication_window = 100, fsync_after_insert = 1`
  )
)

const insert = (numbers: ReadonlyArray<number>, token: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.insert("t", ["n"], new Uint8Array(new BigUint64Array(numbers.map(BigInt)).buffer), {
      format: "RowBinary",
      token
    })
  )

const summary = Effect.flatMap(ClickHouse, (clickhouse) =>
  clickhouse.query<{ c: number; s: number }>("SELECT count() AS c, sum(n) AS s FROM t")
)

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The niceness of each thread of a process that merges. */
const mergePriorities = (pid: number): ReadonlyArray<number> => {
  const threads = `/proc/${pid}/task`
  return readdirSync(threads)
    .filter((thread) => readFileSync(`${threads}/${thread}/comm`, "utf8").startsWith("MergeMutate"))
    .map((thread) => getPriority(Number(thread)))
}

const request = (path: string, authorization?: string, body = "SELECT 1") =>
  Effect.gen(function* () {
    const { url } = (yield* ClickHouseEndpoint).current()
    return yield* Effect.promise(async () => {
      const headers = authorization === undefined ? {} : { authorization }
      const answer = await fetch(`${url}${path}`, { method: "POST", headers, body })
      return {
        status: answer.status,
        code: answer.headers.get("x-clickhouse-exception-code"),
        text: await answer.text()
      }
    })
  })

const credentials = Effect.map(ClickHouseEndpoint, (endpoint) => {
  const { password, username } = endpoint.current()
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
})

describe("the embedded ClickHouse", () => {
  it.live("is started again when its process is killed: data, tokens and the way to it stay", () =>
    Effect.gen(function* () {
      yield* withClickHouse(
        yield* temporary,
        Effect.gen(function* () {
          const endpoint = yield* ClickHouseEndpoint
          yield* makeTable
          yield* insert([1, 2, 3], "a")
          for (let round = 1; round <= 3; round++) {
            process.kill(endpoint.pid() ?? 0, "SIGKILL")
            yield* eventually(
              "counts again",
              Effect.map(summary, ([row]) => row?.c === 2 + round)
            )
            assert.strictEqual(endpoint.restarts(), round)
            // A repeated insert is known across the restart; a new one is taken.
            yield* insert([1, 2, 3], "a")
            yield* insert([10 * round], `b${round}`)
          }
          assert.deepStrictEqual(yield* summary, [{ c: 6, s: 66 }])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("takes the parts that were merged for a merged one whose files a full disk has cut", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      yield* withClickHouse(
        dataDir,
        Effect.gen(function* () {
          const { restarts } = yield* ClickHouseEndpoint
          const clickhouse = yield* ClickHouse
          yield* makeTable
          yield* clickhouse.command(keepingOldParts("t"))
          yield* insert([1, 2, 3], "a")
          yield* insert([4], "b")
          yield* clickhouse.command("OPTIMIZE TABLE t FINAL")
          const [merged] = yield* clickhouse.query<{ path: string }>(
            "SELECT path FROM system.parts WHERE table = 't' AND active"
          )
          const path = merged?.path ?? ""
          for (const file of readdirSync(path)) truncateSync(join(path, file))
          yield* clickhouse.command("SYSTEM DROP MARK CACHE")
          const met = yield* Effect.flip(summary)
          assert.include(met.message, "CORRUPTED_DATA")
          yield* eventually(
            "reads all rows",
            Effect.map(summary, ([row]) => row?.c === 4 && row.s === 10)
          )
          assert.strictEqual(restarts(), 1)
        }),
        { limits: { clickhouseMendMillis: 0 } }
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "holds an insert in flight when it is killed wholly or not at all, and a repetition makes it whole",
    () =>
      Effect.gen(function* () {
        yield* withClickHouse(
          yield* temporary,
          Effect.gen(function* () {
            const { pid } = yield* ClickHouseEndpoint
            yield* makeTable
            const numbers = Array.from({ length: 200_000 }, (_, n) => n)
            const inFlight = yield* Effect.forkChild(Effect.exit(insert(numbers, "big")), {
              startImmediately: true
            })
            yield* Effect.sleep(5)
            process.kill(pid() ?? 0, "SIGKILL")
            yield* Fiber.join(inFlight)
            yield* eventually("the insert is repeated", Effect.as(insert(numbers, "big"), true))
            assert.deepStrictEqual(yield* summary, [{ c: 200_000, s: 19_999_900_000 }])
          })
        )
      }).pipe(Effect.scoped)
  )

  it.live(
    "keeps data over a restart of the server, and tells other processes how to reach it, privately",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        yield* withClickHouse(dataDir, Effect.andThen(makeTable, insert([5], "x")))
        yield* withClickHouse(
          dataDir,
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* summary, [{ c: 1, s: 5 }])
            const file = join(dataDir, "clickhouse.json")
            assert.strictEqual(statSync(file).mode & 0o777, 0o600)
            const url = new URL(JSON.parse(readFileSync(file, "utf8")).url)
            const authorization = `Basic ${Buffer.from(`${url.username}:${url.password}`).toString("base64")}`
            assert.deepInclude(yield* request("/", authorization, "SELECT n FROM t"), {
              status: 200,
              text: "5\n"
            })
          })
        )
      }).pipe(Effect.scoped)
  )

  it.live("ends with a server process that is killed, and lets the next one have the data", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      const holder = yield* holdStore("clickhouse", dataDir)
      assert.strictEqual(holder.said, "up")
      const { pid } = JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8"))
      yield* holder.kill("SIGKILL")
      yield* withClickHouse(dataDir, summary.pipe(Effect.flip))
      yield* eventually(
        "the old process is gone",
        Effect.sync(() => !isAlive(pid))
      )
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(!existsSync("/proc/self/task"))(
    "merges and deletes behind the statements that callers wait for",
    () =>
      Effect.gen(function* () {
        yield* withClickHouse(
          yield* temporary,
          Effect.gen(function* () {
            const pid = (yield* ClickHouseEndpoint).pid() ?? 0
            yield* makeTable
            for (let n = 0; n < 3; n++) yield* insert([n], `part ${n}`)
            yield* Effect.flatMap(ClickHouse, (clickhouse) => clickhouse.command("OPTIMIZE TABLE t FINAL"))
            yield* eventually(
              "threads that merge are nicer than others",
              Effect.sync(
                () => mergePriorities(pid).length > 0 && mergePriorities(pid).every((nice) => nice > 0)
              )
            )
            assert.strictEqual(getPriority(pid), getPriority(process.pid))
          })
        )
      }).pipe(Effect.scoped)
  )

  it.live("refuses who does not know the password, and what it does not speak", () =>
    Effect.gen(function* () {
      yield* withClickHouse(
        yield* temporary,
        Effect.gen(function* () {
          const right = yield* credentials
          assert.deepInclude(yield* request("/"), { status: 403, code: "516" })
          assert.deepInclude(yield* request("/", "Basic eDp5"), { status: 403, code: "516" })
          assert.deepInclude(yield* request("/", right), { status: 200, text: "1\n" })
          assert.deepInclude(yield* request("/?session_id=a", right), { status: 501, code: "48" })
          assert.deepInclude(yield* request("/nowhere", right), { code: "36" })
          assert.deepInclude(yield* request("/?nonsense=1", right), { status: 404, code: "115" })
          assert.deepInclude(yield* request("/?max_threads%3D1%2Cx=1", right), { status: 404, code: "115" })
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "answers queries and takes inserts while slow queries run, and takes its turn when all readers are busy",
    () =>
      Effect.gen(function* () {
        yield* withClickHouse(
          yield* temporary,
          Effect.gen(function* () {
            const clickhouse = yield* ClickHouse
            yield* makeTable
            const order: Array<string> = []
            const slow = clickhouse
              .query("SELECT sleepEachRow(1) FROM numbers(3)", {}, { max_block_size: 1 })
              .pipe(Effect.andThen(Effect.sync(() => order.push("slow"))))
            const two = yield* Effect.forkChild(Effect.all([slow, slow], { concurrency: 2 }), {
              startImmediately: true
            })
            yield* Effect.sleep(50)
            yield* clickhouse.query("SELECT {x:UInt8}", { x: 1 })
            order.push("query")
            yield* insert([1], "beside")
            order.push("insert")
            yield* Fiber.join(two)
            assert.deepStrictEqual(order, ["query", "insert", "slow", "slow"])
          })
        )
      }).pipe(Effect.scoped)
  )

  it.live("bounds memory, answers, bodies and the queue", () =>
    Effect.gen(function* () {
      const limits = {
        clickhouseQueryBytes: 20_000_000,
        clickhouseResultBytes: 100_000,
        clickhouseBodyBytes: 1_000,
        clickhouseWaiting: 1
      }
      yield* withClickHouse(
        yield* temporary,
        Effect.gen(function* () {
          const clickhouse = yield* ClickHouse
          yield* makeTable
          const memory = yield* Effect.flip(
            clickhouse.query("SELECT uniqExact(number) FROM numbers(10000000)")
          )
          assert.include(memory.message, "MEMORY_LIMIT_EXCEEDED")
          yield* clickhouse.query("SELECT number FROM numbers(10000)")
          const answer = yield* Effect.flip(clickhouse.query("SELECT number FROM numbers(100000)"))
          assert.include(answer.message, "Limit for result exceeded")
          yield* insert(
            Array.from({ length: 125 }, (_, n) => n),
            "inside"
          )
          const body = yield* Effect.flip(
            insert(
              Array.from({ length: 126 }, (_, n) => n),
              "outside"
            )
          )
          assert.include(body.message, "QUERY_IS_TOO_LARGE")
          // Three read, one waits, the fifth is refused.
          const slow = Effect.exit(clickhouse.query("SELECT sleep(1)"))
          const results = yield* Effect.all([slow, slow, slow, slow, slow], { concurrency: "unbounded" })
          assert.strictEqual(results.filter((result) => result._tag === "Success").length, 4)
          assert.deepStrictEqual(yield* summary, [{ c: 125, s: 7_750 }])
        }),
        { limits }
      )
    }).pipe(Effect.scoped)
  )
})
