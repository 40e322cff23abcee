import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { live } from "#test/notify/Stage.ts"

interface Turn {
  readonly wait: number | null
  readonly rest: number | null
  readonly is_chat: boolean
}

/** Turns that are taken however far off they are. */
const far = 3_600_000

let bots = 0

/** The turns of a bot of the test's own: what the function answers, and the instants that were taken. */
const makeBot = Effect.gen(function* () {
  const sql = yield* SqlClient
  const bot = 5_000 + ++bots
  const take = (chat: number, isGroup = false, wait = far, chatPace = 1_000) =>
    Effect.flatMap(
      sql<Turn>`SELECT * FROM telegram_turn(${bot}, ${chat}, ${isGroup}, ${wait}, 40, ${chatPace}, 18)`,
      ([turn]) => (turn === undefined ? Effect.die(new Error("no turn")) : Effect.succeed(turn))
    )
  const taken = Effect.map(
    sql<{ at: number }>`SELECT extract(epoch FROM s)::float8 * 1000 AS at
      FROM telegram_turns t, unnest(t.sent) s WHERE t.bot = ${bot} AND t.chat <> 0 ORDER BY s`,
    (rows) => rows.map(({ at }) => at)
  )
  return { bot, sql, take, taken }
})

const gaps = (instants: ReadonlyArray<number>) => instants.slice(1).map((at, n) => at - (instants[n] ?? 0))

layer(TestServer.shared, live)("turns at Telegram", (it) => {
  it.effect("are 25 a second over all chats, whoever takes them at once", () =>
    Effect.gen(function* () {
      const { take, taken } = yield* makeBot
      yield* Effect.forEach(
        Array.from({ length: 60 }, (_, n) => n + 1),
        (chat) => take(chat),
        {
          concurrency: 8
        }
      )
      const instants = yield* taken
      assert.lengthOf(instants, 60)
      for (const gap of gaps(instants)) assert.isAtLeast(gap, 39.9)
    })
  )

  it.effect("are one a second to a chat, and 18 in any minute to a group", () =>
    Effect.gen(function* () {
      const { take, taken } = yield* makeBot
      for (let n = 0; n < 18; n++) yield* take(7, true)
      const refused = yield* take(7, true, 30_000)
      assert.isTrue(refused.is_chat)
      assert.isNull(refused.wait)
      assert.isAbove(refused.rest ?? 0, 30_000)
      assert.isAtMost(refused.rest ?? 0, 60_000)
      yield* take(7, true)
      const instants = yield* taken
      for (const gap of gaps(instants)) assert.isAtLeast(gap, 999.9)
      assert.isAtLeast((instants[18] ?? 0) - (instants[0] ?? 0), 59_999.9)
    })
  )

  it.effect("that are too far off are not taken, and hold up no other", () =>
    Effect.gen(function* () {
      const { take, taken } = yield* makeBot
      yield* take(1)
      for (let n = 0; n < 20; n++) assert.isNull((yield* take(1, false, 0, 60_000)).wait)
      assert.lengthOf(yield* taken, 1)
      const other = yield* take(2, false, 300)
      assert.isNotNull(other.wait)
    })
  )

  it.effect("are there again after Postgres's clock was put back", () =>
    Effect.gen(function* () {
      const { bot, sql, take } = yield* makeBot
      yield* take(1, true)
      yield* sql`UPDATE telegram_turns SET at = at + interval '1 day', sent = ARRAY[now() + interval '1 day'] WHERE bot = ${bot}`
      const turn = yield* take(1, true, 300)
      assert.isNull(turn.rest)
      assert.strictEqual(turn.wait, 0)
    })
  )
})
