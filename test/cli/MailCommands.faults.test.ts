import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { signalbox } from "./Signalbox.ts"

const run = (args: ReadonlyArray<string>, key: string) =>
  Effect.flatMap(TestServer, ({ url }) =>
    Effect.promise(() => signalbox(["mail", ...args], { SIGNALBOX_URL: url, SIGNALBOX_KEY: key }))
  )

const server = Layer.unwrap(
  Effect.map(DnsServer, ({ address }) =>
    TestServer.own({
      mailDomains: {
        spf: [],
        bounceDomain: undefined,
        hostname: undefined,
        fromDomains: new Set(),
        nameServers: [address]
      }
    })
  )
).pipe(Layer.provideMerge(DnsServer.layer))

layer(server, { excludeTestServices: true })("signalbox mail", (it) => {
  it.effect("sends, shows, lists the inbox, and suppresses", () =>
    Effect.gen(function* () {
      const { key } = yield* (yield* TestServer).makeUser()
      const envelope = ["--from", "shop@example.com", "--to", "ada@example.org", "--subject", "Order 7"]
      const sent = yield* run(["send", ...envelope, "--text", "It is on its way."], key)
      const [, id = ""] = /^Accepted as (eml_\w{22})\n$/.exec(sent.out) ?? []
      assert.deepStrictEqual([sent.code, id === ""], [0, false])
      assert.match(
        (yield* run(["show", id, "--wait", "30"], key)).out,
        /^Order 7 [\s\S]*ada@example\.org +sent/
      )
      assert.include((yield* run(["inbox"], key)).out, "Order 7")
      assert.match((yield* run(["list"], key)).out, new RegExp(`^ID [\\s\\S]*^${id} .*Order 7`, "m"))
      const without = yield* run(["send", ...envelope], key)
      assert.deepStrictEqual(
        [without.code, without.err.trim()],
        [1, "signalbox: html: is required where there is no text"]
      )
      const suppressed = yield* run(["suppress", "Ada@example.org", "--note", "left"], key)
      assert.deepStrictEqual(
        [suppressed.code, suppressed.out],
        [0, "ada@example.org is suppressed (manual)\n"]
      )
      const again = JSON.parse((yield* run(["send", ...envelope, "--html", "<p>x</p>", "--json"], key)).out)
      assert.match((yield* run(["show", again.message_id], key)).out, /ada@example\.org +suppressed/)
    })
  )

  it.effect("adds a domain with its records, and verifies it once they are published", () =>
    Effect.gen(function* () {
      const { key } = yield* (yield* TestServer).makeUser()
      const dns = yield* DnsServer
      const added = JSON.parse((yield* run(["domains", "add", "shop.test", "--json"], key)).out)
      const before = yield* run(["domains", "verify", added.id], key)
      assert.match(before.out, /^shop\.test is not verified\n[\s\S]*dkim +missing/)
      dns.zone(...added.records.map(({ zone }: { readonly zone: string }) => zone))
      const verified = yield* run(["domains", "verify", added.id], key)
      assert.match(verified.out, /^shop\.test is verified\n[\s\S]*dkim +ok/)
      assert.match((yield* run(["domains", "list"], key)).out, /shop\.test +true/)
    })
  )
})
