import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { jobsOf } from "../RelayedServer.ts"
import { live, makeStage } from "../Stage.ts"

const makeRetrying = Effect.gen(function* () {
  const { ask } = yield* TestServer
  const stage = yield* makeStage
  const { get, key, read } = stage
  const statesOf = (id: string) =>
    Effect.map(read(id), ({ recipients }) =>
      recipients.map(({ address, attempts, status }) => [address, status, attempts])
    )
  return {
    ...stage,
    statesOf,
    ended: (id: string) =>
      eventually(
        "its jobs have ended",
        Effect.map(jobsOf(id), ({ left }) => left === 0)
      ),
    retry: (id: string, by = key) => ask("POST", `/api/v1/emails/${id}/retry`, { key: by }),
    suppress: (address: string, reason = "manual") =>
      ask("POST", "/api/v1/emails/suppressions", { key, json: { address, reason } }),
    unsuppress: Effect.fnUntraced(function* (address: string) {
      const found = (yield* get(`/suppressions?address=${address}`)).json as {
        readonly suppressions: ReadonlyArray<{ readonly id: string }>
      }
      for (const { id } of found.suppressions)
        yield* ask("DELETE", `/api/v1/emails/suppressions/${id}`, { key })
    })
  }
})

/** Recipients of an owner in a day. */
const mailPerDay = 20

layer(TestServer.own({ limits: { mailPerDay } }), live)("a retry", (it) => {
  it.effect("sends to failed recipients once more, and not to those who are suppressed", () =>
    Effect.gen(function* () {
      const { ended, retry, sent, statesOf, unsuppress } = yield* makeRetrying
      const id = yield* sent({ to: "bounce@example.org, ada@example.org" })
      yield* ended(id)
      // 5.1.1 suppresses the address.
      assert.deepStrictEqual((yield* retry(id)).json, { retried: [], suppressed: ["bounce@example.org"] })
      assert.deepStrictEqual(yield* statesOf(id), [
        ["bounce@example.org", "bounced", 1],
        ["ada@example.org", "sent", 1]
      ])
      yield* unsuppress("bounce@example.org")
      assert.deepStrictEqual((yield* retry(id)).json, { retried: ["bounce@example.org"], suppressed: [] })
      yield* eventually(
        "it bounced again",
        Effect.map(statesOf(id), ([one]) => one?.[1] === "bounced" && one[2] === 2)
      )
      assert.deepStrictEqual((yield* statesOf(id))[1], ["ada@example.org", "sent", 1])
    })
  )

  it.effect("sends at once where a report bounced a delivery that waited for its next attempt", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { retry, sent, statesOf } = yield* makeRetrying
      const id = yield* sent({ to: "defer@example.org" })
      yield* eventually(
        "it rests",
        Effect.map(
          sql`SELECT 1 FROM mail_deliveries d JOIN job_lanes l ON l.queue = 'mail' AND l.lane = d.id
            WHERE d.message_id = ${id} AND l.holder IS NULL AND l.due_at > now() + interval '30 seconds'`,
          (rows) => rows.length === 1
        )
      )
      yield* sql`UPDATE mail_deliveries SET status = 'bounced', next_attempt_at = NULL, ended_at = now()
        WHERE message_id = ${id}`
      assert.deepStrictEqual((yield* retry(id)).json, { retried: ["defer@example.org"], suppressed: [] })
      yield* eventually(
        "it was tried again",
        Effect.map(statesOf(id), ([one]) => one?.[1] === "deferred" && one[2] === 2)
      )
    })
  )

  it.effect("takes up what expired or is unknown, with 72 hours of its own, and no one else", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ended, get, retry, sent, statesOf } = yield* makeRetrying
      const id = yield* sent({ to: "late@example.org, ada@example.org, bob@example.org, eve@example.org" })
      yield* ended(id)
      yield* sql`UPDATE mail_messages SET created_at = now() - interval '80 hours' WHERE id = ${id}`
      const states = [
        ["late@example.org", "defer@example.org", "expired"],
        ["ada@example.org", "ada@example.org", "unknown"],
        ["bob@example.org", "bob@example.org", "canceled"],
        ["eve@example.org", "eve@example.org", "sent"]
      ]
      for (const [from = "", to = "", status = ""] of states)
        yield* sql`UPDATE mail_deliveries SET status = ${status}, address = ${to}, attempts = 0
          WHERE message_id = ${id} AND address = ${from}`
      yield* sql`DELETE FROM mail_attempts WHERE delivery_id IN (SELECT id FROM mail_deliveries WHERE message_id = ${id})`
      yield* sql`DELETE FROM mail_inbox WHERE message_id = ${id}`
      assert.deepStrictEqual((yield* retry(id)).json, {
        retried: ["defer@example.org", "ada@example.org"],
        suppressed: []
      })
      // Put off: it would have expired, if the time counted from the mail.
      yield* eventually(
        "both were tried",
        Effect.map(statesOf(id), (found) => found.slice(0, 2).every(([, , attempts]) => attempts === 1))
      )
      assert.deepStrictEqual(yield* statesOf(id), [
        ["defer@example.org", "deferred", 1],
        ["ada@example.org", "sent", 1],
        ["bob@example.org", "canceled", 0],
        ["eve@example.org", "sent", 0]
      ])
      const inbox = (yield* get("/inbox")).json as { readonly meta: { readonly total: number } }
      assert.strictEqual(inbox.meta.total, 1)
    })
  )

  it.effect("is 409 where none failed or the body is gone, 404 for others, and counts as sending", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ended, key, post, retry, sent, unsuppress } = yield* makeRetrying
      const fine = yield* sent()
      yield* ended(fine)
      const none = yield* retry(fine)
      assert.deepStrictEqual([none.status, textOf(none, "error")], [409, "No delivery of this mail failed"])
      const id = yield* sent({ to: "bounce@example.org" })
      yield* ended(id)
      yield* unsuppress("bounce@example.org")
      const { makeUser } = yield* TestServer
      assert.strictEqual((yield* retry(id, (yield* makeUser()).key)).status, 404)
      // Two went out.
      const to = Array.from({ length: mailPerDay - 2 }, (_, index) => `r${index}@example.org`).join(",")
      assert.strictEqual((yield* post({ to })).status, 200)
      assert.strictEqual((yield* retry(id, key)).status, 429)
      yield* sql`UPDATE mail_messages SET bytes = NULL WHERE id = ${id}`
      const gone = yield* retry(id)
      assert.deepStrictEqual(
        [gone.status, textOf(gone, "error")],
        [409, "The body of this mail is not kept any more"]
      )
    })
  )
})

