import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Bounces } from "#src/mail/bounces/Bounces.ts"
import { ReturnPaths } from "#src/mail/bounces/ReturnPaths.ts"
import { deleteOldMail } from "#src/mail/emails/OldMail.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { Suppressions } from "#src/mail/suppressions/Suppressions.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { Relay, relayedServer } from "../RelayedServer.ts"
import { live, makeStageOf, type ReadEmail } from "../Stage.ts"
import { arfOf, dsnOf, outOfOffice } from "./Reports.ts"

const bounceDomain = "bounces.example.net"

const mailDomains = {
  spf: [],
  bounceDomain,
  hostname: undefined,
  fromDomains: new Set<string>(),
  nameServers: []
}

const served = relayedServer({ mailDomains })

const services = Bounces.layer.pipe(
  Layer.provideMerge(ReturnPaths.layer),
  Layer.provide(Layer.mergeAll(Suppressions.layer, Secrets.layer, Workers.layer))
)

interface Reported {
  readonly bounces: ReadonlyArray<{
    readonly message_id: string
    readonly recipient: string
    readonly type: string
    readonly known: boolean
    readonly suppressed: boolean
  }>
}

const outcomesOf = ({ recipients }: ReadEmail) =>
  recipients.map(({ address, bounces, status }) => [address, status, bounces.map(({ type }) => type)])

/** An administrator, whose mail the relay takes, and the return paths that it came with. */
const makeBounced = Effect.gen(function* () {
  const { ask } = yield* TestServer
  const relay = yield* Relay
  const stage = yield* makeStageOf("admin")
  const { key, read, sent } = stage
  const report = (body: Uint8Array<ArrayBuffer>, by = key) =>
    ask("POST", "/api/v1/emails/bounces", { key: by, body, headers: { "content-type": "message/rfc822" } })
  return {
    ...stage,
    report,
    reported: (body: Uint8Array<ArrayBuffer>) => Effect.map(report(body), ({ json }) => json as Reported),
    tell: (json: object, by = key) => ask("POST", "/api/v1/emails/bounces", { key: by, json }),
    /** sends, waits until the relay has it, and answers the id and the envelope's sender of each recipient */
    handedOver: Effect.fnUntraced(function* (fields: object = {}) {
      const before = relay.accepted.length
      const id = yield* sent(fields)
      yield* eventually(
        "the relay has it",
        Effect.map(read(id), ({ recipients }) => recipients.every(({ status }) => status === "sent"))
      )
      const mails = relay.accepted.slice(before).filter(({ message }) => message.includes(`<${id}@`))
      return { id, paths: new Map(mails.map(({ from, to }) => [to[0] ?? "", from])) }
    }),
    suppressed: Effect.map(stage.get("/suppressions"), ({ json }) =>
      (
        json as { readonly suppressions: ReadonlyArray<{ address: string; reason: string; note: string }> }
      ).suppressions.map(({ address, note, reason }) => [address, reason, note])
    )
  }
})

const localOf = (address: string): string => address.slice(0, address.indexOf("@"))
const tokenOf = (address: string): string => localOf(address).slice("b+".length)

const numbersOf = Effect.gen(function* () {
  const { url } = yield* TestServer
  const text = yield* Effect.promise(() => fetch(`${url}/metrics`).then((answer) => answer.text()))
  return (type: string): number =>
    Number(
      new RegExp(`signalbox_mail_bounces_total\\{[^}]*type="${type}"[^}]*\\} (\\d+)`).exec(text)?.[1] ?? 0
    )
})

