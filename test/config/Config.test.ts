import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { AppConfig, ConfigInvalid, decode } from "#src/Config.ts"
import { limits } from "#src/Limits.ts"
import { rooms } from "#src/Rooms.ts"

const names = rooms.map(({ name }) => name)

const decoded = (environment: Record<string, string>) =>
  Effect.runSync(decode(environment, "/srv/box", names))

const faultsOf = (environment: Record<string, string>): ReadonlyArray<string> => {
  const error = Effect.runSync(Effect.flip(decode(environment, "/srv/box", names)))
  assert.instanceOf(error, ConfigInvalid)
  return error.faults.map((fault) => fault.variable)
}

/** One variable, values just inside and just outside of what it takes. */
const takes = (variable: string, inside: ReadonlyArray<string>, outside: ReadonlyArray<string>) =>
  it(`takes ${variable} ${inside.join(" ")} and refuses ${outside.join(" ")}`, () => {
    for (const value of inside) decoded({ [variable]: value })
    for (const value of outside) assert.deepStrictEqual(faultsOf({ [variable]: value }), [variable], value)
  })

describe("the environment", () => {
  it("has a default for everything", () => {
    const config = decoded({})
    assert.strictEqual(config.port, 8080)
    assert.strictEqual(config.host, "127.0.0.1")
    assert.strictEqual(config.dataDir, "/srv/box/.data")
    assert.strictEqual(config.databaseUrl, undefined)
    assert.deepStrictEqual(
      [...config.rooms],
      ["accounts", "analytics", "llm", "agents", "notify", "files", "mail"]
    )
    assert.strictEqual(config.maxFileSizeBytes, 100 * 1024 * 1024)
    assert.strictEqual(config.rateLimitMode, "429")
    assert.strictEqual(config.trustProxy, 0)
    assert.isFalse(config.egressAllow.opensName("localhost", 80))
    assert.deepStrictEqual(config.limits, limits)
  })

  it("sets how long models may take; the last one asked has at least as long as the others", () => {
    const { limits: set } = decoded({ FIRST_TOKEN_SECONDS: "200", PLAIN_ANSWER_SECONDS: "7" })
    assert.deepStrictEqual(
      [set.firstTokenMillis, set.lastFirstTokenMillis, set.plainAnswerMillis],
      [200_000, 200_000, 7_000]
    )
  })

  it("counts an empty variable as unset", () => {
    assert.strictEqual(decoded({ PORT: "", DATABASE_URL: "  ", CORS_ORIGINS: "" }).port, 8080)
  })

  takes("PORT", ["0", "1", "65535"], ["-1", "65536", "80a", "1.5", "0x50"])
  takes("HOST", ["0.0.0.0", "::1", "box.example"], ["a b", "http://box"])
  takes("BASE_URL", ["https://box.example", "http://127.0.0.1:8080/x"], ["box.example", "ftp://box.example"])
  takes(
    "DATABASE_URL",
    ["postgres://u:p@h/d", "postgresql://h:5432/d"],
    ["mysql://h/d", "h/d", "postgres:///d"]
  )
  takes("CLICKHOUSE_URL", ["http://h:8123", "https://u:p@h"], ["tcp://h:9000", "h"])
  takes(
    "BLOBS_URL",
    ["file:///srv/blobs", "file:///srv/bl%20obs/"],
    ["/srv/blobs", "file://", "file:///", "file://host/blobs", "s3://k:s@h/b", "file:///a%2Fb"]
  )
  it("has one way for mail: the sandbox, the relay of SMTP_URL, or by MAIL_TRANSPORT the recipients' servers", () => {
    const wayOf = (environment: Record<string, string>) => {
      const { mailDirect, smtpServer } = decoded(environment)
      return [smtpServer?.host, mailDirect?.hostname]
    }
    const SMTP_URL = "smtps://u:p@relay.example"
    const MAIL_HOSTNAME = "mx.example.com"
    assert.deepStrictEqual(wayOf({ MAIL_HOSTNAME }), [undefined, undefined])
    assert.deepStrictEqual(wayOf({ SMTP_URL, MAIL_HOSTNAME }), ["relay.example", undefined])
    assert.deepStrictEqual(wayOf({ SMTP_URL, MAIL_TRANSPORT: "sandbox" }), [undefined, undefined])
    const direct = { SMTP_URL, MAIL_HOSTNAME, MAIL_TRANSPORT: "direct" }
    assert.deepStrictEqual(wayOf(direct), [undefined, MAIL_HOSTNAME])
    assert.deepStrictEqual(faultsOf({ MAIL_TRANSPORT: "direct" }), ["MAIL_HOSTNAME"])
    assert.deepStrictEqual(faultsOf({ MAIL_TRANSPORT: "direct", MAIL_HOSTNAME: "mx" }), ["MAIL_HOSTNAME"])
    assert.deepStrictEqual(faultsOf({ MAIL_TRANSPORT: "smtp" }), ["SMTP_URL"])
  })
  takes("MAIL_TRANSPORT", ["sandbox"], ["relay", "Direct"])
  takes("MAIL_ON_UNKNOWN", ["resend", "hold"], ["drop", "Hold"])
  for (const variable of ["MAIL_RATE_PER_MINUTE", "MAIL_PER_DAY", "MAIL_RETRY_HOURS"])
    takes(variable, ["1", "1000"], ["0", "-1", "1.5", "many"])
  takes("TRASH_DAYS", ["0", "365"], ["-1", "36501", "ever"])
  takes("FILES_QUOTA", ["1", "10GB"], ["0", "-1", "much"])
  takes("ATTACHMENTS_DIR", ["off", "./attachments", "/srv/attachments"], [])
  takes("MAX_ATTACHMENT_SIZE", ["1", "2GB"], ["0", "-1", "much"])
  takes("ATTACHMENT_QUOTA", ["1", "20GB"], ["0", "-1", "much"])
  takes("MESSAGE_DAYS", ["1", "90", "36500"], ["0", "36501", "1.5", "ever"])
  it("has a place for attachments: with the blobs, in a directory, or nowhere", () => {
    const place = (text: string) => decoded({ ATTACHMENTS_DIR: text }).attachmentsDirectory
    assert.strictEqual(place(""), undefined)
    assert.strictEqual(place("OFF"), null)
    assert.strictEqual(place("/srv/attachments"), "/srv/attachments")
  })
  takes("FILES_MIN_FREE", ["1", "500MB"], ["0", "1TB"])
  takes("REDIS_URL", ["redis://h", "rediss://:p@h:6379/1"], ["http://h"])
  const member = {
    CLUSTER_ADDRESS: "10.0.0.5:7000",
    CLUSTER_SECRET: "0123456789abcdef0123456789abcdef",
    DATABASE_URL: "postgres://h/d"
  }
  it("takes what a machine of several needs, all of it or nothing", () => {
    assert.deepInclude(decoded(member).cluster, { host: "10.0.0.5", port: 7000 })
    assert.deepInclude(decoded({ ...member, CLUSTER_ADDRESS: "[fd00::5]:1" }).cluster, { host: "fd00::5" })
    assert.strictEqual(decoded({}).cluster, undefined)
    for (const variable of ["CLUSTER_ADDRESS", "CLUSTER_SECRET", "DATABASE_URL"] as const)
      assert.deepStrictEqual(faultsOf({ ...member, [variable]: "" }), [variable])
    assert.deepStrictEqual(faultsOf({ ...member, CLUSTER_SECRET: "x".repeat(31) }), ["CLUSTER_SECRET"])
    for (const address of [
      "10.0.0.5",
      ":7000",
      "h:0",
      "h:65536",
      "[10.0.0.5]:7000",
      "http://h:7000",
      "fd00::5:7000"
    ])
      assert.deepStrictEqual(faultsOf({ ...member, CLUSTER_ADDRESS: address }), ["CLUSTER_ADDRESS"], address)
    assert.notInclude(String(decoded(member).cluster?.secret), "0123")
  })
  for (const wait of [
    "UPSTREAM_CONNECT",
    "FIRST_TOKEN",
    "LAST_FIRST_TOKEN",
    "STREAM_SILENCE",
    "PLAIN_ANSWER"
  ])
    takes(`${wait}_SECONDS`, ["1", "3600"], ["0", "3601", "1.5"])
  takes("CLUSTER_SILENT_SECONDS", ["3", "300"], ["2", "301", "1.5"])
  takes("UPSTREAM_COST_MAX_USD", ["10", "0.5", "0"], ["-1", "ten", "10001", "1e300"])
  takes("UPSTREAM_URL", ["https://openrouter.ai/api/v1"], ["openrouter.ai"])
  takes("ROOMS", ["analytics", "analytics, accounts"], ["analytic", "analytics,,accounts", "*"])
  takes("MAX_FILE_SIZE", ["1", "100MB", "1.5 gb", "1024GB"], ["0", "-1", "100XB", "MB", "1025GB", "1e9"])
  takes("LOG_LEVEL", ["info", "Debug", "warning", "none"], ["loud"])
  takes("GEOIP_DB", [import.meta.filename], ["/nowhere/at.mmdb"])
  takes(
    "TRUST_PROXY",
    ["0", "1", "32", "10.0.0.0/8", "::1, fd00::/8"],
    ["33", "-1", "10.0.0.0/33", "10.0.0/8", "::1/129", "x"]
  )
  takes(
    "VAPID_SUBJECT",
    ["mailto:ops@example.com", "https://example.com"],
    ["ops@example.com", "http://example.com", "https://localhost", "mailto:a b@example.com"]
  )
  takes(
    "TELEGRAM_BOT_TOKEN",
    ["123456789:AAF_x-0123456789012345678901234567"],
    ["AAF_x-0123456789012345678901234567", "123456789", "123456789:short", "12:AAF x0123456789012345678901"]
  )
  takes("TELEGRAM_API_URL", ["https://api.telegram.org", "http://127.0.0.1:8081/"], ["api.telegram.org"])
  takes(
    "NOTIFY_SANDBOX",
    ["auto", "on", "off", "1", "9001", "65535", "http://127.0.0.1:9001", "http://127.0.0.1:9001/"],
    [
      "yes",
      "0",
      "65536",
      "-1",
      "http://127.0.0.1",
      "http://127.0.0.1:0",
      "http://127.0.0.1:9001/inbox",
      "http://127.0.0.2:9001",
      "http://localhost:9001",
      "https://127.0.0.1:9001"
    ]
  )
  takes(
    "EGRESS_ALLOW",
    [
      "hooks.corp.test",
      "*.corp.test:8080, 10.1.2.3:25",
      "10.0.0.0/8:8080,127.0.0.1",
      "::1,fd00::/8",
      "[::1]:25,[fd00::/8]"
    ],
    [
      "*",
      "*.10.0.0.1",
      "a,,b",
      "https://a.test",
      "a.test/8",
      "a.test:0",
      "a.test:65536",
      "10.0.0.0/33",
      "10.0.0.0/",
      "10.0.0/8/8",
      "::1:8080/129",
      "[::1",
      "[10.0.0.1]:80",
      "[a.test]:80",
      "fe80::1%eth0",
      "u@a.test"
    ]
  )
  takes(
    "CORS_ORIGINS",
    ["https://example.com", "https://a.example,http://localhost:3000"],
    ["*", "example.com", "https://example.com/path", "ftp://example.com"]
  )
  takes("RATE_LIMIT_MODE", ["429", "block"], ["403", "Block"])
  takes("RATE_PER_MINUTE_MAX", ["1", "1000000"], ["0", "1000001", "many"])
  takes("FILES_RATE_PER_HOUR", ["1", "1000000000"], ["0", "many"])
  takes("OTEL_EXPORTER_OTLP_ENDPOINT", ["http://127.0.0.1:4318/"], ["127.0.0.1:4318"])

  it("reads values into their types", () => {
    const config = decoded({
      BASE_URL: "https://box.example/",
      DATA_DIR: "data",
      MAX_FILE_SIZE: "2MB",
      TRUST_PROXY: "10.0.0.0/8,::1",
      CORS_ORIGINS: "https://A.example",
      ROOMS: "analytics,accounts",
      LOG_LEVEL: "debug"
    })
    assert.strictEqual(config.baseUrl, "https://box.example")
    assert.strictEqual(config.dataDir, "/srv/box/data")
    assert.strictEqual(config.maxFileSizeBytes, 2 * 1024 * 1024)
    assert.deepStrictEqual(config.trustProxy, [
      { address: "10.0.0.0", prefix: 8, family: "ipv4" },
      { address: "::1", prefix: 128, family: "ipv6" }
    ])
    assert.deepStrictEqual([...config.corsOrigins], ["https://a.example"])
    assert.deepStrictEqual([...config.rooms], ["analytics", "accounts"])
    assert.strictEqual(config.logLevel, "Debug")
  })

  it("reports every fault at once, by the variable's name, with exit code 78", () => {
    const error = Effect.runSync(
      Effect.flip(decode({ PORT: "x", ROOMS: "y", MAX_FILE_SIZE: "z" }, "/", names))
    )
    assert.deepStrictEqual(
      error.faults.map((fault) => fault.variable),
      ["PORT", "ROOMS", "MAX_FILE_SIZE"]
    )
    assert.strictEqual(error.exitCode, 78)
    for (const variable of ["PORT", "ROOMS", "MAX_FILE_SIZE"]) assert.include(error.message, variable)
  })

  it("prints no password", () => {
    const config = decoded({ DATABASE_URL: "postgres://u:hunter2@h/d", UPSTREAM_API_KEY: "hunter2" })
    assert.notInclude(`${JSON.stringify(config)} ${String(config.databaseUrl)}`, "hunter2")
    assert.strictEqual(config.databaseUrl && Redacted.value(config.databaseUrl), "postgres://u:hunter2@h/d")
  })

  it("keeps a wrong secret URL out of the report", () => {
    assert.notInclude(
      Effect.runSync(Effect.flip(decode({ DATABASE_URL: "mysql://u:hunter2@h/d" }, "/", names))).message,
      "hunter2"
    )
  })

  it.effect("gives tests defaults with single changes", () =>
    Effect.gen(function* () {
      const config = yield* AppConfig
      assert.strictEqual(config.port, 0)
      assert.strictEqual(config.limits.batchRows, 10)
      assert.strictEqual(config.limits.ratePerMinute, 600)
    }).pipe(Effect.provide(AppConfig.layerOf({ port: 0, limits: { batchRows: 10 } })))
  )
})
