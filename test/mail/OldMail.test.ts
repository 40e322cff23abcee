import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { deleteOldMail } from "#src/mail/emails/OldMail.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { hurry } from "./RelayedServer.ts"
import { live, makeStage } from "./Stage.ts"

/** Makes a mail older, with its copies in the inbox. */
const age = Effect.fnUntraced(function* (id: string, days: number) {
  const sql = yield* SqlClient
  yield* sql`UPDATE mail_messages SET created_at = created_at - ${days} * interval '1 day',
    send_at = send_at - ${days} * interval '1 day' WHERE id = ${id}`
  yield* sql`UPDATE mail_inbox SET received_at = received_at - ${days} * interval '1 day' WHERE message_id = ${id}`
})

layer(TestServer.own({}), live)("old mail", (it) => {
  it.effect("loses its copies in the inbox after 7 days, its body after 30, and goes after 90", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { get, sent, tried } = yield* makeStage
      const ids: Array<string> = []
      for (const days of [0, 8, 31, 91]) {
        const id = yield* sent({
          attachments: [{ filename: "a.bin", content: Buffer.alloc(100_000).toString("base64") }]
        })
        ids.push(id)
        assert.strictEqual((yield* tried(id)).recipients[0]?.status, "sent")
        yield* age(id, days)
      }
      yield* deleteOldMail
      const statuses = (path: string) =>
        Effect.forEach(ids, (id) => Effect.map(get(`/${id}${path}`), ({ status }) => status))
      assert.deepStrictEqual(yield* statuses(""), [200, 200, 200, 404])
      assert.deepStrictEqual(yield* statuses("/raw"), [200, 200, 404, 404])
      const { emails } = (yield* get("/inbox")).json as {
        readonly emails: ReadonlyArray<{ email_id: string }>
      }
      assert.deepStrictEqual(
        emails.map(({ email_id }) => email_id),
        ids.slice(0, 1)
      )
      for (const table of [
        "mail_attempts a JOIN mail_deliveries d ON d.id = a.delivery_id",
        "mail_deliveries d"
      ]) {
        const [row] = yield* sql<{ count: number }>`SELECT count(*)::int AS count FROM ${sql.literal(table)}
          WHERE d.message_id = ${ids[3] ?? ""}`
        assert.strictEqual(row?.count, 0)
      }
    })
  )

  it.effect("keeps its body for 30 days from when it was to be sent, so that it can be", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { get, sent } = yield* makeStage
      const dayMillis = 24 * 3_600_000
      const ahead = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 29 * dayMillis)
      const content = Buffer.alloc(100_000).toString("base64")
      const large = { attachments: [{ filename: "a.bin", content }] }
      const ids = [
        yield* sent({ send_at: ahead.toISOString() }),
        yield* sent({ ...large, send_at: ahead.toISOString() })
      ]
      const raws = Effect.forEach(ids, (id) => get(`/${id}/raw`))
      for (const { bytes } of yield* raws)
        assert.include(
          Buffer.from(bytes).toString(),
          `\r\nDate: ${ahead.toUTCString().replace("GMT", "+0000")}\r\n`
        )
      const [kept] = yield* sql<{
        days: number
      }>`SELECT extract(epoch FROM expires_at - now())::float8 / 86400 AS days
        FROM blob_refs WHERE ref = ${`mail:${ids[1]}`}`
      assert.closeTo(kept?.days ?? 0, 60, 1)
      const statuses = Effect.map(raws, (answers) => answers.map(({ status }) => status))
      yield* Effect.forEach(ids, (id) => age(id, 31))
      yield* deleteOldMail
      assert.deepStrictEqual(yield* statuses, [200, 200])
      yield* Effect.forEach(ids, (id) => age(id, 30))
      yield* deleteOldMail
      assert.deepStrictEqual(yield* statuses, [404, 404])
    })
  )

  it.effect("whose body cannot be read waits without an attempt, says so, and expires", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { dataDir } = yield* TestStores
      const { read, sent } = yield* makeStage
      const content = Buffer.alloc(100_000, "lost").toString("base64")
      const ahead = new Date(Date.now() + 3_600_000).toISOString()
      const id = yield* sent({ attachments: [{ filename: "a.bin", content }], send_at: ahead })
      const [{ hash } = { hash: "" }] = yield* sql<{ hash: string }>`SELECT encode(sha256, 'hex') AS hash
        FROM mail_messages WHERE id = ${id}`
      rmSync(join(dataDir, "blobs", hash.slice(0, 2), hash.slice(2, 4), hash))
      yield* sql`UPDATE jobs SET not_before = NULL WHERE queue = 'mail'
        AND id IN (SELECT id FROM mail_deliveries WHERE message_id = ${id})`
      const stateOf = Effect.map(read(id), ({ recipients: [recipient] }) => [
        recipient?.status,
        recipient?.attempts,
        recipient?.last_reply
      ])
      const reply = "its body cannot be read now"
      yield* eventually(
        "it was tried",
        Effect.andThen(
          hurry,
          Effect.map(stateOf, ([, , last]) => last === reply)
        )
      )
      assert.deepStrictEqual(yield* stateOf, ["queued", 0, reply])
      yield* age(id, 3.1)
      yield* eventually(
        "it expires",
        Effect.andThen(
          hurry,
          Effect.map(stateOf, ([status]) => status === "expired")
        )
      )
      assert.deepStrictEqual(yield* stateOf, ["expired", 1, reply])
    })
  )
})