layer(served, live)("mail that comes back", (it) => {
  it.effect("is to a return path of its own for each recipient, of 64 characters before the @ at most", () =>
    Effect.gen(function* () {
      const { handedOver } = yield* makeBounced
      const { paths } = yield* handedOver({ to: "ada@example.org, bob@example.org" })
      const senders = [...paths.values()]
      assert.strictEqual(new Set(senders).size, 2)
      for (const sender of senders) {
        assert.match(sender, /^b\+[0-9a-z]{50}@bounces\.example\.net$/)
        assert.isAtMost(localOf(sender).length, 64)
      }
    })
  )

  it.effect("by a hard bounce to its return path is bounced, and its address suppressed", () =>
    Effect.gen(function* () {
      const { handedOver, read, suppressed } = yield* makeBounced
      const { id, paths } = yield* handedOver({ to: "Ada@example.org, bob@example.org" })
      const path = paths.get("Ada@example.org") ?? ""
      const { received, takes } = yield* Bounces
      assert.isTrue(takes(tokenOf(path)))
      const raw = dsnOf([{ address: "ada@example.org" }], { to: path })
      // A server may write it in capital letters, and send it twice.
      yield* received({ token: tokenOf(path).toUpperCase(), raw })
      yield* received({ token: tokenOf(path), raw })
      const email = yield* read(id)
      assert.deepStrictEqual(outcomesOf(email), [
        ["Ada@example.org", "bounced", ["hard"]],
        ["bob@example.org", "sent", []]
      ])
      assert.strictEqual(email.recipients[0]?.last_reply, "550 5.1.1 no such user")
      assert.deepStrictEqual(yield* suppressed, [
        ["ada@example.org", "hard_bounce", "550 5.1.1 no such user"]
      ])
    }).pipe(Effect.provide(services))
  )

  it.effect("to a token that is forged is dropped and counted, and so is mail that is no report", () =>
    Effect.gen(function* () {
      const { handedOver, read, suppressed } = yield* makeBounced
      const { id, paths } = yield* handedOver({ to: "ada@example.org, bob@example.org" })
      const [one = "", other = ""] = [...paths.values()].map(tokenOf)
      const { received, takes } = yield* Bounces
      const raw = dsnOf([{ address: "ada@example.org" }, { address: "bob@example.org" }])
      const forged = [
        ...Array.from(one, (digit, n) => one.slice(0, n) + (digit === "0" ? "1" : "0") + one.slice(n + 1)),
        one.slice(0, 26) + other.slice(26),
        one.slice(1),
        `${one}0`,
        ""
      ]
      const before = yield* numbersOf
      for (const token of forged) {
        assert.isFalse(takes(token), token)
        yield* received({ token, raw })
      }
      yield* received({ token: one, raw: outOfOffice })
      yield* received({ token: one, raw: dsnOf([{ address: "ada@example.org", action: "delayed" }]) })
      const email = yield* read(id)
      assert.deepStrictEqual(
        email.recipients.map(({ bounces, status }) => [status, bounces]),
        [
          ["sent", []],
          ["sent", []]
        ]
      )
      assert.deepStrictEqual(yield* suppressed, [])
      const after = yield* numbersOf
      assert.strictEqual(after("forged") - before("forged"), 2 * forged.length)
      assert.strictEqual(after("ignored") - before("ignored"), 2)
    }).pipe(Effect.provide(services))
  )

  it.effect("is told of by its owner as a report, found by its return path or its Message-ID", () =>
    Effect.gen(function* () {
      const { handedOver, read, report, reported } = yield* makeBounced
      const { makeUser } = yield* TestServer
      const to = "ada@example.org, bob@example.org, eve@example.org"
      const { id, paths } = yield* handedOver({ to })
      const messageId = `${id}@example.com`
      const several = dsnOf(
        [
          { address: "Ada@example.org", status: "5.2.2", diagnostic: "552 5.2.2 mailbox full" },
          { address: "forward@example.com", original: "bob@example.org" },
          { address: "stranger@example.org" }
        ],
        { messageId }
      )
      const other = yield* makeUser("admin")
      assert.strictEqual((yield* report(several, other.key)).status, 404)
      assert.deepStrictEqual((yield* reported(several)).bounces, [
        { message_id: id, recipient: "ada@example.org", type: "soft", known: false, suppressed: false },
        { message_id: id, recipient: "bob@example.org", type: "hard", known: false, suppressed: true }
      ])
      const complaint = arfOf(["Feedback-Type: abuse", `Original-Mail-From: ${paths.get("eve@example.org")}`])
      assert.deepStrictEqual((yield* reported(complaint)).bounces, [
        { message_id: id, recipient: "eve@example.org", type: "complaint", known: false, suppressed: true }
      ])
      assert.deepStrictEqual(
        (yield* reported(complaint)).bounces.map(({ known }) => known),
        [true]
      )
      assert.deepStrictEqual(outcomesOf(yield* read(id)), [
        ["ada@example.org", "bounced", ["soft"]],
        ["bob@example.org", "bounced", ["hard"]],
        ["eve@example.org", "sent", ["complaint"]]
      ])
      const late = dsnOf([{ address: "ada@example.org", action: "delayed" }], { messageId })
      assert.deepStrictEqual((yield* reported(late)).bounces, [])
      assert.deepStrictEqual((yield* reported(outOfOffice)).bounces, [])
    })
  )

  it.effect("is told of by its owner as JSON, with the fault's field where there is one", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { handedOver, read, report, suppressed, tell } = yield* makeBounced
      const { id } = yield* handedOver({ to: "ada@example.org, bob@example.org" })
      const hard = {
        message_id: `<${id}@example.com>`,
        recipient: "ADA@example.org",
        type: "hard",
        detail: "user\r\nunknown\u0000"
      }
      const other = yield* makeUser("admin")
      assert.strictEqual((yield* tell(hard, other.key)).status, 404)
      assert.deepStrictEqual(((yield* tell(hard)).json as Reported).bounces, [
        { message_id: id, recipient: "ada@example.org", type: "hard", known: false, suppressed: true }
      ])
      yield* tell({ message_id: id, recipient: "bob@example.org", type: "complaint" })
      assert.deepStrictEqual(outcomesOf(yield* read(id)), [
        ["ada@example.org", "bounced", ["hard"]],
        ["bob@example.org", "sent", ["complaint"]]
      ])
      assert.sameDeepMembers(yield* suppressed, [
        ["ada@example.org", "hard_bounce", "user unknown"],
        ["bob@example.org", "complaint", "reported as complaint"]
      ])
      const faults = [
        [{ ...hard, message_id: undefined }, 400, "message_id: is required"],
        [{ ...hard, message_id: "x" }, 400, "message_id: expected eml_… or a Message-ID of this server"],
        [{ ...hard, message_id: `eml_${"0".repeat(22)}` }, 404, "Mail not found"],
        [{ ...hard, recipient: "a@" }, 400, 'recipient: "a@" is not an address'],
        [{ ...hard, recipient: "eve@example.org" }, 404, "recipient: the mail has no such recipient"],
        [{ ...hard, type: "medium" }, 400, "type: expected hard, soft or complaint"],
        [{ ...hard, detail: 5 }, 400, "detail: expected text"],
        [{ ...hard, detail: "x".repeat(501) }, 400, "detail: at most 500 characters"]
      ] as const
      for (const [json, status, error] of faults) {
        const answer = yield* tell(json)
        assert.deepStrictEqual([answer.status, textOf(answer, "error")], [status, error])
      }
      assert.strictEqual((yield* report(new Uint8Array(1024 * 1024 + 1))).status, 413)
      const { key } = other
      const headers = { "content-type": "text/plain" }
      const wrong = yield* ask("POST", "/api/v1/emails/bounces", { key, body: "x", headers })
      assert.strictEqual(wrong.status, 415)
      for (const body of ["[]", "{", "\u00ff"])
        assert.strictEqual(
          (yield* ask("POST", "/api/v1/emails/bounces", {
            key,
            body,
            headers: { "content-type": "application/json" }
          })).status,
          400
        )
    })
  )

  it.effect("softly five times in a row suppresses its address, whatever the order of the reports", () =>
    Effect.gen(function* () {
      const { read, sent, suppressed, tell } = yield* makeBounced
      const soft = (message_id: string) =>
        Effect.map(
          tell({ message_id, recipient: "ada@example.org", type: "soft", detail: "mailbox full" }),
          ({ json }) => (json as Reported).bounces.map(({ known, suppressed }) => [known, suppressed])
        )
      const ids: Array<string> = []
      for (let n = 0; n < 8; n++) ids.push(yield* sent())
      const emails = Effect.forEach(ids, (id) => read(id))
      yield* eventually(
        "the relay has them",
        Effect.map(emails, (all) => all.every(({ recipients }) => recipients[0]?.status === "sent"))
      )
      const at = (n: number) => ids[n] ?? ""
      // The third was delivered, so far.
      for (const n of [0, 1, 6, 4, 5]) assert.deepStrictEqual(yield* soft(at(n)), [[false, false]])
      assert.deepStrictEqual(yield* soft(at(4)), [[true, false]])
      assert.deepStrictEqual(yield* suppressed, [])
      // Neither is enough alone: the later one has to count the earlier one.
      const both = yield* Effect.all([soft(at(7)), soft(at(3))], { concurrency: 2 })
      assert.sameDeepMembers(both.flat(), [
        [false, false],
        [false, true]
      ])
      assert.deepStrictEqual(yield* suppressed, [
        ["ada@example.org", "hard_bounce", "5 soft bounces in a row: mailbox full"]
      ])
    })
  )

  it.effect("is forgotten with its mail", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { handedOver, tell } = yield* makeBounced
      const { id } = yield* handedOver()
      yield* tell({ message_id: id, recipient: "ada@example.org", type: "soft" })
      const left = sql`SELECT FROM mail_bounces WHERE delivery_id IN
        (SELECT id FROM mail_deliveries WHERE message_id = ${id})`
      assert.lengthOf(yield* left, 1)
      const [delivery] = yield* sql<{ id: string }>`SELECT id FROM mail_deliveries WHERE message_id = ${id}`
      yield* sql`UPDATE mail_messages SET created_at = now() - interval '91 days' WHERE id = ${id}`
      yield* deleteOldMail
      assert.lengthOf(yield* sql`SELECT FROM mail_bounces WHERE delivery_id = ${delivery?.id ?? ""}`, 0)
    })
  )
})
