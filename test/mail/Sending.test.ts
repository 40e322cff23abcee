import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import PostalMime from "postal-mime"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { jobsOf } from "./RelayedServer.ts"
import { live, makeStage } from "./Stage.ts"

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
      for (let sent = 0; sent < 600; sent += 50) assert.strictEqual((yield* post(later)).status, 200)
      const refused = yield* post(later)
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
  }
)
