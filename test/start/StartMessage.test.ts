import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { commandsOf, mailOf, modelsOf, startMessage, startRecord, type Started } from "#src/StartMessage.ts"

const started: Started = {
  version: "1.2.3",
  url: "http://127.0.0.1:8080",
  dataDir: "/srv/it's here",
  adminKey: { _tag: "New", key: "sk_secret", userId: "usr_1" },
  loginLink: undefined,
  models: "made up",
  hasNotify: true,
  mail: "the sandbox keeps it",
  channels: "a sandbox: http://127.0.0.1:9001/",
  standby: undefined,
  proxy: undefined,
  elapsedMillis: 1234
}

describe("the start message", () => {
  it("shows the URLs, and the admin key at the first boot only", () => {
    const first = startMessage(started)
    assert.match(first, /Console +http:\/\/127\.0\.0\.1:8080\/ +\(sign in with the admin key\)\n/)
    assert.include(first, "http://127.0.0.1:8080/docs")
    assert.include(first, "sk_secret")
    assert.match(
      first,
      /Notify +http:\/\/127\.0\.0\.1:8080\/\?room=notify .*8080\/api\/v1\/messages.*8080\/mcp\)\n/
    )
    assert.notInclude(startMessage({ ...started, hasNotify: false }), "Notify ")
    const later = startMessage({ ...started, adminKey: { _tag: "Kept" } })
    assert.notInclude(later, "sk_")
    assert.match(later, /Admin key +in \/srv\/it's here\/admin\.json$/)
  })

  it("has a link that signs the administrator in, where a person looks on at the first start", () => {
    const loginLink = "http://127.0.0.1:8080/login#slt_ticket"
    assert.match(
      startMessage({ ...started, loginLink }),
      /Sign in +http:.*\/login#slt_ticket +\(once, within 15/
    )
    assert.notInclude(startMessage(started), "Sign in")
    assert.notInclude(JSON.stringify(startRecord({ ...started, loginLink })), "slt_")
  })

  it("names no admin.json where that has no key, but the way to one", () => {
    const message = startMessage({ ...started, adminKey: { _tag: "Nowhere" } })
    assert.match(message, /Admin key +not known here; .*admin key --new/)
    assert.notInclude(message, "readFileSync")
  })

  it("says where models come from, without a password", () => {
    assert.include(modelsOf(undefined), "sandbox")
    assert.strictEqual(modelsOf("https://me:secret@router.example/api/v1"), "those of router.example/api/v1")
    assert.notInclude(startMessage({ ...started, models: undefined }), "Models")
  })

  it("says at every start where mail goes: to the sandbox, which it names, by a relay without its password, or itself", () => {
    const kept = mailOf({ smtpServer: undefined, mailDirect: undefined, mailListener: undefined })
    assert.match(kept, /^the built-in sandbox keeps all of it, and none leaves this server \(SMTP_URL /)
    const login = { user: "me", password: Redacted.make("secret") }
    const smtpServer = { host: "relay.example", port: 465, tls: "implicit", login } as const
    const relayed = mailOf({ smtpServer, mailDirect: undefined, mailListener: undefined })
    assert.strictEqual(relayed, "goes out by relay.example, port 465 (SMTP_URL)")
    const direct = mailOf({
      smtpServer: undefined,
      mailDirect: { hostname: "mx.example" },
      mailListener: { port: 2525, certificate: undefined }
    })
    assert.strictEqual(
      direct,
      "goes to the mail servers of its recipients, as mx.example (MAIL_TRANSPORT); by SMTP it is taken at port 2525"
    )
    for (const adminKey of [started.adminKey, { _tag: "Kept" } as const])
      assert.match(startMessage({ ...started, adminKey }), /Mail +the sandbox keeps it\n/)
    assert.notInclude(startMessage({ ...started, mail: undefined }), "Mail ")
  })

  it("names the sandbox of channels at every start, since its port is another one each time", () => {
    for (const adminKey of [started.adminKey, { _tag: "Kept" } as const]) {
      assert.match(startMessage({ ...started, adminKey }), /Channels +a sandbox: http:\/\/127.0.0.1:9001\/\n/)
      assert.notInclude(startMessage({ ...started, adminKey, channels: undefined }), "Channels")
    }
  })

  it("is long at the first start, and five lines at most later", () => {
    assert.include(startMessage(started), "# create a site")
    const later = startMessage({ ...started, adminKey: { _tag: "Kept" }, standby: "another counts" })
    assert.isAtMost(later.split("\n").length, 5)
    assert.include(later, "is ready after 1.2 s: http://127.0.0.1:8080/")
    assert.match(later, /Analytics +standby: another counts\n/)
  })

  it("holds no key where programs read it, and the same besides", () => {
    const record = startRecord({ ...started, standby: "another counts", proxy: "unset" })
    assert.deepStrictEqual(record, {
      message: "Signalbox 1.2.3 is ready after 1.2 s",
      url: "http://127.0.0.1:8080",
      adminKey: "made; in /srv/it's here/admin.json",
      models: "made up",
      mail: "the sandbox keeps it",
      channels: "a sandbox: http://127.0.0.1:9001/",
      analytics: "standby: another counts",
      baseUrl: "unset"
    })
  })

  it("says that BASE_URL is missing behind a proxy", () => {
    for (const adminKey of [started.adminKey, { _tag: "Kept" } as const]) {
      assert.match(startMessage({ ...started, adminKey, proxy: "unset" }), /Base URL +unset\n/)
    }
  })

  it("says why another process counts", () => {
    assert.match(
      startMessage({ ...started, standby: "another counts" }),
      /Analytics +standby: another counts\n/
    )
    assert.notInclude(startMessage(started), "Analytics")
  })

  it("prints commands that survive any path and hold no key", () => {
    const [create, send, read] = commandsOf(started)
    assert.include(create, String.raw`'/srv/it'\''s here/admin.json'`)
    for (const command of [create, send, read]) assert.notInclude(command, "sk_secret")
  })
})
