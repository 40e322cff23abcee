import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import type { SinkScript } from "./SmtpSink.ts"
import { hurry, jobsOf, Relay, relayedServer, withLogin } from "./RelayedServer.ts"
import { live, makeStage, makeStageOf, type ReadEmail } from "./Stage.ts"

interface Tried {
  readonly attempts: ReadonlyArray<{
    readonly address: string
    readonly attempt: number
    readonly route: string
    readonly outcome: string
    readonly reply: string
  }>
}

/** An administrator, whose mail goes to the relay, which plays by the script from now on. */
const makeRelayed = Effect.fnUntraced(function* (moves: SinkScript["moves"] = {}) {
  const relay = yield* Relay
  relay.play(withLogin(moves))
  // A connection that is open is not greeted, and not logged in to.
  relay.dropAll()
  const before = relay.accepted.length
  const stage = yield* makeStageOf("admin")
  return {
    ...stage,
    relay,
    taken: () => relay.accepted.slice(before),
    triesOf: (id: string) => Effect.map(stage.get(`/${id}/attempts`), ({ json }) => (json as Tried).attempts),
    /** hurries what waits until all recipients have this status */
    becomes: (id: string, status: string) =>
      eventually(
        `all are ${status}`,
        Effect.flatMap(hurry, () =>
          Effect.map(stage.read(id), ({ recipients }) => recipients.every((one) => one.status === status))
        )
      )
  }
})

const statesOf = ({ recipients }: ReadEmail) =>
  recipients.map(({ address, attempts, status }) => [address, status, attempts])

const headOf = (message: string): string => message.slice(0, message.indexOf("\r\n\r\n"))

// A test locks the row of a job without its lane. A settlement that has given up waiting for it once has the lane until then,
// and nobody else the lane: on a slow machine that came before the retry.
const patient = { jobLockMillis: 3_000 }

