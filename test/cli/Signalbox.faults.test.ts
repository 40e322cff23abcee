import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { TestServer } from "#test/harness/TestServer.ts"
import { freePort } from "#test/harness/ServerProcess.ts"
import { signalbox } from "./Signalbox.ts"

const run = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(args, env ?? { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }))
  )

const emptyDirectory = Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-cli-")))

layer(TestServer.shared, { excludeTestServices: true })("signalbox", (it) => {
  it.effect("tells a person or a program how the server and its components are", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const words = yield* run(["status"])
      assert.deepStrictEqual([words.code, words.err], [0, ""])
      assert.include(words.out, `${url}  ready, version `)
      assert.match(words.out, /^ {2}postgres: up$/m)
      const { health, readiness } = JSON.parse((yield* run(["status", "--json"])).out)
      assert.strictEqual(health.message, "OK")
      assert.deepStrictEqual(readiness.components.postgres, { status: "up" })
    })
  )

  it.effect("makes, lists and deletes users", () =>
    Effect.gen(function* () {
      const made = yield* run(["users", "create", "ada@example.org", "--name", "Ada", "--json"])
      const user = JSON.parse(made.out)
      assert.deepInclude(user, { email: "ada@example.org", name: "Ada", role: "user" })
      const listed = yield* run(["users", "list"])
      assert.match(listed.out, /^ID +EMAIL +NAME +ROLE +CREATED AT$/m)
      assert.include(listed.out, user.id)
      const taken = yield* run(["users", "create", "ADA@example.org"])
      assert.deepStrictEqual([taken.code, taken.out], [1, ""])
      assert.include(taken.err, "email: already taken")
      const link = yield* run(["users", "login-link", user.id])
      assert.match(link.out, /^http:\S+\/login#slt_[0-9A-Za-z]{40}\nIt works once, until \S+Z\.$/m)
      const ticket = /slt_\w+/.exec(link.out)?.[0]
      const { ask } = yield* TestServer
      const opened = yield* ask("POST", "/api/session", { key: "", json: { ticket } })
      assert.deepInclude((opened.json as { readonly user: object }).user, { id: user.id })
      assert.strictEqual((yield* run(["users", "delete", user.id])).code, 0)
      const gone = yield* run(["users", "delete", user.id])
      assert.deepStrictEqual([gone.code, gone.err.includes("User not found")], [1, true])
    })
  )

  it.effect("makes a key, shows it once, lists its prefix only, and revokes it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const reader = yield* run(["keys", "create", "reader", "--scope", "read", "--json"])
      assert.deepInclude(JSON.parse(reader.out), { kind: "account", scopes: ["read"] })
      const scope = ["--model", "a/b", "--model", "c/d", "--spend-limit", "2.5"]
      const made = yield* run([
        "keys",
        "create",
        "laptop",
        "--kind",
        "router",
        "--rate",
        "5",
        "--json",
        ...scope
      ])
      const { id, key, ...fields } = JSON.parse(made.out)
      assert.deepInclude(fields, { models: ["a/b", "c/d"], collections: null, spend_limit_usd: 2.5 })
      const health = yield* ask("GET", "/api/v1/health", { key })
      assert.strictEqual(health.headers.get("ratelimit-limit"), "5")
      const listed = yield* run(["keys", "list"])
      assert.include(listed.out, key.slice(0, 12))
      assert.notInclude(listed.out, key)
      assert.strictEqual((yield* run(["keys", "revoke", id])).code, 0)
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key })).status, 401)
    })
  )

  it.effect("makes a site and shows its secret", () =>
    Effect.gen(function* () {
      const made = yield* run(["sites", "create", "example.net", "--json"])
      assert.strictEqual(made.code, 0, made.err)
      const { secret, site } = JSON.parse(made.out)
      assert.match(secret, /^ssk_/)
      assert.include((yield* run(["sites", "list"])).out, site.id)
    })
  )

  it.effect("sets how long a site keeps its statistics, and begins them anew", () =>
    Effect.gen(function* () {
      const made = yield* run(["sites", "create", "example.net", "--json"])
      const { id } = JSON.parse(made.out).site
      const kept = yield* run(["sites", "retention", id, "--days", "30"])
      assert.deepStrictEqual([kept.code, kept.out.trim()], [0, `${id} keeps 30 days; older ones are deleted`])
      assert.include((yield* run(["sites", "retention", id])).out, `All days of ${id} are kept`)
      const wrong = yield* run(["sites", "retention", id, "--days", "0"])
      assert.notStrictEqual(wrong.code, 0)
      assert.include(wrong.err, "retentionDays")
      const reset = yield* run(["sites", "reset", id])
      assert.match(reset.out, new RegExp(`^The statistics of ${id} begin at 2\\d{3}-`))
    })
  )

  it.effect("finds server and key in DATA_DIR/admin.json, and takes SIGNALBOX_KEY before it", () =>
    Effect.gen(function* () {
      const { adminKey, url } = yield* TestServer
      const dataDir = yield* emptyDirectory
      yield* Effect.promise(() => writeFile(join(dataDir, "admin.json"), JSON.stringify({ url, adminKey })))
      assert.strictEqual((yield* run(["status"], { DATA_DIR: dataDir })).code, 0)
      const refused = yield* run(["status"], { DATA_DIR: dataDir, SIGNALBOX_KEY: "sk_wrong" })
      assert.deepStrictEqual([refused.code, refused.out], [77, ""])
      assert.include(refused.err, "Invalid or missing API key")
    })
  )

  it.effect("exits 78 and says what to do where no server is known", () =>
    Effect.gen(function* () {
      const dataDir = yield* emptyDirectory
      const unknown = yield* run(["users", "list"], { DATA_DIR: dataDir })
      assert.strictEqual(unknown.code, 78)
      assert.include(unknown.err, `There is no ${join(dataDir, "admin.json")}`)
      assert.include(unknown.err, "npm start")
      yield* Effect.promise(() => writeFile(join(dataDir, "admin.json"), "{"))
      const broken = yield* run(["users", "list"], { DATA_DIR: dataDir })
      assert.deepStrictEqual([broken.code, broken.err.includes("is not what a server writes")], [78, true])
    })
  )

  it.effect("exits 69 and names the address where nobody answers", () =>
    Effect.gen(function* () {
      const url = `http://127.0.0.1:${yield* Effect.promise(freePort)}`
      const away = yield* run(["status"], { SIGNALBOX_URL: url, SIGNALBOX_KEY: "sk_x" })
      assert.strictEqual(away.code, 69)
      assert.include(away.err, `No answer from ${url}: connect ECONNREFUSED`)
      assert.notInclude(away.err, "sk_x")
      const nowhere = yield* run(["status"], { SIGNALBOX_URL: "nonsense", SIGNALBOX_KEY: "sk_x" })
      assert.deepStrictEqual([nowhere.code, nowhere.err.includes("nonsense is not the address")], [78, true])
    })
  )

  it.effect("shows nothing of a key with a line break, and exits 78", () =>
    Effect.gen(function* () {
      const { adminKey, url } = yield* TestServer
      const broken = yield* run(["status"], { SIGNALBOX_URL: url, SIGNALBOX_KEY: `${adminKey}\nx` })
      assert.strictEqual(broken.code, 78)
      assert.include(broken.err, "SIGNALBOX_KEY has a character that no key has, such as a line break.")
      assert.notInclude(broken.err, adminKey)
    })
  )

  it.effect("exits 2 and names what was misused, and 1 for what is refused", () =>
    Effect.gen(function* () {
      const kind = yield* run(["keys", "create", "a", "--kind", "site"])
      assert.deepStrictEqual([kind.code, /kind/.test(kind.err)], [2, true])
      const missing = yield* run(["users", "create"])
      assert.deepStrictEqual([missing.code, /email/.test(missing.err)], [2, true])
      const invalid = yield* run(["users", "create", "no-address"])
      assert.deepStrictEqual(
        [invalid.code, invalid.err.trim()],
        [1, "signalbox: email: expected an e-mail address"]
      )
    })
  )
})
