import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { leaveDead } from "./DeadJobs.ts"

const jobs = "/api/v1/admin/jobs"

interface Listed {
  readonly queues: ReadonlyArray<{ queue: string; waiting: number; dead: number; late_seconds: number }>
  readonly dead: ReadonlyArray<Readonly<Record<string, unknown>>>
}

const listed = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", jobs), ({ json }) => json as Listed)
)

layer(TestServer.shared, { excludeTestServices: true })("jobs, for administrators", (it) => {
  it.effect("are listed by queue, and the newest dead ones without their payloads", () =>
    Effect.gen(function* () {
      yield* leaveDead("test-listed", ["first", "second"])
      const { dead, queues } = yield* listed
      assert.deepInclude(queues, { queue: "test-listed", waiting: 0, dead: 2, late_seconds: 0 })
      assert.isAbove(queues.find(({ queue }) => queue === "sweep-jobs")?.waiting ?? 0, 0)
      const [second, first] = dead.filter(({ queue }) => queue === "test-listed")
      assert.strictEqual(first?.["id"], "first")
      assert.deepInclude(second, { lane: "lane", id: "second", attempts: 3, error: "refused: second" })
      assert.sameMembers(Object.keys(second ?? {}), [
        "queue",
        "lane",
        "id",
        "attempts",
        "error",
        "offered_at",
        "ended_at"
      ])
    })
  )

  it.effect("wait again: those of the ids, or all of a queue", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      yield* leaveDead("test-redriven", ["a", "b", "c"])
      const redrive = (json: object) => ask("POST", `${jobs}/test-redriven/redrive`, { json })
      assert.deepStrictEqual((yield* redrive({ ids: ["b", "unknown"] })).json, { redriven: 1 })
      assert.deepStrictEqual((yield* redrive({})).json, { redriven: 2 })
      assert.deepStrictEqual((yield* redrive({})).json, { redriven: 0 })
      const waiting = yield* sql`SELECT id, repeated FROM jobs WHERE queue = 'test-redriven' ORDER BY seq`
      assert.deepStrictEqual(
        waiting,
        ["b", "a", "c"].map((id) => ({ id, repeated: true }))
      )
      const { queues } = yield* listed
      assert.deepInclude(queues.find(({ queue }) => queue === "test-redriven") ?? {}, { waiting: 3, dead: 0 })
    })
  )

  it.effect("are refused by the name of the field, and a queue without jobs is not found", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const redrive = (queue: string, json: object) => ask("POST", `${jobs}/${queue}/redrive`, { json })
      for (const [answer, status, error] of [
        [yield* redrive("test-none", {}), 404, /^queue: no job of test-none/],
        [yield* redrive("No%20name", {}), 400, /^queue: expected the name of a queue/],
        [yield* redrive("test-none", { ids: [] }), 400, /^ids: expected 1 to 100 ids/],
        [
          yield* redrive("test-none", { ids: Array.from({ length: 101 }, String) }),
          400,
          /^ids: expected 1 to 100 ids/
        ],
        [yield* redrive("test-none", { ids: ["a", ""] }), 400, /^ids\[1\]: expected/],
        [yield* redrive("test-none", { ids: ["\u0000"] }), 400, /^ids\[0\]: expected/],
        [yield* redrive("test-none", { id: ["a"] }), 400, /^id\b/]
      ] as const) {
        assert.strictEqual(answer.status, status, JSON.stringify(answer.json))
        assert.match((answer.json as { error: string }).error, error)
      }
    })
  )
})