layer(relayedServer({ limits: patient }), live)("mail by a relay", (it) => {
  it.effect("arrives byte for byte, once for each recipient, who sees no blind copy", () =>
    Effect.gen(function* () {
      const { get, read, relay, sent, taken, triesOf } = yield* makeRelayed()
      const id = yield* sent({
        to: "Ada <ada@example.org>",
        cc: "bob@example.org",
        bcc: "secret@example.net",
        subject: "Grüße",
        text: ".a line that begins with a dot\n..and one with two\n.\nthe end",
        html: "<p>Grüße</p>",
        attachments: [{ filename: "a.txt", content: Buffer.alloc(3_000, "x").toString("base64") }]
      })
      const email = yield* read(id, 30)
      assert.deepStrictEqual(statesOf(email), [
        ["ada@example.org", "sent", 1],
        ["bob@example.org", "sent", 1],
        ["secret@example.net", "sent", 1]
      ])
      const raw = Buffer.from((yield* get(`/${id}/raw`)).bytes).toString("latin1")
      assert.sameDeepMembers(
        taken().map(({ from, to }) => [from, to]),
        ["ada@example.org", "bob@example.org", "secret@example.net"].map((to) => ["shop@example.com", [to]])
      )
      for (const { message } of taken()) assert.strictEqual(message, raw)
      assert.match(headOf(raw), new RegExp(`^Message-ID: <${id}@example\\.com>$`, "im"))
      assert.notMatch(raw, /secret|^bcc/im)
      assert.isTrue(relay.commands.some((line) => line.startsWith("AUTH PLAIN ")))
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ attempt, outcome, reply, route }) => [attempt, route, outcome, reply]),
        Array.from({ length: 3 }, () => [1, "smtp", "sent", "250 2.0.0 taken"])
      )
    })
  )

  it.effect("of 1 MiB is the same bytes too", () =>
    Effect.gen(function* () {
      const { get, read, sent, taken } = yield* makeRelayed()
      const content = Buffer.alloc(1024 * 1024, "0123456789").toString("base64")
      const id = yield* sent({ attachments: [{ filename: "a.bin", content }] })
      assert.strictEqual((yield* read(id, 30)).recipients[0]?.status, "sent")
      const raw = Buffer.from((yield* get(`/${id}/raw`)).bytes).toString("latin1")
      assert.isAbove(raw.length, 1024 * 1024)
      assert.isTrue(taken()[0]?.message === raw)
    })
  )

  it.effect("is put off by 4xx and refused by 5xx for one recipient, and goes to the others", () =>
    Effect.gen(function* () {
      const { becomes, read, sent, taken, triesOf } = yield* makeRelayed({
        rcpt: (_nth, line) =>
          line.includes("full@")
            ? "452 4.2.2 mailbox full\r\n"
            : line.includes("gone@")
              ? "550 5.7.1 not here\r\n"
              : undefined
      })
      const id = yield* sent({ to: "full@example.org, gone@example.org, ada@example.org" })
      const email = yield* read(id, 30)
      assert.deepStrictEqual(statesOf(email), [
        ["full@example.org", "deferred", 1],
        ["gone@example.org", "bounced", 1],
        ["ada@example.org", "sent", 1]
      ])
      assert.deepStrictEqual(
        email.recipients.map(({ last_reply, next_attempt_at }) => [last_reply, next_attempt_at === null]),
        [
          ["452 4.2.2 mailbox full", false],
          ["550 5.7.1 not here", true],
          ["250 2.0.0 taken", true]
        ]
      )
      const relay = yield* Relay
      relay.play(withLogin())
      yield* eventually(
        "the mailbox has room",
        Effect.andThen(
          hurry,
          Effect.map(read(id), ({ recipients }) => recipients[0]?.status === "sent")
        )
      )
      assert.deepStrictEqual(
        taken()
          .flatMap(({ to }) => to)
          .toSorted(),
        ["ada@example.org", "full@example.org"]
      )
      const tries = yield* triesOf(id)
      assert.deepStrictEqual(
        tries.filter(({ address }) => address === "full@example.org").map(({ outcome }) => outcome),
        ["deferred", "sent"]
      )
      const other = yield* sent()
      yield* becomes(other, "sent")
    })
  )

  for (const [what, moves] of [
    ["drops connections", { greeting: "drop" }],
    ["is about to close", { greeting: "421 4.3.2 come again\r\n" }],
    ["refuses the login", { auth: "535 5.7.8 no such user\r\n" }],
    ["refuses the sender", { mail: "550 5.7.1 not from you\r\n" }]
  ] satisfies ReadonlyArray<readonly [string, SinkScript["moves"]]>)
    it.effect(`waits without an attempt while the relay ${what}, and goes when it does not`, () =>
      Effect.gen(function* () {
        const { becomes, read, relay, sent, taken, triesOf } = yield* makeRelayed(moves)
        const before = relay.connections().all
        const id = yield* sent({ to: "ada@example.org, bob@example.org" })
        yield* eventually(
          "the relay was tried twice",
          Effect.map(hurry, () => relay.connections().all >= before + 2)
        )
        assert.deepStrictEqual(statesOf(yield* read(id)), [
          ["ada@example.org", "queued", 0],
          ["bob@example.org", "queued", 0]
        ])
        assert.deepStrictEqual(yield* triesOf(id), [])
        relay.play(withLogin())
        yield* becomes(id, "sent")
        assert.deepStrictEqual(
          (yield* triesOf(id)).map(({ attempt, outcome }) => [attempt, outcome]),
          [
            [1, "sent"],
            [1, "sent"]
          ]
        )
        assert.strictEqual(taken().length, 2)
      })
    )

  it.effect("whose reply is lost is unknown, and the same mail is sent again", () =>
    Effect.gen(function* () {
      const { becomes, read, sent, taken, triesOf } = yield* makeRelayed({
        end: (nth) => (nth === 1 ? "drop" : undefined)
      })
      const id = yield* sent()
      assert.deepStrictEqual(statesOf(yield* read(id, 30)), [["ada@example.org", "deferred", 1]])
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ outcome }) => outcome),
        ["unknown"]
      )
      yield* becomes(id, "sent")
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ attempt, outcome }) => [attempt, outcome]),
        [
          [1, "unknown"],
          [2, "sent"]
        ]
      )
      const [first, second, ...more] = taken()
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual(second, first)
      assert.match(headOf(first?.message ?? ""), new RegExp(`^Message-ID: <${id}@example\\.com>$`, "im"))
    })
  )

  it.effect("that is canceled while its recipient is refused stays canceled", () =>
    Effect.gen(function* () {
      const { get, key, read, relay, sent, taken } = yield* makeRelayed({
        rcpt: { reply: "451 4.3.0 not now\r\n", afterMillis: 1_000 }
      })
      const { ask } = yield* TestServer
      const before = relay.commands.length
      const id = yield* sent()
      yield* eventually(
        "the recipient is named",
        Effect.sync(() => relay.commands.slice(before).some((line) => line.startsWith("RCPT")))
      )
      const canceled = yield* ask("POST", `/api/v1/emails/${id}/cancel`, { key })
      assert.strictEqual(canceled.status, 200)
      yield* eventually(
        "the attempt has ended",
        Effect.map(get(`/${id}/attempts`), ({ json }) => (json as Tried).attempts.length === 1)
      )
      relay.play(withLogin())
      yield* eventually(
        "its job has ended",
        Effect.andThen(
          hurry,
          Effect.map(jobsOf(id), ({ left }) => left === 0)
        )
      )
      assert.strictEqual((yield* read(id)).recipients[0]?.status, "canceled")
      assert.deepStrictEqual(taken(), [])
    })
  )

  it.effect(
    "that is put off waits 1, 5, 15 and 30 minutes, then an hour each time, a tenth more or less",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { ask } = yield* TestServer
        const { key, sent } = yield* makeRelayed({ rcpt: "451 4.3.0 not now\r\n" })
        const id = yield* sent()
        for (const [index, minutes] of [1, 5, 15, 30, 60, 60].entries()) {
          const rows = sql<{ attempts: number; minutes: number; waits: boolean }>`SELECT d.attempts,
            extract(epoch FROM d.next_attempt_at - d.last_attempt_at)::float8 / 60 AS minutes,
            l.due_at > now() + interval '30 seconds' AS waits
          FROM mail_deliveries d JOIN job_lanes l ON l.queue = 'mail' AND l.lane = d.id WHERE d.message_id = ${id}`
          yield* eventually(
            "it waits",
            Effect.map(rows, ([row]) => row?.waits === true)
          )
          const [row] = yield* rows
          assert.strictEqual(row?.attempts, index + 1)
          assert.closeTo(row?.minutes ?? 0, minutes, minutes / 10 + 0.001)
          if (index < 5) yield* hurry
        }
        // Other tests hurry what waits.
        assert.strictEqual((yield* ask("POST", `/api/v1/emails/${id}/cancel`, { key })).status, 200)
      })
  )

  it.effect("is not sent again where its reply could not be written down at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { becomes, sent, taken, triesOf } = yield* makeRelayed()
      yield* sql`ALTER TABLE mail_attempts RENAME TO mail_attempts_away`
      const id = yield* sent()
      yield* eventually(
        "the relay has it",
        Effect.sync(() => taken().length === 1)
      )
      yield* Effect.andThen(hurry, Effect.sleep(1_500))
      yield* sql`ALTER TABLE mail_attempts_away RENAME TO mail_attempts`
      yield* becomes(id, "sent")
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ outcome }) => outcome),
        ["sent"]
      )
      assert.strictEqual(taken().length, 1)
    })
  )

  it.effect("that was refused is not sent again where its address could not be suppressed at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { becomes, relay, sent, triesOf } = yield* makeRelayed({
        end: { reply: "550 5.1.1 no such mailbox\r\n", afterMillis: 500 }
      })
      const before = relay.commands.length
      const id = yield* sent()
      yield* eventually(
        "the message is on its way",
        Effect.sync(() => relay.commands.slice(before).includes("DATA"))
      )
      yield* sql`ALTER TABLE mail_suppressions RENAME TO mail_suppressions_away`
      yield* Effect.sleep(1_500)
      yield* sql`ALTER TABLE mail_suppressions_away RENAME TO mail_suppressions`
      yield* becomes(id, "bounced")
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ outcome }) => outcome),
        ["bounced"]
      )
    })
  )

  for (const reply of ["451 4.3.0 not now\r\n", "421 4.3.2 come again\r\n"])
    it.effect(
      `that another process is about to end keeps its mark, though this one hears ${reply.trim()}`,
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const { becomes, relay, sent, triesOf } = yield* makeRelayed({ rcpt: { reply, afterMillis: 500 } })
          const before = relay.commands.length
          const id = yield* sent()
          yield* eventually(
            "the recipient is named",
            Effect.sync(() => relay.commands.slice(before).some((line) => line.startsWith("RCPT")))
          )
          // As another process leaves it that took the job over and died at the last byte.
          const ids = sql`SELECT id FROM mail_deliveries WHERE message_id = ${id}`
          yield* sql`UPDATE jobs SET attempts = attempts + 1 WHERE queue = 'mail' AND id IN (${ids})`
          yield* sql`UPDATE mail_deliveries SET status = 'sending', ending_attempt = 1 WHERE message_id = ${id}`
          yield* eventually(
            "the attempt has ended",
            Effect.map(jobsOf(id), ({ underWay }) => underWay === 0)
          )
          relay.play(withLogin())
          yield* becomes(id, "sent")
          assert.deepStrictEqual(
            (yield* triesOf(id)).map(({ attempt, outcome }) => [attempt, outcome]),
            [
              [1, "unknown"],
              [2, "sent"]
            ]
          )
        })
    )

  it.effect("that is tried anew while its attempt before is about to end is sent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask } = yield* TestServer
      const { becomes, key, read, relay, sent, taken } = yield* makeRelayed({
        rcpt: { reply: "550 5.7.1 not here\r\n", afterMillis: 500 }
      })
      const before = relay.commands.length
      const id = yield* sent()
      yield* eventually(
        "the recipient is named",
        Effect.sync(() => relay.commands.slice(before).some((line) => line.startsWith("RCPT")))
      )
      const retried = yield* sql.withTransaction(
        Effect.gen(function* () {
          // Its job cannot end.
          yield* sql`SELECT FROM jobs WHERE queue = 'mail'
            AND id IN (SELECT d.id FROM mail_deliveries d WHERE d.message_id = ${id}) FOR UPDATE`
          yield* eventually(
            "it has bounced",
            Effect.map(read(id), (email) => email.recipients[0]?.status === "bounced")
          )
          relay.play(withLogin())
          return yield* ask("POST", `/api/v1/emails/${id}/retry`, { key })
        })
      )
      assert.strictEqual(retried.status, 200)
      yield* becomes(id, "sent")
      assert.strictEqual(taken().length, 1)
    })
  )

  it.effect("of a user who is deleted meanwhile is canceled", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask } = yield* TestServer
      const { becomes, relay, sent, taken, userId } = yield* makeRelayed({ rcpt: "451 4.3.0 not now\r\n" })
      const id = yield* sent()
      yield* becomes(id, "deferred")
      assert.strictEqual((yield* ask("DELETE", `/api/v1/admin/users/${userId}`)).status, 200)
      relay.play(withLogin())
      yield* eventually(
        "its job has ended",
        Effect.andThen(
          hurry,
          Effect.map(jobsOf(id), ({ left }) => left === 0)
        )
      )
      assert.deepStrictEqual(
        yield* sql`SELECT status, last_reply FROM mail_deliveries WHERE message_id = ${id}`,
        [{ status: "canceled", last_reply: "its sender was deleted" }]
      )
      assert.deepStrictEqual(taken(), [])
    })
  )

  it.effect(
    "whose process died before the reply is unknown, though its recipient is suppressed by then",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const sql = yield* SqlClient
        const { becomes, key, sent, taken, triesOf } = yield* makeRelayed()
        const id = yield* sent({ send_at: new Date(Date.now() + 3_600_000).toISOString() })
        yield* ask("POST", "/api/v1/emails/suppressions", { key, json: { address: "ada@example.org" } })
        // As a process leaves it that dies at the last byte.
        yield* sql`UPDATE mail_deliveries SET status = 'sending', ending_attempt = 1 WHERE message_id = ${id}`
        yield* sql`UPDATE jobs SET not_before = NULL WHERE queue = 'mail'
        AND id IN (SELECT id FROM mail_deliveries WHERE message_id = ${id})`
        yield* becomes(id, "suppressed")
        assert.deepStrictEqual(
          (yield* triesOf(id)).map(({ attempt, outcome, reply }) => [attempt, outcome, reply]),
          [[1, "unknown", "the process died before the reply"]]
        )
        assert.deepStrictEqual(taken(), [])
      })
  )

  it.effect("is 403 for a user from a domain that is not verified", () =>
    Effect.gen(function* () {
      const { post } = yield* makeStage
      const { json, status } = yield* post({})
      assert.deepStrictEqual(
        [status, (json as { readonly error?: string }).error],
        [403, "from: example.com is not verified for this account"]
      )
    })
  )
})

layer(relayedServer({ mailOnUnknown: "hold" }), live)("mail that is held when its end is unknown", (it) => {
  it.effect("is not sent again", () =>
    Effect.gen(function* () {
      const { becomes, read, relay, sent, taken, triesOf } = yield* makeRelayed({ end: "drop" })
      const id = yield* sent()
      const { recipients } = yield* read(id, 30)
      assert.deepStrictEqual(
        recipients.map(({ next_attempt_at, status }) => [status, next_attempt_at]),
        [["unknown", null]]
      )
      relay.play(withLogin())
      const other = yield* sent()
      yield* becomes(other, "sent")
      assert.strictEqual((yield* read(id)).recipients[0]?.status, "unknown")
      assert.deepStrictEqual(
        (yield* triesOf(id)).map(({ outcome }) => outcome),
        ["unknown"]
      )
      assert.strictEqual(taken().filter(({ message }) => message.includes(`<${id}@`)).length, 1)
    })
  )
})
