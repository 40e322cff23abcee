import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { unsealed } from "#src/mail/domains/DomainKeys.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import {
  DomainStage,
  domainStage,
  faultOf,
  makeOwner,
  newName,
  path,
  shown,
  statuses
} from "./DomainStage.ts"

const live = { excludeTestServices: true } as const

layer(domainStage, live)("domains of mail", (it) => {
  it.effect("are made with the records to publish, and verified once these are seen", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { create, read, verified } = yield* makeOwner
      const name = newName()
      const domain = yield* create(name.toUpperCase())
      assert.match(domain.id, /^dom_[0-9A-Za-z]{22}$/)
      assert.deepInclude(domain, { name, verified: false, verified_at: null, looked_up_at: null })
      assert.deepStrictEqual(domain.keys, [{ selector: "sb1", state: "signing", keep_until: null }])
      const none = yield* verified(domain.id)
      assert.deepStrictEqual(statuses(none), {
        [`dkim sb1._domainkey.${name}`]: "missing",
        [`spf ${name}`]: "missing",
        [`dmarc _dmarc.${name}`]: "missing",
        "bounce bounces.test": "missing"
      })
      assert.isFalse(none.verified)
      dns.zone(...domain.records.map(({ zone }) => zone))
      const all = yield* verified(domain.id)
      assert.deepStrictEqual(new Set(Object.values(statuses(all))), new Set(["ok"]))
      assert.isTrue(all.verified)
      assert.deepStrictEqual(yield* read(domain.id), all)
      assert.deepStrictEqual(
        all.records.map(({ found }) => found),
        all.records.map(({ value }) => [value])
      )
    })
  )

  it.effect("are verified by the DKIM record alone, over TCP too where an answer is long", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { create, verified } = yield* makeOwner
      const name = newName()
      const { id, records } = yield* create(name)
      dns.truncate(true)
      dns.txt(`sb1._domainkey.${name}`, records[0]?.value.match(/.{1,100}/g) ?? [])
      dns.txt(name, "v=spf1 mx -all")
      dns.txt(`_dmarc.${name}`, "v=DMARC1; p=never")
      const seen = yield* verified(id)
      dns.truncate(false)
      assert.isTrue(seen.verified)
      assert.deepInclude(statuses(seen), {
        [`dkim sb1._domainkey.${name}`]: "ok",
        [`spf ${name}`]: "different",
        [`dmarc _dmarc.${name}`]: "different"
      })
      const spf = seen.records.find(({ kind }) => kind === "spf")
      assert.deepInclude(spf, {
        value: "v=spf1 ip4:192.0.2.1 mx -all",
        found: ["v=spf1 mx -all"],
        problem: "it lacks ip4:192.0.2.1"
      })
    })
  )

  it.effect("have the DMARC policy of a name above them", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { create, verified } = yield* makeOwner
      const above = newName()
      const { id } = yield* create(`news.mail.${above}`)
      const key = `dmarc _dmarc.news.mail.${above}`
      dns.txt(`_dmarc.${above}`, "v=DMARC1; p=reject")
      assert.strictEqual(statuses(yield* verified(id))[key], "ok")
      dns.txt(`_dmarc.mail.${above}`, "v=DMARC1; p=wrong")
      assert.strictEqual(statuses(yield* verified(id))[key], "different")
    })
  )

  it.effect("stay as they are where DNS gives no answer, and say why", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { own, verified } = yield* makeOwner
      const { id, name } = yield* own()
      const dkim = `sb1._domainkey.${name}`
      for (const [fault, reason] of [
        ["SERVFAIL", "ServerFailure"],
        ["REFUSED", "Refused"],
        ["silent", "Timeout"]
      ] as const) {
        dns.fail(dkim, fault)
        const seen = yield* verified(id)
        assert.isTrue(seen.verified, fault)
        assert.deepInclude(seen.records[0], {
          status: "missing",
          found: [],
          problem: `DNS gave no answer (${reason})`
        })
      }
      dns.fail(dkim, undefined)
      dns.txt(dkim)
      assert.isFalse((yield* verified(id)).verified)
    })
  )

  it.effect("are verified for one owner, and for another once the first one's record is gone", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { domains } = yield* DomainStage
      const first = yield* makeOwner
      const second = yield* makeOwner
      const { id, name } = yield* first.own()
      const other = yield* second.create(name)
      assert.isFalse((yield* second.verified(other.id)).verified)
      // The first one signs with sb2 by now, so that both can be seen.
      const rotated = shown(200, yield* first.rotate(id))
      dns.zone(rotated.records[1]?.zone ?? "")
      yield* first.verified(id)
      dns.txt(`sb1._domainkey.${name}`, other.records[0]?.value ?? "")
      assert.deepStrictEqual(faultOf(yield* second.verify(other.id)), [
        409,
        `${name} is verified for another account`
      ])
      assert.isFalse((yield* second.read(other.id)).verified)
      assert.strictEqual(Object.values(statuses(yield* second.read(other.id)))[0], "ok")
      assert.deepStrictEqual(domains.signingKeys(second.id, name), [])
      dns.fail(`sb2._domainkey.${name}`, "SERVFAIL")
      assert.strictEqual((yield* second.verify(other.id)).status, 409)
      dns.fail(`sb2._domainkey.${name}`, undefined)
      dns.txt(`sb2._domainkey.${name}`)
      assert.isTrue((yield* second.verified(other.id)).verified)
      assert.isFalse((yield* first.read(id)).verified)
      assert.deepStrictEqual(domains.signingKeys(first.id, name), [])
      assert.strictEqual(domains.signingKeys(second.id, name).length, 1)
    })
  )

  it.effect("are verified for one of two owners whose looks see both keys at once", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const sql = yield* SqlClient
      const [first, second] = [yield* makeOwner, yield* makeOwner]
      for (let round = 0; round < 5; round++) {
        const name = newName()
        const [one, other] = [yield* first.create(name), yield* second.create(name)]
        yield* sql`UPDATE mail_domains SET selector = 'sb2' WHERE id = ${other.id}`
        dns.txt(`sb1._domainkey.${name}`, one.records[0]?.value ?? "")
        dns.txt(`sb2._domainkey.${name}`, other.records[0]?.value ?? "")
        const answers = yield* Effect.all([first.verify(one.id), second.verify(other.id)], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 409])
        const both = yield* sql`SELECT id FROM mail_domains WHERE name = ${name} AND verified_at IS NOT NULL`
        assert.strictEqual(both.length, 1)
      }
    })
  )

  it.effect("are not changed by a look at keys that they have no more", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { own, read, rotate, verify } = yield* makeOwner
      const { id, name } = yield* own()
      dns.fail(`_dmarc.${name}`, "silent")
      dns.questions.length = 0
      const looking = yield* Effect.forkChild(verify(id))
      while (!dns.questions.includes(`TXT _dmarc.${name}`)) yield* Effect.sleep(10)
      const rotated = shown(200, yield* rotate(id))
      dns.fail(`_dmarc.${name}`, undefined)
      assert.deepStrictEqual(faultOf(yield* Fiber.join(looking)), [
        409,
        `The keys of ${name} were changed meanwhile, try again`
      ])
      assert.deepStrictEqual(yield* read(id), rotated)
    })
  )

  it.effect("of one owner whose name servers hang leave room for those of others", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { domains } = yield* DomainStage
      const [greedy, other] = [yield* makeOwner, yield* makeOwner]
      const { id, name } = yield* greedy.create(newName())
      const { id: others } = yield* other.create(newName())
      dns.fail(`sb1._domainkey.${name}`, "silent")
      const looks = Array.from({ length: 40 }, () => Effect.exit(domains.verify(greedy.id, id)))
      const [exits, seen] = yield* Effect.all(
        [Effect.all(looks, { concurrency: "unbounded" }), domains.verify(other.id, others)],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 16)
      assert.strictEqual(seen.id, others)
      dns.fail(`sb1._domainkey.${name}`, undefined)
      yield* greedy.verified(id)
    })
  )

  it.effect("get another key, and the old one signs until the new one is seen", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const sql = yield* SqlClient
      const { domains } = yield* DomainStage
      const { id: userId, own, read, rotate, verified } = yield* makeOwner
      const { id, name } = yield* own()
      const signer = () => domains.signingKeys(userId, name).map(({ selector }) => selector)
      const answers = yield* Effect.all([rotate(id), rotate(id), rotate(id)], { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409])
      const states = (domain: { readonly keys: ReadonlyArray<{ selector: string; state: string }> }) =>
        domain.keys.map(({ selector, state }) => `${selector} ${state}`)
      const awaited = yield* verified(id)
      assert.deepStrictEqual(states(awaited), ["sb1 signing", "sb2 awaited"])
      assert.isTrue(awaited.verified)
      assert.deepStrictEqual(signer(), ["sb1"])
      const record = awaited.records.find((one) => one.name === `sb2._domainkey.${name}`)
      assert.strictEqual(record?.status, "missing")
      dns.zone(record?.zone ?? "")
      const switched = yield* verified(id)
      assert.deepStrictEqual(states(switched), ["sb2 signing", "sb1 retired"])
      assert.deepStrictEqual(signer(), ["sb2"])
      const until = switched.keys[1]?.keep_until
      assert.deepStrictEqual(faultOf(yield* rotate(id)), [
        409,
        `Mail that sb1 signed may be on its way: another key can be made from ${until} on`
      ])
      yield* sql`UPDATE mail_domains SET retired_at = now() - interval '8 days' WHERE id = ${id}`
      const again = shown(200, yield* rotate(id))
      assert.deepStrictEqual(states(again), ["sb2 signing", "sb1 awaited"])
      const [, next] = again.records
      assert.deepInclude(next, { name: `sb1._domainkey.${name}`, status: null })
      assert.strictEqual((yield* verified(id)).records[1]?.status, "different")
      dns.txt(`sb1._domainkey.${name}`, next?.value ?? "")
      assert.deepStrictEqual(states(yield* verified(id)), ["sb1 signing", "sb2 retired"])
      assert.deepStrictEqual(signer(), ["sb1"])
      assert.isTrue((yield* read(id)).verified)
    })
  )

  it.effect("are looked at again daily: one whose record is gone is no longer verified", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const sql = yield* SqlClient
      const { logged } = yield* TestServer
      const { domains } = yield* DomainStage
      const { create, own, read } = yield* makeOwner
      const [kept, lost, old] = [yield* own(), yield* own(), yield* create(newName())]
      dns.txt(`sb1._domainkey.${lost.name}`)
      yield* domains.lookAgain
      assert.isTrue((yield* read(lost.id)).verified, "its day is not over")
      yield* sql`UPDATE mail_domains SET looked_up_at = now() - interval '25 hours'
        WHERE id IN (${kept.id}, ${lost.id}, ${old.id})`
      yield* sql`UPDATE mail_domains SET unverified_at = now() - interval '31 days' WHERE id = ${old.id}`
      dns.zone(...old.records.map(({ zone }) => zone))
      yield* domains.lookAgain
      assert.isTrue((yield* read(kept.id)).verified)
      assert.isFalse((yield* read(lost.id)).verified)
      assert.isFalse((yield* read(old.id)).verified, "30 days without a record are over")
      assert.isTrue(logged().some((line) => line.includes(`${lost.name} is no longer verified for mail`)))
      dns.zone(lost.records[0]?.zone ?? "")
      yield* sql`UPDATE mail_domains SET looked_up_at = now() - interval '25 hours' WHERE id = ${lost.id}`
      yield* domains.lookAgain
      assert.isTrue((yield* read(lost.id)).verified)
    })
  )

  it.effect("say who may send from where, and which key signs", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { domains } = yield* DomainStage
      const owner = yield* makeOwner
      const stranger = yield* makeOwner
      const administrator = yield* makeUser("admin")
      const { name } = yield* owner.own()
      const below = yield* owner.own(`news.${name}`)
      const unseen = yield* owner.create(newName())
      const may = (userId: string, domain: string) => domains.mayTell(userId, domain)
      for (const domain of [name, `a.b.${name}`, "everybody.test", "x.everybody.test"])
        assert.isTrue(yield* may(owner.id, domain), domain)
      for (const domain of [unseen.name, "test", `x${name}`, `${name}.evil.test`, "a.test"])
        assert.isFalse(yield* may(owner.id, domain), domain)
      assert.isFalse(yield* may(stranger.id, name))
      assert.isTrue(yield* may(stranger.id, "everybody.test"))
      assert.isTrue(yield* may(administrator.id, name))
      assert.isFalse(yield* may("usr_0000000000000000000000", name))
      const signs = (userId: string, domain: string) =>
        domains.signingKeys(userId, domain).map((key) => key.domain)
      assert.deepStrictEqual(signs(owner.id, name), [name])
      assert.deepStrictEqual(signs(owner.id, `a.${name}`), [name])
      assert.deepStrictEqual(signs(owner.id, below.name), [below.name])
      assert.deepStrictEqual(signs(owner.id, `a.${below.name}`), [below.name])
      for (const domain of [unseen.name, "everybody.test", `x${name}`])
        assert.deepStrictEqual(signs(owner.id, domain), [], domain)
      assert.deepStrictEqual(signs(administrator.id, name), [])
      // As another process does it: this one has not heard of it.
      yield* sql`UPDATE mail_domains SET verified_at = now() WHERE id = ${unseen.id}`
      assert.isTrue(yield* may(owner.id, unseen.name))
      assert.deepStrictEqual(signs(owner.id, unseen.name), [unseen.name])
      yield* owner.remove(below.id)
      assert.deepStrictEqual(signs(owner.id, below.name), [name])
    })
  )

  it.effect("are their owner's alone, one of a name, deleted with their keys, which are sealed", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { domains } = yield* DomainStage
      const owner = yield* makeOwner
      const stranger = yield* makeOwner
      const { id, name } = yield* owner.own()
      const others: ReadonlyArray<readonly [string, string]> = [
        ["GET", ""],
        ["POST", "/verify"],
        ["POST", "/rotate"],
        ["DELETE", ""]
      ]
      for (const [method, end] of others)
        assert.deepStrictEqual(faultOf(yield* ask(method, `${path}/${id}${end}`, { key: stranger.key })), [
          404,
          "Domain not found"
        ])
      assert.deepStrictEqual((yield* ask("GET", path, { key: stranger.key })).json, { domains: [] })
      assert.deepStrictEqual((yield* ask("GET", path, { key: owner.key })).json, {
        domains: [yield* owner.read(id)]
      })
      const again = yield* ask("POST", path, { key: owner.key, json: { name } })
      assert.deepStrictEqual(faultOf(again), [409, "name: is there already"])
      const [{ bytes: secret = Buffer.alloc(0) } = {}] = yield* sql<{
        bytes: Uint8Array
      }>`SELECT bytes FROM secrets WHERE name = 'mail-domain-keys'`
      const [stored] = yield* sql<{
        private_key: Uint8Array
      }>`SELECT private_key FROM mail_domains WHERE id = ${id}`
      const sealedKey = stored?.private_key ?? new Uint8Array()
      const [signing] = domains.signingKeys(owner.id, name)
      assert.strictEqual(
        unsealed(sealedKey, { domainId: id, selector: "sb1" }, secret),
        signing?.privateKey.export({ type: "pkcs8", format: "pem" })
      )
      assert.throws(() => unsealed(sealedKey, { domainId: id, selector: "sb2" }, secret))
      assert.throws(() => unsealed(sealedKey, { domainId: `${id}x`, selector: "sb1" }, secret))
      assert.throws(() => unsealed(sealedKey, { domainId: id, selector: "sb1" }, Buffer.alloc(32)))
      assert.deepStrictEqual((yield* owner.remove(id)).json, { deleted: true })
      assert.strictEqual((yield* owner.remove(id)).status, 404)
      assert.deepStrictEqual(domains.signingKeys(owner.id, name), [])
      const [wiped] = yield* sql`SELECT length(private_key) AS length FROM mail_domains WHERE id = ${id}`
      assert.deepStrictEqual(wiped, { length: 0 })
      assert.isFalse((yield* owner.create(name)).verified)
    })
  )

  it.effect("go with their owner", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { domains } = yield* DomainStage
      const owner = yield* makeOwner
      const { id, name } = yield* owner.own()
      assert.strictEqual((yield* ask("DELETE", `/api/v1/admin/users/${owner.id}`)).status, 200)
      yield* domains.lookAgain
      assert.deepStrictEqual(
        yield* sql`SELECT deleted_at IS NOT NULL AS is_gone, length(private_key) AS length FROM mail_domains WHERE id = ${id}`,
        [{ is_gone: true, length: 0 }]
      )
      const heir = yield* makeOwner
      assert.isTrue((yield* heir.own(`x.${name}`)).verified)
    })
  )

  it.effect("take names of domains alone, and 100 of a user", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { create, id: userId, key, remove } = yield* makeOwner
      const make = (json: object) => Effect.map(ask("POST", path, { key, json }), faultOf)
      for (const name of ["localhost", "192.0.2.1", "a@b.test", "_x.test", "a b.test", "x".repeat(300)])
        assert.deepStrictEqual(yield* make({ name }), [
          400,
          `name: ${JSON.stringify(name.slice(0, 100))} is not a domain name`
        ])
      for (const name of ["", "x".repeat(301), "a.test\u0007"])
        assert.deepStrictEqual(yield* make({ name }), [
          400,
          "name: expected text of 1 to 300 characters on one line"
        ])
      assert.deepStrictEqual(yield* make({}), [400, "name: is required"])
      const { id } = yield* create(newName())
      yield* sql`INSERT INTO mail_domains (id, user_id, name, selector, public_key, private_key)
        SELECT 'dom_' || md5(${userId} || n), ${userId}, n || '.limit.test', 'sb1', '', '' FROM generate_series(1, 99) AS n`
      assert.deepStrictEqual(yield* make({ name: newName() }), [409, "A user has at most 100 mail domains"])
      yield* remove(id)
      yield* create(newName())
    })
  )
})
