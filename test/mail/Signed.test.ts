import { Resolver } from "node:dns/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { authenticate, type DNSResolver } from "mailauth"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { DnsServer } from "./DnsServer.ts"
import { hurry, impatient, Relay, smtpServerAt, withLogin } from "./RelayedServer.ts"
import { startSink } from "./SmtpSink.ts"
import { live, makeStage, plain, type ReadEmail } from "./Stage.ts"

const baseUrl = "https://signalbox.test"

/** A server at an address whose users send by a relay, from domains of theirs and from `everybody.test`. */
const signingAt = (baseUrl: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { address } = yield* DnsServer
      return TestServer.own({
        baseUrl,
        smtpServer: smtpServerAt(yield* Relay),
        mailDomains: {
          spf: [],
          bounceDomain: undefined,
          hostname: undefined,
          fromDomains: new Set(["everybody.test"]),
          nameServers: [address]
        },
        limits: impatient
      })
    })
  ).pipe(Layer.provideMerge(Layer.mergeAll(DnsServer.layer, Layer.effect(Relay, startSink(withLogin())))))

/** An owner of a domain that is verified, and the messages that the relay has had from them. */
const makeSender = Effect.fnUntraced(function* (domain: string) {
  const { ask } = yield* TestServer
  const dns = yield* DnsServer
  const relay = yield* Relay
  const stage = yield* makeStage
  const before = relay.accepted.length
  const made = yield* ask("POST", "/api/v1/emails/domains", { key: stage.key, json: { name: domain } })
  const { records } = made.json as { readonly records: ReadonlyArray<{ readonly zone: string }> }
  dns.zone(...records.map(({ zone }) => zone))
  yield* ask("POST", `/api/v1/emails/domains/${textOf(made, "id")}/verify`, { key: stage.key })
  return {
    ...stage,
    /** once each was tried: their headers, unfolded, by their recipients */
    headsOf: (id: string) =>
      Effect.map(stage.tried(id), () => {
        const taken = relay.accepted.slice(before).filter(({ message }) => message.includes(id))
        return new Map(taken.map(({ message, to }) => [to[0] ?? "", headersOf(message)]))
      }),
    messageTo: (address: string) => relay.accepted.findLast(({ to }) => to[0] === address)?.message ?? ""
  }
})

const headersOf = (message: string): ReadonlyMap<string, string> =>
  new Map(
    message
      .slice(0, message.indexOf("\r\n\r\n"))
      .replace(/\r\n[ \t]+/g, " ")
      .split("\r\n")
      .map((line) => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        line.slice(line.indexOf(":") + 1).trim()
      ])
  )

/** The verdict of an independent checker on each signature, and the headers that it covers. */
const makeVerdicts = Effect.map(DnsServer, ({ address }) => {
  const names = new Resolver()
  names.setServers([address])
  const resolver: DNSResolver = (name, type) => names.resolve(name, type) as Promise<Array<string>>
  return (message: string) =>
    Effect.promise(async () => {
      const options = {
        ip: "192.0.2.1",
        helo: "mx.test",
        sender: "a@b.test",
        mta: "mx.example.org",
        resolver
      }
      const { dkim } = await authenticate(Buffer.from(message, "latin1"), options)
      return dkim.results.map(({ signingDomain, signingHeaders, status }) => ({
        verdict: `${signingDomain} ${status.result}`,
        covered: signingHeaders?.keys.toLowerCase().split(/[\s:]+/) ?? []
      }))
    })
})

const oneClick = "List-Unsubscribe=One-Click"
const ownUrl = "https://shop.example/out?ada"

