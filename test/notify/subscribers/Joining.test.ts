import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, invalidKey, live, makeStage, sent } from "../Stage.ts"
import { join, joined, linkOf, openProject, settingsOf, subscription } from "./SubscriberStage.ts"

layer(TestServer.shared, live)("joining", (it) => {
  it.effect("makes a subscriber whose token leads to their settings, and who counts as a recipient", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id, link } = yield* openProject(stage)
      const { url } = yield* TestServer
      const push = { ...subscription(), name: "Firefox on Linux" }
      const answer = yield* join(link, { name: "Ada", push })
      assert.strictEqual(answer.status, 201)
      assert.strictEqual(answer.headers.get("cache-control"), "no-store")
      const { channel, settingsUrl } = answer.json as { settingsUrl: string; channel: { id: string } }
      assert.match(settingsUrl, new RegExp(`^${url}/n/me#sbt_[0-9A-Za-z]{40}$`))
      const token = settingsUrl.replace(/.*#/, "")
      const settings = yield* settingsOf(token)
      const { headers } = yield* ask("GET", `${api}/subscriber`, { key: token })
      assert.strictEqual(headers.get("cache-control"), "no-store")
      assert.deepInclude(settings, { name: "Ada", timezone: "Europe/Berlin" })
      assert.match(settings.pushKey, /^[\w-]{87}$/)
      assert.match(settings.id, /^sbr_/)
      assert.deepInclude(settings.projects[0], { id, delivery: "inherit" })
      assert.deepInclude(settings.channels[0], {
        id: channel.id,
        kind: "push",
        name: "Firefox on Linux",
        state: "active",
        host: "93.184.216.34"
      })
      // The secret parts of its address are told to none.
      for (const told of [JSON.stringify(settings), JSON.stringify(answer.json)])
        for (const secret of [push.endpoint.slice(-24), push.keys.auth, push.keys.p256dh])
          assert.notInclude(told, secret)
      assert.strictEqual((yield* sent(yield* stage.projectKey())).recipients, 1)
      const owners = yield* ask("GET", `${api}/projects/${id}/subscribers`, { key: stage.key })
      assert.deepInclude((owners.json as { subscribers: ReadonlyArray<object> }).subscribers[0], {
        id: settings.id,
        name: "Ada",
        delivery: "inherit"
      })
    })
  )

  it.effect("keeps hashes of tokens and of links alone", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { id, link } = yield* openProject(stage)
      const { token } = yield* joined(link, { push: subscription() })
      const sql = yield* SqlClient
      const rows = yield* Effect.orDie(
        sql<{
          row: string
        }>`SELECT row_to_json(s)::text AS row FROM subscribers s WHERE token_hash = ${hashOf(token)}
          UNION ALL SELECT row_to_json(p)::text FROM projects p WHERE id = ${id}`
      )
      assert.lengthOf(rows, 2)
      for (const { row } of rows) {
        assert.notInclude(row, token.slice(4))
        assert.notInclude(row, link)
      }
    })
  )

  it.effect(
    "again from a browser adds the project to the same subscriber: by its token, or by its subscription",
    () =>
      Effect.gen(function* () {
        const stage = yield* makeStage
        const first = yield* openProject(stage)
        const second = yield* openProject(stage)
        const third = yield* openProject(stage)
        const push = subscription()
        const { token } = yield* joined(first.link, { name: "Ada", push })
        const by = yield* joined(second.link, {}, token)
        assert.strictEqual(by.token, token)
        assert.isUndefined(by.channel)
        const again = yield* joined(third.link, { push })
        assert.notStrictEqual(again.token, token)
        // A browser that has lost its token gets another one.
        const { ask } = yield* TestServer
        assert.strictEqual((yield* ask("GET", `${api}/subscriber`, { key: token })).status, 401)
        const settings = yield* settingsOf(again.token)
        assert.strictEqual(settings.name, "Ada")
        assert.sameMembers(
          settings.projects.map(({ id }) => id),
          [first.id, second.id, third.id]
        )
        assert.lengthOf(settings.channels, 1)
        yield* joined(third.link, { push }, again.token)
        assert.lengthOf((yield* settingsOf(again.token)).channels, 1)
      })
  )

  it.effect("with an endpoint that was another's takes it from them, unless its keys are the same", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { link } = yield* openProject(stage)
      const push = subscription()
      const former = yield* joined(link, { name: "Former", push })
      const stranger = { ...push, keys: subscription().keys }
      const later = yield* joined(link, { name: "Later", push: stranger })
      assert.deepInclude(yield* settingsOf(later.token), { name: "Later" })
      assert.isEmpty((yield* settingsOf(former.token)).channels)
      const other = yield* joined(link, { name: "Other", push: subscription() })
      yield* joined(link, { push: stranger }, other.token)
      assert.isEmpty((yield* settingsOf(later.token)).channels)
      assert.lengthOf((yield* settingsOf(other.token)).channels, 2)
      assert.strictEqual((yield* sent(yield* stage.projectKey())).recipients, 1)
    })
  )

  it.effect("at once, with one endpoint, makes one subscriber", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { link } = yield* openProject(stage)
      const push = subscription()
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => join(link, { push })),
        { concurrency: 8 }
      )
      assert.deepStrictEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
      assert.strictEqual((yield* sent(yield* stage.projectKey())).recipients, 1)
    })
  )

  it.effect(
    "is 404 by a link that is none, was replaced or guessed, and 410 where the project is closed",
    () =>
      Effect.gen(function* () {
        const stage = yield* makeStage
        const { ask, id, link } = yield* openProject(stage)
        const push = subscription()
        const fault = (at: string) => Effect.map(join(at, { push }), faultOf)
        const none = [404, "This link leads to no project"] as const
        const last = link.endsWith("a") ? "b" : "a"
        for (const guess of [
          "x",
          "0".repeat(40),
          `${link.slice(0, -1)}${last}`,
          `${link}0`,
          link.slice(1),
          "%00"
        ])
          assert.deepStrictEqual(yield* fault(guess), none, guess)
        yield* ask("PATCH", `${api}/projects/${id}`, { key: stage.key, json: { joining: "closed" } })
        assert.deepStrictEqual(yield* fault(link), [410, "Joining this project is closed"])
        yield* ask("PATCH", `${api}/projects/${id}`, { key: stage.key, json: { joining: "link" } })
        yield* joined(link, { push })
        yield* ask("POST", `${api}/projects/${id}/join-link`, { key: stage.key })
        assert.deepStrictEqual(yield* fault(link), none)
        const renewed = yield* linkOf(stage, id)
        yield* joined(renewed, { push })
        yield* ask("DELETE", `${api}/projects/${id}`, { key: stage.key })
        assert.deepStrictEqual(yield* fault(renewed), none)
      })
  )

  it.effect("is 404 by a link that another process has replaced, at once", () =>
    Effect.gen(function* () {
      const { id, link } = yield* openProject(yield* makeStage)
      const sql = yield* SqlClient
      const { token } = yield* joined(link, { push: subscription() })
      // Memory learns of it within a second.
      yield* Effect.orDie(sql`UPDATE projects SET join_hash = ${hashOf("another")} WHERE id = ${id}`)
      assert.deepStrictEqual(faultOf(yield* join(link, {}, token)), [404, "This link leads to no project"])
    })
  )

  it.effect("says which field is wrong", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { link } = yield* openProject(stage)
      const push = subscription()
      const { p256dh } = push.keys
      const offCurve = Buffer.from(p256dh, "base64url")
      offCurve[64] = (offCurve[64] ?? 0) ^ 1
      const point = "push.keys.p256dh: expected a point of P-256: 65 bytes in base64url"
      const auth = "push.keys.auth: expected 16 bytes in base64url"
      const https = "expected an https address of at most 2048 characters"
      const zone = "timezone: expected an IANA time zone, such as Europe/Berlin"
      const name = "name: expected text of 1 to 100 characters on one line"
      const cases: ReadonlyArray<readonly [object, string]> = [
        [{}, "push: is required, unless there is a webhook"],
        [{ push, webhook: { url: "https://93.184.216.34/" } }, "webhook: is not taken beside push"],
        [{ push: { ...push, keys: { ...push.keys, p256dh: offCurve.toString("base64url") } } }, point],
        [{ push: { ...push, keys: { ...push.keys, p256dh: "" } } }, point],
        [{ push: { ...push, keys: { ...push.keys, p256dh: p256dh.slice(0, -2) } } }, point],
        [{ push: { ...push, keys: { p256dh } } }, "push.keys.auth: is required"],
        [{ push: { ...push, keys: { p256dh, auth: "AAAA" } } }, auth],
        [{ push: { endpoint: push.endpoint } }, "push.keys: is required"],
        [{ push: { ...push, endpoint: "http://93.184.216.34/" } }, `push.endpoint: ${https}`],
        [
          { push: { ...push, endpoint: `https://93.184.216.34/${"x".repeat(2048)}` } },
          `push.endpoint: ${https}`
        ],
        [{ push: { ...push, endpoint: "x" } }, `push.endpoint: ${https}`],
        [{ push: { ...push, name: "" } }, `push.${name}`],
        [{ webhook: { url: "ftp://93.184.216.34/" } }, `webhook.url: ${https}`],
        [{ webhook: {} }, "webhook.url: is required"],
        [
          { webhook: { url: "https://a:b@93.184.216.34/" } },
          "webhook.url: expected an address without a name and password"
        ],
        [{ webhook: { url: "https://no.such.invalid/" } }, "webhook.url: its name has no address"],
        [{ push, name: "" }, name],
        [{ push, name: "a\nb" }, name],
        [{ push, name: "x".repeat(101) }, name],
        [{ push, timezone: "Europe/Atlantis" }, zone],
        [{ push, timezone: "+02:00" }, zone],
        [{ push, timezone: "../../etc/passwd" }, zone],
        [{ push, timezone: "" }, "timezone: expected text of 1 to 64 characters on one line"],
        [{ push, telegram: {} }, "telegram: is not known here"]
      ]
      for (const [json, text] of cases)
        assert.deepStrictEqual(faultOf(yield* join(link, json)), [400, text], JSON.stringify(json))
      assert.deepStrictEqual(faultOf(yield* join(link, { push, timezone: undefined })), [
        400,
        "timezone: is required"
      ])
    })
  )

  it.effect("refuses addresses that are not public, in every notation", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { link } = yield* openProject(stage)
      const hosts =
        `127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 0177.0.0.1 017700000001 2130706433 ①②⑦.0.0.1 127。0。0。1
        １２７.0.0.1 127.0.0.1. 127.255.255.254 0.0.0.0 0 0.1.2.3 10.0.0.1 10.255.255.255 0xa.1 172.16.0.1 172.31.255.255
        192.168.1.1 192.168.257 3232235777 100.64.0.1 100.100.100.200 100.127.255.255 168.63.129.16 169.254.169.254
        0xa9fea9fe 169.254.1.1 192.0.0.9 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.7 203.0.113.7 224.0.0.1
        239.255.255.255 240.0.0.1 255.255.255.255 localhost localhost. LOCALHOST [::] [::1] [0:0:0:0:0:0:0:1]
        [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] [::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254]
        [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:a9fe:a9fe::] [2001::7f00:1] [fc00::1] [fd00::1] [fd00:ec2::254] [fe80::1]
        [fec0::1] [ff02::1] [2001:db8::1] [100::1] 127.0.0.1:8443`.split(/\s+/)
      assert.isAtLeast(hosts.length, 60)
      for (const host of hosts) {
        const push = { ...subscription(), endpoint: `https://${host}/x` }
        assert.deepStrictEqual(
          faultOf(yield* join(link, { push })),
          [400, "push.endpoint: not a public address"],
          host
        )
        assert.deepStrictEqual(
          faultOf(yield* join(link, { webhook: { url: `https://${host}/x` } })),
          [400, "webhook.url: not a public address"],
          host
        )
      }
    })
  )

  it.effect("takes the token of a subscriber and no other key", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { link } = yield* openProject(stage)
      const push = subscription()
      for (const key of [stage.key, yield* stage.projectKey(), `sbt_${"0".repeat(40)}`, "sbt_"])
        assert.deepStrictEqual(faultOf(yield* join(link, { push }, key)), [401, invalidKey])
      const { token } = yield* joined(link, { push })
      const { ask } = yield* TestServer
      for (const path of ["/projects", "/messages", "/health", "/keys"])
        assert.strictEqual((yield* ask("GET", `${api}${path}`, { key: token })).status, 401, path)
    })
  )
})
