import { assert, describe, it } from "@effect/vitest"
import { saysNoMailbox } from "#src/mail/transports/SmtpReply.ts"

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
