import { assert, describe, it } from "@effect/vitest"
import { handedOf, saysNoMailbox } from "#src/mail/transports/SmtpReply.ts"

const handedAt = (phase: "envelope" | "data" | "ended", command: string, text: string) => {
  const fault = { command, code: Number(text.slice(0, 3)), text, isOfMessage: false }
  return handedOf(phase === "ended" ? { phase, fault } : { phase, fault }, 500)._tag
}

const handedAtSender = (text: string) => handedAt("envelope", "MAIL FROM", text)

/** The places at which a server refuses after it has taken MAIL FROM. */
const later = [
  ["envelope", "RCPT TO"],
  ["envelope", "DATA"],
  ["data", "DATA"],
  ["ended", "DATA"]
] as const

describe("a refusal of MAIL FROM", () => {
  it("is of the sender where it names the address, its mailbox or its rights", () => {
    for (const reply of [
      "501 5.1.7 bad sender address",
      "501-5.1.7 bad sender address",
      "550 not from you",
      "551 not one of ours",
      "553 5.7.1 you are not the owner of that address",
      "554 5.7.1 not verified",
      "450 4.1.8 its domain was not found",
      "451 4.1.7 its address cannot be checked now"
    ])
      assert.strictEqual(handedAtSender(reply), "SenderRefused", reply)
  })

  it("is of the relay where it speaks of this server, its login or the relay itself, and never a recipient's", () => {
    for (const reply of [
      "421 4.1.8 closing",
      "450 4.7.1 too many messages",
      "451 4.3.0 not now",
      "452 4.3.1 no room",
      "500 5.5.2 what",
      "502 5.5.1 not here",
      "503 5.5.1 say EHLO first",
      "530 5.7.0 log in first",
      "535 5.7.8 who are you",
      "451 4.1.80 something else"
    ])
      assert.strictEqual(handedAtSender(reply), "RouteDown", reply)
  })
})

describe("a refusal of a later command", () => {
  it("is of the sender where its enhanced status says so", () => {
    for (const reply of [
      "550 5.1.8 <shop@bad.example>: Sender address rejected: Domain not found",
      "450 4.1.8 <shop@bad.example>: Sender address rejected: Domain not found",
      "550-5.1.7 <shop@bad.example>: Sender address rejected: undeliverable address",
      "450 4.1.7 <shop@bad.example>: Sender address rejected: unverified address",
      "550 5.7.27 the sender's domain takes no mail"
    ])
      for (const [phase, command] of later)
        assert.strictEqual(handedAt(phase, command, reply), "SenderRefused", `${command} ${reply}`)
  })

  it("is of the recipient else, also where only the code or the text may mean the sender", () => {
    for (const reply of [
      "550 5.1.1 no such mailbox",
      "550 5.1.10 the recipient's domain takes no mail",
      "550 5.1.80 something else",
      "553 5.7.1 <shop@bad.example>: Sender address rejected: not owned by user shop",
      "554 5.7.1 access denied",
      "550 5.7.26 not authenticated",
      "550 5.7.270 something else",
      "501 no"
    ])
      for (const [phase, command] of later)
        assert.strictEqual(handedAt(phase, command, reply), "Bounced", `${command} ${reply}`)
    for (const [phase, command] of later) {
      assert.strictEqual(handedAt(phase, command, "451 4.7.1 come again"), "Deferred", command)
      assert.strictEqual(handedAt(phase, command, "421 4.1.8 closing"), "RouteDown", command)
    }
  })
})

describe("a refusal", () => {
  it("says that there is no such mailbox by 5.1.1, 5.1.2, 5.1.3, 5.1.6 or 5.1.10", () => {
    for (const detail of ["1", "2", "3", "6", "10"])
      assert.isTrue(saysNoMailbox(`550 5.1.${detail} no such mailbox`), detail)
    assert.isTrue(saysNoMailbox("550-5.1.1 no such mailbox 550 5.1.1 really"))
  })

  it("says nothing of the mailbox where it speaks of the sender, of its policy, or of now", () => {
    for (const reply of [
      "550 5.1.0 the address is refused",
      "550 5.1.4 which of the two",
      "553 5.1.7 the sender's address is no address",
      "550 5.1.8 the sender's domain does not exist",
      "550 5.1.11 something else",
      "550 5.7.1 spam",
      "552 5.2.2 full",
      "450 5.1.1 greylisted",
      "450 4.1.1 not now",
      "550 no such user",
      "x 550 5.1.1 no such mailbox"
    ])
      assert.isFalse(saysNoMailbox(reply), reply)
  })
})
