import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readMailReport, reportBytesMax } from "#streams/mail/MailReport.ts"
import { arfOf, dsnOf, outOfOffice, type StatusGroup } from "../bounces/Reports.ts"

const read = (raw: Uint8Array) => Effect.promise(() => readMailReport(raw))

const first = (group: Partial<StatusGroup>) =>
  Effect.map(read(dsnOf([{ address: "ada@example.org", ...group }])), (report) => report?.recipients[0])

describe("a delivery status notification", () => {
  it.effect("tells who was not reached, why, and of which mail", () =>
    Effect.gen(function* () {
      const report = yield* read(
        dsnOf(
          [
            { address: "Ada@Example.org", original: "info@example.com" },
            { address: "bob@example.org", status: "4.4.7", diagnostic: "" },
            { address: "eve@example.org", action: "delivered", status: "2.0.0" }
          ],
          {
            to: "b+token@bounces.example.com",
            messageId: "eml_1@example.com",
            returnPath: "shop@example.com"
          }
        )
      )
      assert.deepStrictEqual(report, {
        recipients: [
          {
            addresses: ["info@example.com", "ada@example.org"],
            type: "hard",
            isFailed: true,
            detail: "550 5.1.1 no such user"
          },
          { addresses: ["bob@example.org"], type: "soft", isFailed: true, detail: "4.4.7 not delivered" }
        ],
        messageId: "eml_1@example.com",
        returnPaths: ["b+token@bounces.example.com", "shop@example.com"]
      })
    })
  )

  for (const [status, diagnostic, type] of [
    ["5.1.1", "550 no such user", "hard"],
    ["5.1.2", "", "hard"],
    ["5.1.10", "556 5.1.10 null MX", "hard"],
    ["5.2.1", "550 5.2.1 disabled", "hard"],
    ["5.0.0", "550 unknown user", "hard"],
    ["5.0.0", "552 5.2.2 over quota", "soft"],
    ["", "550 no such user", "hard"],
    ["", "451 try later", "soft"],
    ["", "", "soft"],
    ["5.1.8", "553 5.1.8 bad sender", "soft"],
    ["5.2.2", "552 5.2.2 mailbox full", "soft"],
    ["5.3.4", "552 5.3.4 too long", "soft"],
    ["5.7.1", "554 5.7.1 looks like spam", "soft"],
    ["4.4.7", "expired", "soft"]
  ] as const)
    it.effect(`with status "${status}" and "${diagnostic}" is ${type}`, () =>
      Effect.gen(function* () {
        assert.deepInclude(yield* first({ status, diagnostic }), { type, isFailed: true })
      })
    )

  for (const action of ["delayed", "delivered", "relayed", "expanded", ""])
    it.effect(`of action "${action}" ends nothing`, () =>
      Effect.gen(function* () {
        const report = yield* read(dsnOf([{ address: "ada@example.org", action, status: "4.4.1" }]))
        assert.deepStrictEqual(report?.recipients, [])
      })
    )
})

describe("a complaint", () => {
  const fields = ["Feedback-Type: abuse", "User-Agent: SomeGenerator/1.0", "Version: 1"]

  it.effect("tells who complained, of which mail", () =>
    Effect.gen(function* () {
      const report = yield* read(
        arfOf(
          [
            ...fields,
            "Original-Mail-From: <b+token@bounces.example.com>",
            "Original-Rcpt-To: <Ada@example.org>"
          ],
          { messageId: "eml_1@example.com" }
        )
      )
      assert.deepStrictEqual(report, {
        recipients: [
          {
            addresses: ["ada@example.org"],
            type: "complaint",
            isFailed: false,
            detail: "complained of: abuse"
          }
        ],
        messageId: "eml_1@example.com",
        returnPaths: ["abuse@example.com", "b+token@bounces.example.com"]
      })
    })
  )

  it.effect("that does not name its recipient is of those in the mail's To", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* read(arfOf(fields)))?.recipients[0]?.addresses, ["ada@example.org"])
    })
  )

  for (const kind of ["not-spam", "auth-failure", ""])
    it.effect(`of kind "${kind}" is none`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual((yield* read(arfOf([`Feedback-Type: ${kind}`])))?.recipients, [])
      })
    )
})

describe("a mail that is no report", () => {
  const dsn = dsnOf([{ address: "ada@example.org" }]).toString()
  for (const [what, raw] of [
    ["the answer of somebody who is away", outOfOffice],
    ["nothing", Buffer.alloc(0)],
    ["zeros", Buffer.alloc(100_000)],
    ["bytes that are no text", Buffer.from(Array.from({ length: 4_096 }, (_, n) => (n * 151) % 256))],
    ["a report by its parts alone", Buffer.from(dsn.replace("multipart/report", "multipart/mixed"))],
    ["a report without its part", Buffer.from(dsn.replace("message/delivery-status", "text/html"))],
    [
      "parts within parts without end",
      Buffer.from(
        "Content-Type: multipart/report; boundary=b0\r\n\r\n" +
          Array.from(
            { length: 300 },
            (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n\r\n`
          ).join("")
      )
    ]
  ] as const)
    it.effect(`such as ${what} is told apart`, () =>
      Effect.gen(function* () {
        assert.isUndefined(yield* read(raw))
      })
    )
})

describe("a report of a stranger", () => {
  it.effect("is read up to 50 recipients and 256 KiB, with values of 1,000 characters", () =>
    Effect.gen(function* () {
      const group = { address: "ada@example.org", diagnostic: `550 5.1.1 ${"x".repeat(5_000)}` }
      const some = yield* read(dsnOf(Array.from({ length: 49 }, () => group)))
      assert.strictEqual(some?.recipients.length, 49)
      assert.isAtMost(some?.recipients[0]?.detail.length ?? Infinity, 1_000)
      const short = { address: "ada@example.org" }
      const many = yield* read(dsnOf(Array.from({ length: 1_000 }, () => short)))
      assert.strictEqual(many?.recipients.length, 50)
      const behind = Buffer.concat([
        Buffer.from(
          "Content-Type: multipart/report; boundary=b1\r\n\r\n--b1\r\nContent-Type: text/plain\r\n\r\n"
        ),
        Buffer.alloc(reportBytesMax, "x\r\n"),
        dsnOf([short]).subarray(300)
      ])
      assert.isUndefined(yield* read(behind))
    })
  )

  it.effect("may be cut anywhere", () =>
    Effect.gen(function* () {
      const dsn = dsnOf([{ address: "ada@example.org" }], { messageId: "eml_1@example.com" })
      for (let length = 0; length < dsn.length; length += 7) {
        const report = yield* read(dsn.subarray(0, length))
        for (const { addresses } of report?.recipients ?? [])
          assert.includeMembers(["ada@example.org"], [...addresses])
      }
    })
  )

  it.effect("has no addresses that are none", () =>
    Effect.gen(function* () {
      for (const address of ["", "<>", "a@", "ada@example.org\u0000", "x".repeat(900), "a b@example.org"]) {
        assert.deepStrictEqual((yield* first({ address }))?.addresses, [])
      }
      assert.deepStrictEqual((yield* first({ address: "<ada@example.org>" }))?.addresses, ["ada@example.org"])
    })
  )
})
