import { execFile, spawnSync } from "node:child_process"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { shownDomain } from "#src/mail/domains/DomainRecords.ts"
import { newDkimKey } from "#src/mail/signing/Dkim.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"

const dig = requirement("dig", () =>
  spawnSync("dig", ["-v"]).error === undefined
    ? undefined
    : "it is not in PATH (Debian: apt-get install bind9-dnsutils)"
)

/** The lines that dig prints, by UDP or by TCP. */
const lookUp = (address: string, name: string, type: string, ...options: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const [host = "", port = ""] = address.split(":")
    const { stdout } = await promisify(execFile)("dig", [
      `@${host}`,
      "-p",
      port,
      "-q",
      name,
      "-t",
      type,
      "+noedns",
      "+time=20",
      "+tries=2",
      ...options
    ])
    return stdout
      .trim()
      .split("\n")
      .filter((line) => line !== "")
  })

/** The strings of a TXT record as one, and an exchange without the dot at its end. */
const valueOf = (line: string): string =>
  line.startsWith('"') ? (JSON.parse(line.replaceAll('" "', "")) as string) : line.replace(/\.$/, "")

describeWith(dig, "dig", () => {
  it.live("reads the records of a domain as they are shown, once the lines of the zone are published", () =>
    Effect.gen(function* () {
      const { address, zone } = yield* DnsServer
      const [key, next] = yield* Effect.promise(() => Promise.all([newDkimKey(), newDkimKey()]))
      const { records } = shownDomain(
        {
          id: "dom_1",
          user_id: "usr_1",
          name: "xn--bcher-kva.test",
          selector: "sb1",
          public_key: key.publicKey,
          private_key: new Uint8Array(),
          next_public_key: next.publicKey,
          next_private_key: new Uint8Array(),
          retired_at: null,
          verified_at: null,
          unverified_at: new Date(0),
          looked_up_at: null,
          findings: {},
          created_at: new Date(0)
        },
        {
          spf: ["include:_spf.relay.test", "ip6:2001:db8::/32"],
          bounceDomain: "bounces.test",
          hostname: "mx.signalbox.test",
          fromDomains: new Set(),
          nameServers: []
        }
      )
      assert.deepStrictEqual(
        records.map(({ kind }) => kind),
        ["dkim", "dkim", "spf", "dmarc", "bounce"]
      )
      zone(...records.map((record) => record.zone))
      for (const { name, type, value, zone: line } of records) {
        const short = yield* lookUp(address, name, type, "+short", "+tcp")
        assert.deepStrictEqual(short.map(valueOf), [value], name)
        const [answer = ""] = yield* lookUp(address, name, type, "+noall", "+answer", "+ttlid")
        assert.strictEqual(answer.replaceAll(/\t+/g, " ").replace(/ \d+ IN /, " 3600 IN "), line)
      }
      assert.deepStrictEqual(yield* lookUp(address, "sb3._domainkey.xn--bcher-kva.test", "TXT", "+short"), [])
    }).pipe(Effect.provide(DnsServer.layer))
  )
})
