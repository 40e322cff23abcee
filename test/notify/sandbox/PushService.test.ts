import { assert, describe } from "@effect/vitest"
import { payloadsOf, type SandboxSubscription } from "./SandboxClient.ts"
import type { Entry } from "#src/notify/sandbox/Inbox.ts"
import { makeForger, type Record, rsaSignature, sealed, type Token } from "./Forged.ts"
import type { Changes } from "./Sender.ts"
import { manualClock, test } from "./Stage.ts"

const now = (): number => Math.floor(Date.now() / 1_000)
const day = 24 * 3_600

describe("the sandbox's push service", () => {
  test("takes a push as services do, and shows it decrypted", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe({ applicationServerKey: sender.vapid.publicKey })
    assert.match(subscription.endpoint, /^http:\/\/127\.0\.0\.1:\d+\/push\/psh_[0-9A-Za-z]{22}$/)
    assert.strictEqual(subscription.expirationTime, null)
    const { headers, status } = await sender.push(subscription, { title: "Grüße 📎", message: "It ended." })
    assert.strictEqual(status, 201)
    assert.strictEqual(headers.get("location"), `${sandbox.origin}/push/messages/1`)
    assert.strictEqual(headers.get("ttl"), String(72 * 3_600))
    assert.strictEqual(headers.get("server"), "signalbox-sandbox-channels")
    const [entry] = await sandbox.accepted(1)
    assert.deepInclude(entry, {
      seq: 1,
      kind: "push",
      channel: subscription.id,
      accepted: true,
      status: 201,
      problem: null,
      repeated: false,
      state: "delivered"
    })
    assert.deepInclude(entry?.headers, { ttl: String(72 * 3_600), urgency: "high" })
    assert.deepInclude(entry?.vapid, { aud: sandbox.origin, sub: "mailto:admin@example.com" })
    assert.notProperty(entry?.headers, "authorization")
    assert.deepInclude(payloadsOf(entry === undefined ? [] : [entry])[0], {
      title: "Grüße 📎",
      text: "It ended."
    })
  })

  /** the change of a good push, the status and the begin of the problem */
  const refusals: ReadonlyArray<readonly [string, Changes, number, RegExp]> = [
    ["no Authorization", { headers: { authorization: undefined } }, 401, /^authorization: is required/],
    ["another scheme", { headers: { authorization: "Bearer x" } }, 401, /^authorization: expected vapid/],
    ["no key", { headers: { authorization: "vapid t=a.b.c" } }, 401, /^authorization: expected vapid/],
    ["no TTL", { headers: { ttl: undefined } }, 400, /^ttl: /],
    ["a TTL that is no number", { headers: { ttl: "-1" } }, 400, /^ttl: /],
    ["a TTL with decimals", { headers: { ttl: "1.5" } }, 400, /^ttl: /],
    ["an unknown Urgency", { headers: { urgency: "urgent" } }, 400, /^urgency: /],
    ["a long Topic", { headers: { topic: "x".repeat(33) } }, 400, /^topic: /],
    ["a Topic that is no base64url", { headers: { topic: "a b" } }, 400, /^topic: /],
    ["a body of 4,097 bytes", { body: new Uint8Array(4_097) }, 413, /^body: at most 4096 bytes/],
    ["the older coding", { headers: { "content-encoding": "aesgcm" } }, 415, /^content-encoding: /],
    ["no coding", { headers: { "content-encoding": undefined } }, 415, /^content-encoding: /],
    ["a body that is no record", { body: new Uint8Array(20) }, 400, /no header of aes128gcm/],
    ["a key id that is no point", { body: new Uint8Array(200) }, 400, /no point of P-256/]
  ]
  test("refuses what a push service refuses, and says why", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    for (const [name, changes, status, problem] of refusals) {
      const told = await sender.push(subscription, {}, changes)
      assert.strictEqual(told.status, status, name)
      assert.match(JSON.parse(told.text).error, problem, name)
    }
    const { accepted, entries, received } = await sandbox.inbox()
    assert.deepStrictEqual([received, accepted], [refusals.length, 0])
    assert.deepStrictEqual(
      entries.map(({ accepted: isAccepted, payload, status }) => [isAccepted, payload, status]),
      refusals.map(([, , status]) => [false, null, status])
    )
  })

  test("checks VAPID: signature, aud, exp of at most 24 h, sub, and the subscription's key", async ({
    sandbox,
    sender
  }) => {
    const forger = makeForger()
    const own = await sandbox.subscribe({ applicationServerKey: forger.publicKey })
    const others = await sandbox.subscribe({ applicationServerKey: sender.vapid.publicKey })
    const good = { aud: sandbox.origin, exp: now() + day - 60, sub: "mailto:a@example.com" }
    const without = (name: string) =>
      Object.fromEntries(Object.entries(good).filter(([claim]) => claim !== name))
    const cases: ReadonlyArray<readonly [string, Token, RegExp | undefined, SandboxSubscription?]> = [
      ["good", { claims: good }, undefined],
      ["without sub", { claims: without("sub") }, undefined],
      ["sub is https", { claims: { ...good, sub: "https://example.com/" } }, undefined],
      ["exp is in 24 h", { claims: { ...good, exp: now() + day - 1 } }, undefined],
      ["exp is later", { claims: { ...good, exp: now() + day + 60 } }, /exp: more than 86400 s/],
      ["exp is over", { claims: { ...good, exp: now() - 1 } }, /exp: is over/],
      ["exp is text", { claims: { ...good, exp: String(now() + 60) } }, /exp: is required/],
      ["without exp", { claims: without("exp") }, /exp: is required/],
      ["without aud", { claims: without("aud") }, /aud: is required/],
      ["aud of another", { claims: { ...good, aud: "https://push.example" } }, /aud: expected http:/],
      ["aud with a path", { claims: { ...good, aud: own.endpoint } }, /aud: expected http:/],
      ["sub without scheme", { claims: { ...good, sub: "a@example.com" } }, /sub: /],
      ["sub of localhost", { claims: { ...good, sub: "mailto:a@localhost" } }, /sub: .*localhost/],
      ["sub is a number", { claims: { ...good, sub: 1 } }, /sub: expected text/],
      ["alg none", { claims: good, header: { alg: "none" }, signature: "" }, /algorithm ES256/],
      ["alg HS256", { claims: good, header: { alg: "HS256" } }, /algorithm ES256/],
      ["a header that is a list", { claims: good, header: [] }, /algorithm ES256|a JWT/],
      ["claims that are text", { claims: "x" }, /expected a JWT/],
      ["no signature", { claims: good, signature: "" }, /not signed by k/],
      [
        "a signature of zeros",
        { claims: good, signature: Buffer.alloc(64).toString("base64url") },
        /not signed by k/
      ],
      ["a signature of RSA", { claims: good, signature: rsaSignature() }, /not signed by k/],
      ["a key of another", { claims: good, k: sender.vapid.publicKey }, /not signed by k/],
      [
        "a key that is no point",
        { claims: good, k: Buffer.alloc(65, 4).toString("base64url") },
        /k: expected a point/
      ],
      ["a short key", { claims: good, k: "BA" }, /k: expected a point/],
      ["another's subscription", { claims: good }, /another applicationServerKey/, others]
    ]
    for (const [name, token, problem, subscription = own] of cases) {
      const headers = { authorization: forger.authorization(token) }
      const { status, text } = await sender.push(subscription, {}, { headers })
      assert.strictEqual(status, problem === undefined ? 201 : 403, `${name}: ${text}`)
      if (problem === undefined) continue
      const { error, reason } = JSON.parse(text)
      assert.match(error, problem, name)
      assert.match(reason, /^(BadJwtToken|ExpiredJwtToken|VapidPkHashMismatch)$/, name)
    }
    const token = forger.authorization({ claims: good })
    const variants = [token.replace("vapid", "Vapid"), token.replace(/t=(\S+), k=(\S+)/, 'k="$2",t=$1')]
    for (const authorization of variants)
      assert.strictEqual(
        (await sender.push(own, {}, { headers: { authorization } })).status,
        201,
        authorization
      )
  })

  const later = manualClock()
  test(
    "knows a token no longer than it is valid",
    async ({ sandbox, sender }) => {
      const request = sender.pushOf(await sandbox.subscribe())
      assert.strictEqual((await sender.post(request)).status, 201)
      later.pass(13 * 3_600_000)
      const told = await sender.post(request)
      assert.deepStrictEqual([told.status, JSON.parse(told.text).reason], [403, "ExpiredJwtToken"])
    },
    later
  )

  test("decrypts one last record with padding, for this browser alone", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    const other = await sandbox.subscribe()
    const text = Buffer.from("hello")
    const padded = (...after: ReadonlyArray<number>): Buffer => Buffer.concat([text, Buffer.from(after)])
    const cases: ReadonlyArray<readonly [string, Record, RegExp | undefined]> = [
      ["no padding", { padded: padded(2) }, undefined],
      ["padding", { padded: padded(2, 0, 0, 0) }, undefined],
      ["record size of its own length", { padded: padded(2), recordBytes: 22 }, undefined],
      ["a huge record size", { padded: padded(2), recordBytes: 0xffff_ffff }, undefined],
      ["delimiter of records that go on", { padded: padded(1) }, /no delimiter/],
      ["no delimiter", { padded: Buffer.alloc(9) }, /no delimiter/],
      ["nothing at all", { padded: Buffer.alloc(0) }, /no record/],
      ["more than one record", { padded: padded(2), recordBytes: 21 }, /more than one record/],
      ["a record size of 17", { padded: padded(2), recordBytes: 17 }, /more than one record/],
      ["another browser's secret", { padded: padded(2), auth: other.keys.auth }, /not encrypted for this/],
      ["no key id", { padded: padded(2), keyId: Buffer.alloc(0) }, /no point of P-256/],
      ["a key id outside the curve", { padded: padded(2), keyId: Buffer.alloc(65, 4) }, /no point of P-256/]
    ]
    for (const [name, record, problem] of cases) {
      const told = await sender.push(subscription, {}, { body: sealed(subscription, record) })
      assert.strictEqual(told.status, problem === undefined ? 201 : 400, `${name}: ${told.text}`)
      if (problem !== undefined) assert.match(JSON.parse(told.text).error, problem, name)
    }
    const taken = await sandbox.accepted(4)
    assert.deepStrictEqual(
      taken.map(({ payload }) => payload),
      ["hello", "hello", "hello", "hello"]
    )
    assert.strictEqual(
      (await sender.push(other, {}, { body: sealed(subscription, { padded: padded(2) }) })).status,
      400
    )
  })

  test("takes a push without a body", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    const changes = { body: new Uint8Array(), headers: { "content-encoding": undefined } }
    assert.strictEqual((await sender.push(subscription, {}, changes)).status, 201)
    assert.strictEqual((await sandbox.accepted(1))[0]?.payload, null)
  })

  test("answers 410 for an expired subscription and 404 for an unknown one, before all else", async ({
    sandbox,
    sender
  }) => {
    const subscription = await sandbox.subscribe()
    await sandbox.changeSubscription(subscription.id, { state: "expired" })
    const bare = { headers: { authorization: undefined, ttl: undefined } }
    assert.strictEqual((await sender.push(subscription, {}, bare)).status, 410)
    await sandbox.changeSubscription(subscription.id, { state: "active" })
    assert.strictEqual((await sender.push(subscription)).status, 201)
    await sandbox.ask("DELETE", `/push/subscriptions/${subscription.id}`)
    assert.strictEqual((await sender.push(subscription, {}, bare)).status, 404)
  })

  const minute = manualClock()
  test(
    "has messages wait for an offline browser: Topic replaces, TTL ends",
    async ({ sandbox, sender }) => {
      const subscription = await sandbox.subscribe({ online: false })
      const push = async (message: string, deliveryId: string, headers: Changes["headers"] = {}) => {
        const told = await sender.push(subscription, { message, deliveryId }, { headers })
        assert.strictEqual(told.status, 201, told.text)
        return told.headers
      }
      await push("first", "dlv_a")
      await push("second", "dlv_b")
      await push("first, again", "dlv_a")
      await push("without a topic", "x", { topic: undefined })
      await push("and one more", "x", { topic: undefined })
      await push("now or never", "dlv_c", { ttl: "0" })
      await push("a minute", "dlv_d", { ttl: "60" })
      const location = (await push("not at all", "dlv_e")).get("location")
      const states = async () => {
        const { entries } = await sandbox.inbox()
        return entries.map(({ state }) => state)
      }
      const waiting: ReadonlyArray<Entry["state"]> = [
        "replaced",
        "waiting",
        "waiting",
        "waiting",
        "waiting",
        "expired",
        "waiting"
      ]
      assert.deepStrictEqual(await states(), [...waiting, "waiting"])
      await sandbox.ask("DELETE", String(location).slice(sandbox.origin.length))
      minute.pass(60_000)
      assert.deepStrictEqual(await states(), [...waiting.slice(0, 6), "expired", "cancelled"])
      await sandbox.changeSubscription(subscription.id, { online: true })
      const at = "delivered" as const
      assert.deepStrictEqual(await states(), ["replaced", at, at, at, at, "expired", "expired", "cancelled"])
      const late = await fetch(String(location), { method: "DELETE" })
      assert.strictEqual(late.status, 404)
    },
    minute
  )

  test("says so where the same topic came before", async ({ sandbox, sender }) => {
    const [one, two] = [await sandbox.subscribe(), await sandbox.subscribe()]
    await sandbox.order({ cut: "after" })
    const request = sender.pushOf(one, { deliveryId: "dlv_a" })
    await sender.post(request).then(
      () => assert.fail("it was cut"),
      () => undefined
    )
    await sender.post(request)
    await sender.push(one, { deliveryId: "dlv_b" })
    await sender.push(two, { deliveryId: "dlv_a" })
    const { entries, repeated } = await sandbox.inbox()
    assert.deepStrictEqual(
      entries.map((entry) => entry.repeated),
      [false, true, false, false]
    )
    assert.strictEqual(repeated, 1)
  })

  test("lowers a TTL of more than 28 days, and says so", async ({ sandbox, sender }) => {
    const { headers, status } = await sender.push(
      await sandbox.subscribe(),
      {},
      { headers: { ttl: "9999999999" } }
    )
    assert.deepStrictEqual([status, headers.get("ttl")], [201, String(28 * day)])
  })

  test("makes many browsers at once, and lists them", async ({ sandbox }) => {
    const made = await sandbox.subscribeMany(30)
    assert.strictEqual(new Set(made.map(({ keys }) => keys.p256dh)).size, 30)
    const list = await sandbox.ask<{ total: number; subscriptions: ReadonlyArray<{ id: string }> }>(
      "GET",
      "/push/subscriptions?after=10&limit=5"
    )
    assert.strictEqual(list.total, 30)
    assert.deepStrictEqual(
      list.subscriptions.map(({ id }) => id),
      made.slice(10, 15).map(({ id }) => id)
    )
    await sandbox.ask("DELETE", "/push/subscriptions")
    assert.deepInclude(await sandbox.ask<object>("GET", "/push/subscriptions"), { total: 0 })
  })
})
