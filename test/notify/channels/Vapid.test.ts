import { createECDH, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { subjectFault, Vapid } from "#streams/notify/channels/Vapid.ts"
import { verifiedToken } from "./PushBrowser.ts"

const now = Date.UTC(2026, 10, 22, 12, 0, 0, 700)
const hour = 3_600_000
const origin = "https://push.example.net"

describe("the signature of the server", () => {
  const subject = "mailto:ops@example.com"
  const secret = randomBytes(32)

  it("is a token that a push service accepts: ES256, its origin, 12 hours, the subject", async () => {
    const vapid = new Vapid({ secret, subject })
    const { claims, header, publicKey } = await verifiedToken(vapid.authorization(origin, now))
    assert.deepStrictEqual(header, { typ: "JWT", alg: "ES256" })
    assert.deepStrictEqual(claims, {
      aud: origin,
      exp: Math.floor(now / 1_000) + 12 * 3_600,
      sub: subject
    })
    assert.strictEqual(publicKey, vapid.publicKey)
    const curve = createECDH("prime256v1")
    curve.setPrivateKey(secret)
    assert.strictEqual(publicKey, curve.getPublicKey().toString("base64url"))
  })

  it("leaves the subject out where there is none", async () => {
    const { claims } = await verifiedToken(new Vapid({ secret }).authorization(origin, now))
    assert.deepStrictEqual(Object.keys(claims), ["aud", "exp"])
  })

  it("is kept for 11 hours an origin, made anew on demand, and never valid for more than 24 hours", async () => {
    const vapid = new Vapid({ secret, subject })
    const first = vapid.authorization(origin, now)
    assert.strictEqual(vapid.authorization(origin, now + 11 * hour - 1), first)
    assert.strictEqual(vapid.authorization(origin, now - 11 * hour + 1), first)
    assert.notStrictEqual(vapid.authorization("https://other.example.net", now), first)
    const anew = vapid.authorization(origin, now, true)
    assert.notStrictEqual(anew, first)
    assert.strictEqual(vapid.authorization(origin, now), anew)
    for (const jump of [11, 12, 100, -11, -1_000]) {
      const at = now + jump * hour
      const { claims } = await verifiedToken(vapid.authorization(origin, at))
      const valid = claims.exp - at / 1_000
      assert.isTrue(valid > 0 && valid < 24 * 3_600, `${jump} h`)
    }
  })

  it("is kept for 1,000 origins; the oldest one is signed anew", () => {
    const vapid = new Vapid({ secret, subject })
    const of = (n: number) => vapid.authorization(`https://${n}.example.net`, now)
    const [oldest, second] = [of(0), of(1)]
    for (let n = 2; n <= 1_000; n++) of(n)
    assert.strictEqual(of(1), second)
    assert.notStrictEqual(of(0), oldest)
  })

  it("comes of any 32 bytes, the same each time", async () => {
    const order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
    for (const odd of [
      "00".repeat(32),
      "ff".repeat(32),
      order,
      `${order.slice(0, -1)}0`,
      `${"00".repeat(31)}01`
    ]) {
      const vapid = new Vapid({ secret: Buffer.from(odd, "hex") })
      assert.strictEqual(vapid.publicKey, new Vapid({ secret: Buffer.from(odd, "hex") }).publicKey)
      await verifiedToken(vapid.authorization(origin, now))
    }
    assert.throws(() => new Vapid({ secret: randomBytes(31) }), "has 32 bytes, not 31")
  })
})

describe("the subject", () => {
  it("is one that push services take", () => {
    for (const good of [
      "mailto:ops@example.com",
      "https://signalbox.example.com",
      "https://example.com:8443/about",
      "mailto:ops@localhost.example.com"
    ])
      assert.isUndefined(subjectFault(good), good)
    for (const bad of [
      "",
      "ops@example.com",
      "example.com",
      "http://example.com",
      "mailto: ops@example.com",
      "mailto:ops",
      "mailto:@example.com",
      "mailto:a@b@c",
      "ftp://example.com",
      "https://",
      `https://example.com/${"a".repeat(255)}`
    ])
      assert.include(subjectFault(bad), "expected a mailto: or https: address", bad)
    for (const local of [
      "https://localhost",
      "https://localhost:8080/",
      "https://a.localhost",
      "https://LOCALHOST.",
      "mailto:me@localhost"
    ])
      assert.include(subjectFault(local), "Apple refuses it", local)
  })
})