layer(signingAt(baseUrl), live)("mail of a verified domain", (it) => {
  it.effect(
    "is signed for each recipient; bulk mail has a link of one click of their own, and it is covered",
    () =>
      Effect.gen(function* () {
        const { headsOf, messageTo, sent } = yield* makeSender("shop.test")
        const verdicts = yield* makeVerdicts
        const id = yield* sent({
          from: "news@mail.shop.test",
          to: "ada@one.test, bob@one.test",
          headers: { "X-Campaign-ID": "May", "List-Unsubscribe": ownUrl }
        })
        const heads = yield* headsOf(id)
        const links = ["ada@one.test", "bob@one.test"].map((to) => {
          assert.strictEqual(heads.get(to)?.get("list-unsubscribe-post"), oneClick)
          return heads.get(to)?.get("list-unsubscribe") ?? ""
        })
        for (const link of links)
          assert.match(link, /^<https:\/\/signalbox\.test\/unsubscribe\/mdl_\w{22}[\w-]{24}>$/)
        assert.strictEqual(new Set(links).size, 2)
        for (const to of ["ada@one.test", "bob@one.test"]) {
          const [signature, ...others] = yield* verdicts(messageTo(to))
          assert.deepStrictEqual([signature?.verdict, others], ["shop.test pass", []])
          assert.includeMembers(signature?.covered ?? [], [
            "from",
            "subject",
            "message-id",
            "list-unsubscribe",
            "list-unsubscribe-post"
          ])
        }
      })
  )

  it.effect("goes to one who has opted out by that link if it is no bulk mail, without a link", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const { headsOf, sent, tried } = yield* makeSender("letters.test")
      const bulk = { from: "news@letters.test", to: "Eve@two.test", unsubscribe: true }
      const first = yield* headsOf(yield* sent(bulk))
      const link = first.get("Eve@two.test")?.get("list-unsubscribe")?.slice(1, -1) ?? ""
      const answer = yield* Effect.promise(() =>
        fetch(link.replace(baseUrl, url), { method: "POST", body: oneClick, redirect: "manual" })
      )
      assert.strictEqual(answer.status, 200)
      const statusOf = ({ recipients }: ReadEmail) => recipients.map(({ status }) => status)
      assert.deepStrictEqual(statusOf(yield* tried(yield* sent({ ...bulk, to: "eve@two.test" }))), [
        "suppressed"
      ])
      const receipt = yield* headsOf(yield* sent({ from: "news@letters.test", to: "Eve@two.test" }))
      assert.isFalse(receipt.get("Eve@two.test")?.has("list-unsubscribe"))
      assert.isFalse(receipt.get("Eve@two.test")?.has("list-unsubscribe-post"))
    })
  )

  it.effect("has the sender's own URL alone where it is not signed, and none where there is none", () =>
    Effect.gen(function* () {
      const { headsOf, messageTo, sent } = yield* makeSender("unused.test")
      const verdicts = yield* makeVerdicts
      const from = "news@everybody.test"
      const own = yield* headsOf(
        yield* sent({ from, to: "a@three.test", headers: { "X-Unsubscribe-URL": ownUrl } })
      )
      assert.strictEqual(own.get("a@three.test")?.get("list-unsubscribe"), `<${ownUrl}>`)
      assert.isFalse(own.get("a@three.test")?.has("list-unsubscribe-post"))
      assert.isFalse(own.get("a@three.test")?.has("x-unsubscribe-url"))
      const none = yield* headsOf(yield* sent({ from, to: "b@three.test", unsubscribe: true }))
      assert.isFalse(none.get("b@three.test")?.has("list-unsubscribe"))
      assert.deepStrictEqual(
        (yield* verdicts(messageTo("b@three.test"))).filter(({ verdict }) => verdict.includes("pass")),
        []
      )
    })
  )

  it.effect("is signed where its body is long, too", () =>
    Effect.gen(function* () {
      const { messageTo, sent, tried } = yield* makeSender("long.test")
      const verdicts = yield* makeVerdicts
      const content = Buffer.alloc(1024 * 1024, "0123456789 ").toString("base64")
      const to = ["a@long.example", "b@long.example"]
      const attachments = [{ filename: "a.bin", content }]
      yield* tried(yield* sent({ from: "shop@long.test", to: to.join(), attachments }))
      for (const address of to)
        assert.deepStrictEqual(
          (yield* verdicts(messageTo(address))).map(({ verdict }) => verdict),
          ["long.test pass"]
        )
    })
  )

  it.effect(
    "whose key cannot be read is an error in the log, tried again with growing pauses, and expires",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { logged } = yield* TestServer
        const { read, sent, tried } = yield* makeSender("spoilt.test")
        yield* sql`UPDATE mail_domains SET private_key = '\\x00' WHERE name = 'spoilt.test'`
        const isSpoilt = ({ recipients }: ReadEmail) =>
          recipients[0]?.status === "deferred" &&
          recipients[0].last_reply === "an internal error; the log of the server has it"
        let id = ""
        yield* eventually(
          "the key is not known any more",
          Effect.gen(function* () {
            id = yield* sent({ from: "shop@spoilt.test" })
            return isSpoilt(yield* tried(id))
          })
        )
        assert.strictEqual((yield* read(id)).recipients[0]?.attempts, 1)
        assert.isTrue(logged().some((line) => line.includes("An attempt at a mail failed")))
        yield* eventually(
          "the second attempt",
          Effect.andThen(
            hurry,
            Effect.map(read(id), ({ recipients }) => recipients[0]?.attempts === 2)
          )
        )
        yield* sql`UPDATE mail_messages SET created_at = now() - interval '73 hours' WHERE id = ${id}`
        yield* eventually(
          "it expires",
          Effect.andThen(
            hurry,
            Effect.map(read(id), ({ recipients }) => recipients[0]?.status === "expired")
          )
        )
      })
  )

  it.effect("may be sent by its owner alone, and says nothing of it in the log", () =>
    Effect.gen(function* () {
      const { logged } = yield* TestServer
      const owner = yield* makeSender("mine.test")
      const stranger = yield* makeStage
      const text = "the-body-of-a-mail"
      yield* owner.tried(
        yield* owner.sent({ from: "a@mine.test", to: "c@four.test", subject: "a-subject", text })
      )
      const refused = yield* stranger.post({ ...plain, from: "a@mine.test" })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [403, { error: "from: mine.test is not verified for this account" }]
      )
      const log = logged().join("\n")
      for (const secret of [owner.key, "open sesame", text, "a-subject", "PRIVATE KEY"])
        assert.notInclude(log, secret)
    })
  )
})

layer(signingAt("http://signalbox.test"), live)("mail of a server without https", (it) => {
  it.effect("has the sender's own unsubscribe URL alone, though it is signed", () =>
    Effect.gen(function* () {
      const { headsOf, messageTo, sent } = yield* makeSender("plain.test")
      const verdicts = yield* makeVerdicts
      const from = "news@plain.test"
      const own = yield* headsOf(
        yield* sent({ from, to: "a@five.test", headers: { "X-Unsubscribe-URL": ownUrl } })
      )
      assert.strictEqual(own.get("a@five.test")?.get("list-unsubscribe"), `<${ownUrl}>`)
      assert.isFalse(own.get("a@five.test")?.has("list-unsubscribe-post"))
      assert.deepStrictEqual(
        (yield* verdicts(messageTo("a@five.test"))).map(({ verdict }) => verdict),
        ["plain.test pass"]
      )
      const none = yield* headsOf(yield* sent({ from, to: "b@five.test", unsubscribe: true }))
      assert.isFalse(none.get("b@five.test")?.has("list-unsubscribe"))
    })
  )
})
