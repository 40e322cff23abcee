import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { limits } from "#src/Limits.ts"

const root = join(import.meta.dirname, "..", "..")

/** Lines of a page are broken anywhere. */
const contract = readFileSync(join(root, "src", "docs", "contract", "mail.md"), "utf8").replace(/\s+/g, " ")

const mebi = 1024 * 1024
const day = 24 * 3_600_000

/** Numbers that other tests shorten or reach only in part, as the contract tells them. */
const told: ReadonlyArray<readonly [rule: string, text: string]> = [
  ["body of POST /send", `JSON of at most ${limits.mailBodyBytes / mebi} MiB`],
  ["composed mail", `the composed mail has at most ${limits.mailBytes / mebi} MiB (413)`],
  ["rate", `to ${limits.mailRatePerMinute} recipients a minute, twice that in a burst`],
  ["day", `to ${limits.mailPerDay.toLocaleString("en")} in a day of UTC`],
  ["retry hours", `for ${limits.mailRetryHours} hours (\`MAIL_RETRY_HOURS\`)`],
  [
    "connections to the relay",
    `${limits.smtpConnections} mails at once, over connections of ${limits.smtpMessagesPerConnection} mails each`
  ],
  ["connections to a domain", `${limits.smtpConnectionsPerDomain} mails to a domain at once`],
  ["slow@", `\`slow@…\` takes ${limits.mailSandboxSlowMillis / 1_000} seconds`],
  [
    "memory of hand-overs",
    `${limits.mailMessagesBytes / mebi} MiB that messages of more than ${limits.mailRowBytes / 1024} KiB take`
  ],
  ["domains of a user", `${limits.mailDomainsPerUser} of a user`],
  ["unverified domains", `looked at for ${limits.mailDomainUnverifiedMillis / day} days`],
  ["retired keys", `stays for ${limits.mailKeyRetiredMillis / day} days`],
  ["wait", `wait=0-${limits.mailWaitSeconds}`],
  ["body is kept", `is kept for ${limits.mailBodyDays} days from when its first try was due`],
  ["mail is kept", `the rest for ${limits.mailDays}.`],
  [
    "inbox",
    `keeps the newest ${limits.mailInboxShown.toLocaleString("en")} of an owner, for ${limits.mailInboxDays} days`
  ],
  ["suppressions", `An owner adds at most ${limits.suppressionsPerUser.toLocaleString("en")}.`],
  ["late", `due for more than ${limits.mailLateMillis / 60_000} minutes`],
  [
    "SMTP clients",
    `${limits.mailSmtpConnections} clients are let in at once, ${limits.mailSmtpConnectionsPerAddress} from one address`
  ],
  [
    "SMTP sessions",
    `say nothing for ${limits.mailSmtpIdleMillis / 60_000} minutes, take ${limits.mailSmtpMessageMillis / 60_000} for a message, ` +
      `need more than ${limits.mailSmtpCommands} commands for it, or were refused ${limits.mailSmtpRefusals} times`
  ],
  ["SMTP logins", `454 after ${limits.mailSmtpLoginsPerMinute} wrong ones from an address in a minute`],
  ["bounces by SMTP", `the first ${limits.mailSmtpBounceBytes / 1024} KiB are read`]
]

describe("numbers of mail", () => {
  it("are those that the contract tells", () => {
    for (const [rule, text] of told) assert.include(contract, text, rule)
  })

  it("of pauses are a minute, doubled up to an hour", () => {
    assert.deepStrictEqual([limits.mailRestMinMillis, limits.mailRestMaxMillis], [60_000, 3_600_000])
    assert.include(contract, "takes nothing more for a minute, doubled up to an hour each time")
  })

  it("of looks at verified domains are a day, of soft bounces five", () => {
    assert.strictEqual(limits.mailDomainLookEveryMillis, day)
    assert.include(contract, "A verified domain is looked at again daily")
    assert.strictEqual(limits.mailSoftBounces, 5)
    assert.include(contract, "Soft bounces of five mails in a row suppress it")
  })
})
