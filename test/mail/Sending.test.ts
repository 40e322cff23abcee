import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import PostalMime from "postal-mime"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { jobsOf } from "./RelayedServer.ts"
import { live, makeStage, metric, type ReadEmail } from "./Stage.ts"

interface Listed {
  readonly emails: ReadonlyArray<{ readonly id: string; readonly address: string }>
  readonly meta: { readonly limit: number; readonly offset: number; readonly total: number }
}

layer(TestServer.shared, live)("a mail", (it) => {
  it.effect("lands in the sandbox's inbox, with its text, HTML and attachment, and is said to be sent", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const id = yield* sent({
        to: "Ada <ada@example.org>, bob@example.com",
        html: "<p>Grüße</p>",
        text: null,
        attachments: [{ filename: "a.txt", content: Buffer.from("ten EUR").toString("base64") }]
      })
      const email = yield* tried(id)
      assert.deepStrictEqual(
        email.recipients.map(({ address, attempts, kind, status }) => [address, kind, status, attempts]),
        [
          ["ada@example.org", "to", "sent", 1],
          ["bob@example.com", "to", "sent", 1]
        ]
      )
      assert.strictEqual(email.message_id_header, `<${id}@example.com>`)
      const inbox = (yield* get("/inbox")).json as Listed
      assert.deepStrictEqual(inbox.meta, { limit: 20, offset: 0, total: 2 })
      for (const { id: copy } of inbox.emails) {
        const { bytes } = yield* get(`/inbox/${copy}`)
        const parsed = yield* Effect.promise(() => PostalMime.parse(bytes))
        assert.strictEqual(parsed.messageId, email.message_id_header)
        assert.strictEqual(parsed.html?.trim(), "<p>Grüße</p>")
        assert.strictEqual(parsed.text?.trim(), "Grüße")
        assert.deepStrictEqual(
          parsed.attachments.map(({ filename, mimeType }) => [filename, mimeType]),
          [["a.txt", "text/plain"]]
        )
      }
    })
  )

  it.effect("has no blind copy in a header", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const id = yield* sent({ bcc: "secret@example.net" })
      const { recipients } = yield* tried(id)
      assert.deepStrictEqual(
        recipients.map(({ kind, status }) => [kind, status]),
        [
          ["to", "sent"],
          ["bcc", "sent"]
        ]
      )
      assert.notInclude(Buffer.from((yield* get(`/${id}/raw`)).bytes).toString(), "secret")
    })
  )

  it.effect("of 1 MiB is a blob, and the same bytes", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const content = Buffer.alloc(1024 * 1024, "0123456789")
      const id = yield* sent({ attachments: [{ filename: "a.bin", content: content.toString("base64") }] })
      assert.strictEqual((yield* tried(id)).recipients[0]?.status, "sent")
      const { bytes } = yield* get(`/${id}/raw`)
      const { attachments } = yield* Effect.promise(() => PostalMime.parse(bytes))
      const [attachment] = attachments
      assert.isTrue(content.equals(Buffer.from(attachment?.content as ArrayBuffer)))
    })
  )

  it.effect("of 64 KiB is in its row, one of a byte more is a blob", () =>
    Effect.gen(function* () {
      const { get, sent } = yield* makeStage
      const sql = yield* SqlClient
      const line = "Hello, Ada.\r\n"
      const stored = Effect.fnUntraced(function* (lines: number, padding: number) {
        const id = yield* sent({ text: line.repeat(lines), headers: { "X-Padding": "x".repeat(padding) } })
        const [row] = yield* sql<{
          size: number
          isInRow: boolean
        }>`SELECT size, bytes IS NOT NULL AS "isInRow"
          FROM mail_messages WHERE id = ${id}`
        assert.strictEqual((yield* get(`/${id}/raw`)).bytes.length, row?.size)
        return [row?.size ?? 0, row?.isInRow] as const
      })
      const [least] = yield* stored(1, 1)
      const lines = 1 + Math.floor((64 * 1024 - least) / line.length)
      const padding = 1 + ((64 * 1024 - least) % line.length)
      assert.deepStrictEqual(yield* stored(lines, padding), [64 * 1024, true])
      assert.deepStrictEqual(yield* stored(lines, padding + 1), [64 * 1024 + 1, false])
    })
  )

  it.effect("is accepted once under an Idempotency-Key, and another body is 409", () =>
    Effect.gen(function* () {
      const { get, post } = yield* makeStage
      const headers = { "Idempotency-Key": "order-42" }
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => post({}, headers)),
        { concurrency: 8 }
      )
      const ids = new Set(answers.map((answer) => textOf(answer, "message_id")))
      assert.strictEqual(ids.size, 1)
      assert.strictEqual(
        answers.filter(({ headers: given }) => given.get("idempotent-replay") === "true").length,
        7
      )
      const other = yield* post({ subject: "Another" }, headers)
      assert.strictEqual(other.status, 409)
      const { meta } = (yield* get("")).json as Listed
      assert.strictEqual(meta.total, 1)
    })
  )

  it.effect("goes to 300 recipients a minute, and twice that in a burst", () =>
    Effect.gen(function* () {
      const { post } = yield* makeStage
      const to = Array.from({ length: 50 }, (_, index) => `r${index}@example.org`).join(",")
      // They are not to be in the way of the next test's.
      const later = { to, send_at: new Date(Date.now() + 3_600_000).toISOString() }
      const began = performance.now()
      let accepted = 0
      let refused = yield* post(later)
      for (; refused.status === 200; refused = yield* post(later)) accepted += 50
      assert.isAtLeast(accepted, 600)
      // Five more come free in each second that it took.
      assert.isAtMost(accepted, 600 + (5 * (performance.now() - began)) / 1_000)
      assert.deepStrictEqual(
        [refused.status, (refused.json as { error?: string }).error],
        [429, "Sending limit reached (300 recipients per minute)"]
      )
      assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
    })
  )

  it.effect("that is not its reader's is 404", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeStage, yield* makeStage]
      const id = yield* one.sent()
      for (const path of ["", "/raw", "/attempts"])
        assert.strictEqual((yield* other.get(`/${id}${path}`)).status, 404)
    })
  )
})