layer(TestServer.shared, live)("a mail to suppressed addresses", (it) => {
  it.effect("is accepted, and they are suppressed at once, without a job", () =>
    Effect.gen(function* () {
      const { get, post, read, sent, suppress } = yield* makeRetrying
      yield* suppress("ada@example.org", "complaint")
      yield* suppress("*@example.net", "unsubscribe")
      const later = { send_at: new Date(Date.now() + 3_600_000).toISOString() }
      const id = yield* sent({ to: "Ada@example.org, bob@example.net, eve@example.com", ...later })
      const shown = ({ recipients }: Effect.Success<ReturnType<typeof read>>) =>
        recipients.map(({ last_reply, next_attempt_at, status }) => [
          status,
          last_reply,
          next_attempt_at === null
        ])
      assert.deepStrictEqual(shown(yield* read(id)), [
        ["suppressed", "complaint", true],
        ["queued", null, false],
        ["queued", null, false]
      ])
      assert.strictEqual((yield* jobsOf(id)).left, 2)
      const bulk = { headers: { "X-Campaign-ID": "news" } }
      const all = yield* post({ to: "ada@example.org, bob@example.net", ...bulk })
      assert.strictEqual(all.status, 200)
      const other = textOf(all, "message_id")
      assert.deepStrictEqual(shown(yield* read(other)), [
        ["suppressed", "complaint", true],
        ["suppressed", "unsubscribe", true]
      ])
      assert.strictEqual((yield* jobsOf(other)).left, 0)
      const found = (yield* get("?status=suppressed")).json as { readonly meta: { readonly total: number } }
      assert.strictEqual(found.meta.total, 2)
    })
  )
})

interface Stats {
  readonly recipients: number
  readonly opted_out: number
  readonly complaints: number
  readonly statuses: Readonly<Record<string, number>>
  readonly days: ReadonlyArray<{ readonly date: string; readonly statuses: Readonly<Record<string, number>> }>
}

layer(TestServer.shared, live)("the numbers of an owner's mail", (it) => {
  it.effect("are by status and day, since an instant, and of a campaign", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask } = yield* TestServer
      const { ended, get, key, sent, suppress } = yield* makeRetrying
      const other = yield* makeRetrying
      yield* suppress("eve@example.org")
      yield* other.ended(yield* other.sent())
      const one = yield* sent({ to: "ada@example.org, bounce@example.org, eve@example.org" })
      const two = yield* sent({ to: "ada@example.org", headers: { "X-Campaign-ID": "news" } })
      const old = yield* sent({ to: "ada@example.org" })
      for (const id of [one, two, old]) yield* ended(id)
      yield* sql`UPDATE mail_messages SET created_at = '2026-01-02T23:59:00Z' WHERE id = ${two}`
      yield* sql`UPDATE mail_messages SET created_at = '2026-01-01T00:00:00Z' WHERE id = ${old}`
      const json = { message_id: two, recipient: "ada@example.org", type: "complaint" }
      yield* ask("POST", "/api/v1/emails/bounces", { key, json })
      const statsOf = (query: string) => Effect.map(get(`/stats${query}`), ({ json: read }) => read as Stats)
      const some = (statuses: Stats["statuses"] = {}) =>
        Object.fromEntries(Object.entries(statuses).filter(([, count]) => count > 0))
      const recent = yield* statsOf("")
      assert.lengthOf(Object.keys(recent.statuses), 9)
      assert.deepStrictEqual(some(recent.statuses), { sent: 1, bounced: 1, suppressed: 1 })
      assert.lengthOf(recent.days, 1)
      const all = yield* statsOf("?since=2026-01-01T00:00:00Z")
      assert.deepStrictEqual([all.recipients, all.complaints, all.opted_out], [5, 1, 0])
      assert.deepStrictEqual(
        all.days.slice(0, 2).map(({ date, statuses }) => [date, some(statuses)]),
        [
          ["2026-01-01", { sent: 1 }],
          ["2026-01-02", { sent: 1 }]
        ]
      )
      const campaign = yield* statsOf("?since=2026-01-01T00:00:00Z&campaign=news")
      assert.deepStrictEqual([campaign.recipients, campaign.complaints], [1, 1])
      assert.strictEqual((yield* statsOf("?campaign=none")).recipients, 0)
      assert.strictEqual((yield* get("/stats?since=yesterday")).status, 400)
    })
  )
})
