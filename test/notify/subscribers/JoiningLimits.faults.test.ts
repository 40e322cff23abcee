import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { notifyLimits } from "#src/notify/Limits.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage } from "../Stage.ts"
import { joined, openProject, settingsOf, subscription } from "./SubscriberStage.ts"

const limits = {
  joinsPerHour: 4,
  subscribersPerProject: 2,
  settingsRequestsPerMinute: 6,
  channelTestsPerHour: 1,
  telegramCodesPerHour: 2,
  postgresConnectMillis: 20_000
}

const postgres = postgresWire()

/** A proxy tells the address of the client. */
layer(TestServer.own({ limits, trustProxy: 1 }, postgres), live)("the limits of joining", (it) => {
  it.effect("hold for an address, whatever becomes of its joins, and for a project", () =>
    Effect.gen(function* () {
      assert.deepInclude(notifyLimits, {
        joinsPerHour: 20,
        subscribersPerProject: 10_000,
        channelsPerSubscriber: 20
      })
      const { ask } = yield* TestServer
      const { link } = yield* openProject(yield* makeStage)
      const from = (address: string, json: object, at = link) =>
        ask("POST", `${api}/join/${at}`, {
          key: "",
          headers: { "x-forwarded-for": address },
          json: { timezone: "UTC", ...json }
        })
      const push = subscription()
      assert.strictEqual((yield* from("198.51.100.1", { push })).status, 201)
      assert.strictEqual((yield* from("198.51.100.1", {})).status, 400)
      assert.strictEqual((yield* from("198.51.100.1", { push }, "0".repeat(40))).status, 404)
      assert.strictEqual((yield* from("198.51.100.1", { push: subscription() })).status, 201)
      const refused = yield* from("198.51.100.1", { push })
      assert.match(
        String(faultOf(refused)[1]),
        /^Joins are asked for too often from your address; try again in/
      )
      assert.strictEqual(refused.status, 429)
      assert.isAbove(Number(refused.headers.get("retry-after")), 3_000)
      assert.strictEqual(refused.headers.get("x-should-retry"), "false")
      // Of IPv6 the /64 is the address.
      for (const [host, status] of [
        ["1", 409],
        ["2", 409],
        ["3", 409],
        ["4", 409],
        ["5", 429]
      ] as const)
        assert.strictEqual((yield* from(`2001:db8:1:2::${host}`, { push: subscription() })).status, status)
      assert.deepStrictEqual(faultOf(yield* from("198.51.100.2", { push: subscription() })), [
        409,
        "This project has 2 subscribers, which is the most it can have"
      ])
      // Those who are subscribed come again.
      assert.strictEqual((yield* from("198.51.100.2", { push })).status, 201)
    })
  )

  it.effect("hold for tests of channels, and for requests with any token", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link } = yield* openProject(yield* makeStage)
      const { channel, token } = yield* joined(link, { push: subscription() })
      const asked = (method: string, path: string, key: string, address: string) =>
        Effect.map(
          ask(method, `${api}/subscriber${path}`, { key, headers: { "x-forwarded-for": address } }),
          ({ status }) => status
        )
      const test = (address: string) => asked("POST", `/channels/${channel?.id}x/test`, token, address)
      assert.strictEqual(yield* test("198.51.100.3"), 404)
      assert.strictEqual(yield* test("198.51.100.3"), 429)
      const guess = (digit: number) => asked("GET", "", `sbt_${String(digit).repeat(40)}`, "198.51.100.4")
      for (const digit of [1, 2, 3, 4, 5, 6]) assert.strictEqual(yield* guess(digit), 401)
      assert.strictEqual(yield* guess(7), 429)
      assert.strictEqual((yield* settingsOf(token)).channels.length, 1)
    })
  )

  it.effect("hold for webhooks that a subscriber adds, and not for browsers", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link } = yield* openProject(yield* makeStage)
      const { token } = yield* joined(link, { push: subscription() })
      const add = (json: object) =>
        Effect.map(
          ask("POST", `${api}/subscriber/channels`, {
            key: token,
            headers: { "x-forwarded-for": "198.51.100.6" },
            json
          }),
          ({ status }) => status
        )
      const webhook = { webhook: { url: "https://127.0.0.1/" } }
      for (const status of [400, 400, 400, 400, 429]) assert.strictEqual(yield* add(webhook), status)
      assert.strictEqual(yield* add({ push: subscription() }), 201)
    })
  )

  it.effect("hold for codes of Telegram, those of settings among them", () =>
    Effect.gen(function* () {
      assert.strictEqual(notifyLimits.telegramCodesPerHour, 60)
      const { ask } = yield* TestServer
      const { link } = yield* openProject(yield* makeStage)
      const { token } = yield* joined(link, { push: subscription() })
      const made = (address: string, path: string, key: string) =>
        ask("POST", `${api}${path}`, {
          key,
          headers: { "x-forwarded-for": address },
          json: { timezone: "UTC" }
        })
      const join = `/join/${link}/telegram`
      assert.strictEqual((yield* made("198.51.100.7", join, "")).status, 201)
      assert.strictEqual((yield* made("198.51.100.7", "/subscriber/telegram", token)).status, 201)
      for (const [path, key] of [
        [join, ""],
        ["/subscriber/telegram", token]
      ] as const) {
        const refused = yield* made("198.51.100.7", path, key)
        assert.strictEqual(refused.status, 429)
        assert.isAbove(Number(refused.headers.get("retry-after")), 3_000)
      }
      assert.strictEqual((yield* made("198.51.100.8", join, "")).status, 201)
    })
  )

  it.effect("are told apart from a Postgres that is away, on pages and in answers", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { link } = yield* openProject(yield* makeStage)
      const { token } = yield* joined(link, { push: subscription() })
      const asked = (method: string, path: string, key: string, json?: object) =>
        ask(method, path, {
          key,
          headers: { "x-forwarded-for": "198.51.100.5", accept: "text/html" },
          ...(json !== undefined && { json })
        })
      yield* postgres.cut("refuse")
      // A link that memory knows has its page.
      assert.strictEqual((yield* asked("GET", `/n/join/${link}`, "")).status, 200)
      for (const path of [`/n/join/${"0".repeat(40)}`, `/n/confirm/${"0".repeat(40)}`]) {
        const page = yield* asked("GET", path, "")
        assert.strictEqual(page.status, 503, path)
        assert.include(Buffer.from(page.bytes).toString(), "Not at the moment")
        assert.isNotNull(page.headers.get("retry-after"))
      }
      const json = { timezone: "UTC", push: subscription() }
      const away = [503, "The database is away; nothing was changed, try again later"] as const
      assert.deepStrictEqual(faultOf(yield* asked("POST", `${api}/join/${link}`, "", json)), away)
      assert.deepStrictEqual(faultOf(yield* asked("GET", `${api}/subscriber`, token)), away)
      assert.deepStrictEqual(faultOf(yield* asked("DELETE", `${api}/subscriber`, token)), away)
    }).pipe(Effect.scoped)
  )
})