layer(TestServer.shared, live)("the sandbox", (it) => {
  it.effect("refuses bounce@…, puts off defer@…, loses the first reply of lost@…", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const id = yield* sent({ to: "bounce@example.org, defer@example.org, lost@example.org" })
      const { recipients } = yield* tried(id)
      assert.deepStrictEqual(
        recipients.map(({ attempts, next_attempt_at, status }) => [
          status,
          attempts,
          next_attempt_at === null
        ]),
        [
          ["bounced", 1, true],
          ["deferred", 1, false],
          ["deferred", 1, false]
        ]
      )
      const { attempts } = (yield* get(`/${id}/attempts`)).json as {
        readonly attempts: ReadonlyArray<{ readonly outcome: string; readonly reply: string }>
      }
      assert.deepStrictEqual(attempts.map(({ outcome }) => outcome).toSorted(), [
        "bounced",
        "deferred",
        "unknown"
      ])
      const inbox = (yield* get("/inbox")).json as Listed
      assert.deepStrictEqual(
        inbox.emails.map(({ address }) => address),
        ["lost@example.org"]
      )
    })
  )

  it.effect("takes mail to complaint@…, complains of it, and suppresses the address", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const to = "Complaint@example.org"
      const statusOf = ({ recipients }: ReadEmail) => recipients[0]?.status
      assert.strictEqual(statusOf(yield* tried(yield* sent({ to }))), "sent")
      const { suppressions } = (yield* get("/suppressions")).json as {
        readonly suppressions: ReadonlyArray<{ readonly address: string; readonly reason: string }>
      }
      assert.deepStrictEqual(
        suppressions.map(({ address, reason }) => [address, reason]),
        [["complaint@example.org", "complaint"]]
      )
      assert.strictEqual(statusOf(yield* tried(yield* sent({ to }))), "suppressed")
    })
  )

  it.effect("is emptied, and a mail that waits is canceled", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { get, key, sent, tried } = yield* makeStage
      const id = yield* sent()
      yield* tried(id)
      const cleared = yield* ask("DELETE", "/api/v1/emails/inbox", { key })
      assert.deepStrictEqual(cleared.json, { deleted: 1 })
      assert.strictEqual(((yield* get("/inbox")).json as Listed).meta.total, 0)
      const cancel = (mail: string) => ask("POST", `/api/v1/emails/${mail}/cancel`, { key })
      assert.strictEqual((yield* cancel(id)).status, 409)
      const later = yield* sent({ send_at: new Date(Date.now() + 3_600_000).toISOString() })
      const canceled = (yield* cancel(later)).json as {
        recipients: ReadonlyArray<{ status: string }>
      }
      assert.strictEqual(canceled.recipients[0]?.status, "canceled")
    })
  )
})

layer(TestServer.own({ limits: { mailSandboxSlowMillis: 1_000 } }), live)(
  "a mail to slow@… of the sandbox",
  (it) => {
    it.effect("that is canceled meanwhile is in no inbox", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { get, key, read, sent } = yield* makeStage
        const id = yield* sent({ to: "slow@example.org" })
        yield* eventually(
          "it is under way",
          Effect.map(jobsOf(id), ({ underWay }) => underWay === 1)
        )
        assert.strictEqual((yield* ask("POST", `/api/v1/emails/${id}/cancel`, { key })).status, 200)
        yield* eventually(
          "its job has ended",
          Effect.map(jobsOf(id), ({ left }) => left === 0)
        )
        assert.strictEqual((yield* read(id)).recipients[0]?.status, "canceled")
        assert.strictEqual(((yield* get("/inbox")).json as Listed).meta.total, 0)
      })
    )

    it.effect("of more than 256 KiB of JSON is read in a thread", () =>
      Effect.gen(function* () {
        const threads = metric('signalbox_workers{isolation="thread"}')
        const { post } = yield* makeStage
        const unread = (kibibytes: number) => ({ ignored: "x".repeat(kibibytes * 1024) })
        assert.strictEqual((yield* post(unread(250))).status, 200)
        assert.strictEqual(yield* threads, 0)
        assert.strictEqual((yield* post(unread(256))).status, 200)
        assert.strictEqual(yield* threads, 1)
      })
    )

    it.effect("that is read in a thread and composed in place has its attachment", () =>
      Effect.gen(function* () {
        const { get, sent } = yield* makeStage
        const content = Buffer.alloc(200 * 1024, "0123456789")
        const id = yield* sent({ attachments: [{ filename: "a.bin", content: content.toString("base64") }] })
        const { bytes } = yield* get(`/${id}/raw`)
        const { attachments } = yield* Effect.promise(() => PostalMime.parse(bytes))
        assert.isTrue(content.equals(Buffer.from(attachments[0]?.content as ArrayBuffer)))
      })
    )
  }
)
