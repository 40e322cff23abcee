import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { limits } from "#src/Limits.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { askBy, session, signIn, tokenOf } from "./SignedIn.ts"

const live = { excludeTestServices: true } as const
const hour = 3_600_000
const statusOf = (cookie: string) => Effect.map(askBy(cookie, "GET", session), ({ status }) => status)

/** The statuses of a request at some instants of the server. */
const atInstants = <E, R>(instants: ReadonlyArray<number>, status: Effect.Effect<number, E, R>) =>
  Effect.gen(function* () {
    const { stopClockAt } = yield* TestServer
    const statuses = yield* Effect.forEach(instants, (millis) =>
      Effect.suspend(() => {
        stopClockAt(millis)
        return status
      })
    )
    stopClockAt(undefined)
    return statuses
  })

/** The instant of the last use of the user's only session, as Postgres has it. */
const usedAt = (userId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [row] = yield* sql<{ used_at: Date }>`SELECT used_at FROM web_sessions WHERE user_id = ${userId}`
    return row?.used_at.getTime() ?? 0
  })

const untilUsedAt = (userId: string, millis: number) =>
  usedAt(userId).pipe(
    Effect.repeat({ until: (found) => found === millis, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("20 seconds")
  )

layer(TestServer.own({ limits: { sessionsPerUser: 3, sweepEveryMillis: 50 } }), live)("a session", (it) => {
  it.effect("ends after 12 hours without a use, to the millisecond", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const { key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const [one, other] = [yield* signIn(key), yield* signIn(key)]
      assert.deepStrictEqual(yield* atInstants([start + 12 * hour - 1], statusOf(one)), [200])
      assert.deepStrictEqual(yield* atInstants([start + 12 * hour], statusOf(other)), [401])
    })
  )

  it.effect("lasts 7 days where it is used, and its use is written every few minutes", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const { id, key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const cookie = yield* signIn(key)
      const uses = Array.from({ length: 15 }, (_, use) => start + (use + 1) * 11 * hour)
      for (const use of uses) {
        assert.deepStrictEqual(yield* atInstants([use], statusOf(cookie)), [200])
        yield* untilUsedAt(id, use)
        // Too soon to be written again.
        assert.deepStrictEqual(
          yield* atInstants([use + limits.sessionTouchMillis - 1], statusOf(cookie)),
          [200]
        )
        assert.strictEqual(yield* usedAt(id), use)
      }
      const end = start + 7 * 24 * hour
      assert.deepStrictEqual(yield* atInstants([end - 1, end], statusOf(cookie)), [200, 401])
    })
  )

  it.effect("counts the use of a token as its own, which ends after 15 minutes and with the session", () =>
    Effect.gen(function* () {
      const { ask, makeUser, stopClockAt } = yield* TestServer
      const { id, key } = yield* makeUser()
      // A token ends with a whole second.
      const start = Math.floor(Date.now() / 1000) * 1000
      stopClockAt(start)
      const cookie = yield* signIn(key)
      const token = yield* tokenOf(cookie)
      const health = (shown: string) =>
        Effect.map(ask("GET", "/api/v1/health", { key: shown }), ({ status }) => status)
      const used = start + limits.sessionTouchMillis
      assert.deepStrictEqual(yield* atInstants([used], health(token)), [200])
      yield* untilUsedAt(id, used)
      const over = start + limits.sessionTokenMillis
      assert.deepStrictEqual(yield* atInstants([over - 1, over], health(token)), [200, 401])
      yield* untilUsedAt(id, over - 1)
      const sql = yield* SqlClient
      yield* sql`UPDATE web_sessions SET used_at = ${new Date(start + 7 * 24 * hour)} WHERE user_id = ${id}`
      const end = start + 7 * 24 * hour
      stopClockAt(end - 5_000)
      const made = yield* askBy(cookie, "POST", `${session}/token`).pipe(
        Effect.repeat({ until: ({ status }) => status === 200, schedule: Schedule.spaced("20 millis") }),
        Effect.timeout("20 seconds")
      )
      const last = made.json as { readonly token: string; readonly expiresAt: string }
      assert.strictEqual(Date.parse(last.expiresAt), end)
      assert.deepStrictEqual(yield* atInstants([end - 1, end], health(last.token)), [200, 401])
    })
  )

  it.effect("ends with its key's expiry, and tells it", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const expiry = Date.now() + hour
      const { id, key } = yield* makeKey({ expires_at: new Date(expiry).toISOString() })
      const cookie = yield* signIn(key)
      const told = (yield* askBy(cookie, "GET", session)).json as { readonly expiresAt: string }
      assert.strictEqual(Date.parse(told.expiresAt), expiry)
      assert.deepStrictEqual(yield* atInstants([expiry - 1, expiry], statusOf(cookie)), [200, 401])
      yield* ask("PATCH", `/api/v1/keys/${id}`, { json: { expires_at: null } })
      assert.strictEqual(yield* statusOf(cookie), 200)
    })
  )

  it.effect("is one of so many of its user: another one ends the one whose last use is the oldest", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const { key } = yield* makeUser()
      const start = Date.now()
      const cookies: Array<string> = []
      for (const at of [0, 1, 2, 3, 4]) {
        stopClockAt(start + at * 1000)
        cookies.push(yield* signIn(key))
      }
      yield* Effect.all(cookies.map(statusOf)).pipe(
        Effect.repeat({
          until: (statuses) => statuses.join() === "401,401,200,200,200",
          schedule: Schedule.spaced("20 millis")
        }),
        Effect.timeout("20 seconds")
      )
      stopClockAt(undefined)
    })
  )

  it.effect("that is over is marked, and deleted a day later; a link that is over is deleted", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const [one, other] = [yield* makeUser(), yield* makeUser()]
      const cookie = yield* signIn(other.key)
      for (const { id, key } of [one, one, one, other]) {
        yield* signIn(key)
        yield* ask("POST", `/api/v1/admin/users/${id}/login-link`)
      }
      yield* sql`UPDATE web_sessions SET used_at = now() - interval '13 hours' WHERE user_id = ${one.id}`
      yield* sql`UPDATE login_links SET ends_at = now() WHERE user_id = ${one.id}`
      const left = sql<{ live: number; all: number; links: number }>`SELECT
        (SELECT count(*)::int FROM web_sessions WHERE user_id = u.id AND ended_at IS NULL) AS live,
        (SELECT count(*)::int FROM web_sessions WHERE user_id = u.id) AS all,
        (SELECT count(*)::int FROM login_links WHERE user_id = u.id) AS links
        FROM users u WHERE u.id IN (${one.id}, ${other.id}) ORDER BY u.id = ${other.id}`
      const becomes = (live: number, all: number, links: number) =>
        left.pipe(
          Effect.repeat({
            until: ([gone]) => gone?.live === live && gone.all === all && gone.links === links,
            schedule: Schedule.spaced("50 millis")
          }),
          Effect.timeout("30 seconds")
        )
      yield* becomes(0, 3, 0)
      yield* sql`UPDATE web_sessions SET ended_at = now() - interval '25 hours' WHERE user_id = ${one.id}`
      yield* becomes(0, 0, 0)
      assert.deepInclude((yield* left)[1], { live: 2, all: 2, links: 1 })
      assert.strictEqual(yield* statusOf(cookie), 200)
    })
  )
})
