import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { sweepSubscribers } from "#src/notify/subscribers/SubscriberSweep.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import { api, faultOf, invalidKey, live, sent } from "../Stage.ts"
import {
  join,
  joined,
  linkOf,
  openProject,
  rowsOf,
  settingsOf,
  subscriber,
  subscription
} from "./SubscriberStage.ts"

layer(TestServer.shared, live)("settings of a subscriber", (it) => {
  it.effect("have a name and a time zone that exists", () =>
    Effect.gen(function* () {
      const { request, token } = yield* subscriber
      const changed = yield* request("PATCH", "", { name: "Grace", timezone: "America/New_York" })
      assert.deepInclude(changed.json, { name: "Grace", timezone: "America/New_York" })
      assert.deepInclude(yield* settingsOf(token), { name: "Grace", timezone: "America/New_York" })
      const zone = "timezone: expected an IANA time zone, such as Europe/Berlin"
      for (const [json, text] of [
        [{ timezone: "Mars/Olympus" }, zone],
        [{ timezone: "UTC+2" }, zone],
        [{ timezone: null }, "timezone: expected text"],
        [{ name: "" }, "name: expected text of 1 to 100 characters on one line"],
        [{ name: "a\u0000" }, "name: not allowed: NUL"],
        [{ kind: "push" }, "kind: is not known here"]
      ] as const) {
        const [status, error] = faultOf(yield* request("PATCH", "", json))
        assert.strictEqual(status, 400)
        if (!JSON.stringify(json).includes("u0000")) assert.strictEqual(error, text)
      }
      assert.deepInclude(yield* settingsOf(token), { name: "Grace", timezone: "America/New_York" })
    })
  )

  it.effect("mute a project, have its messages again, and leave it", () =>
    Effect.gen(function* () {
      const { channel, id, link, recipients, request, token } = yield* subscriber
      assert.strictEqual(yield* recipients, 1)
      const muted = yield* request("PUT", `/projects/${id}`, { delivery: "muted" })
      assert.deepInclude(muted.json, {
        id,
        name: "Backups",
        description: "Of every night",
        delivery: "muted"
      })
      assert.strictEqual(yield* recipients, 0)
      for (const delivery of ["instant", "hourly", "daily", "inherit"]) {
        yield* request("PUT", `/projects/${id}`, { delivery })
        assert.strictEqual(yield* recipients, 1)
      }
      const none = [404, "Project not found"] as const
      assert.deepStrictEqual(faultOf(yield* request("PUT", "/projects/pjt_x", { delivery: "muted" })), none)
      assert.deepStrictEqual((yield* request("DELETE", `/projects/${id}`)).json, { deleted: true })
      assert.deepStrictEqual(faultOf(yield* request("DELETE", `/projects/${id}`)), none)
      assert.deepStrictEqual(faultOf(yield* request("PUT", `/projects/${id}`, { delivery: "muted" })), none)
      assert.strictEqual(yield* recipients, 0)
      assert.isEmpty((yield* settingsOf(token)).projects)
      // By its link alone one comes back.
      yield* joined(link, {}, token)
      assert.strictEqual(yield* recipients, 1)
      assert.lengthOf((yield* settingsOf(token)).channels, 1)
      assert.isNotEmpty(yield* rowsOf(channel))
    })
  )

  it.effect("turn a channel off and on, and one that was failing begins anew", () =>
    Effect.gen(function* () {
      const { channel, recipients, request } = yield* subscriber
      const sql = yield* SqlClient
      const path = `/channels/${channel}`
      const off = yield* request("PATCH", path, { state: "off", name: "Old laptop" })
      assert.deepInclude(off.json, { id: channel, state: "off", name: "Old laptop" })
      assert.strictEqual(yield* recipients, 0)
      yield* Effect.orDie(
        sql`UPDATE channels SET state = 'failing', dead_in_a_row = 10 WHERE id = ${channel}`
      )
      assert.strictEqual(yield* recipients, 0)
      assert.deepInclude((yield* request("PATCH", path, { state: "active" })).json, { state: "active" })
      const [row] = yield* Effect.orDie(
        sql<{ dead_in_a_row: number }>`SELECT dead_in_a_row FROM channels WHERE id = ${channel}`
      )
      assert.strictEqual(row?.dead_in_a_row, 0)
      assert.strictEqual(yield* recipients, 1)
      for (const state of ["gone", "failing", "on", null])
        assert.strictEqual((yield* request("PATCH", path, { state })).status, 400)
      yield* Effect.orDie(sql`UPDATE channels SET state = 'gone' WHERE id = ${channel}`)
      assert.deepStrictEqual(faultOf(yield* request("PATCH", path, { state: "active" })), [
        409,
        "state: the browser has ended this subscription; it has to make another one"
      ])
      const renewed = yield* request("PATCH", path, { push: subscription() })
      assert.deepInclude(renewed.json, { id: channel, state: "active" })
    })
  )

  it.effect("follow a browser to its new subscription: the channel and what waits for it stay", () =>
    Effect.gen(function* () {
      const { channel, link, push, request, token } = yield* subscriber
      const next = subscription()
      const changed = yield* request("PATCH", `/channels/${channel}`, { push: next })
      assert.deepInclude(changed.json, { id: channel, state: "active" })
      const sql = yield* SqlClient
      const [row] = yield* Effect.orDie(
        sql<{ address: string; target: object }>`SELECT address, target FROM channels WHERE id = ${channel}`
      )
      assert.strictEqual(row?.address, next.endpoint)
      assert.deepStrictEqual(row?.target, { endpoint: next.endpoint, ...next.keys })
      // The former one is nobody's: it makes another subscriber.
      const other = yield* joined(link, { push })
      assert.notStrictEqual((yield* settingsOf(other.token)).id, (yield* settingsOf(token)).id)
      // An address that is another's goes over.
      yield* request("PATCH", `/channels/${channel}`, { push })
      assert.isEmpty((yield* settingsOf(other.token)).channels)
      const fault = yield* request("PATCH", `/channels/${channel}`, {
        push: { ...push, keys: { p256dh: "x", auth: "y" } }
      })
      assert.deepStrictEqual(faultOf(fault), [
        400,
        "push.keys.p256dh: expected a point of P-256: 65 bytes in base64url"
      ])
    })
  )

  it.effect("hold 20 channels, however many are added at once, and lose those that are removed", () =>
    Effect.gen(function* () {
      const { channel, request, token } = yield* subscriber
      const answers = yield* Effect.all(
        Array.from({ length: 22 }, () => request("POST", "/channels", { push: subscription() })),
        { concurrency: 8 }
      )
      assert.lengthOf(
        answers.filter(({ status }) => status === 201),
        19
      )
      const refused = answers.find(({ status }) => status === 409)
      assert.deepStrictEqual(refused === undefined ? [] : faultOf(refused), [
        409,
        "A subscriber has at most 20 channels"
      ])
      assert.deepStrictEqual((yield* request("DELETE", `/channels/${channel}`)).json, { deleted: true })
      assert.deepStrictEqual(faultOf(yield* request("DELETE", `/channels/${channel}`)), [
        404,
        "Channel not found"
      ])
      const { channels } = yield* settingsOf(token)
      assert.lengthOf(channels, 19)
      assert.notInclude(
        channels.map(({ id }) => id),
        channel
      )
      for (const json of [{}, { push: { endpoint: "x" } }])
        assert.strictEqual((yield* request("POST", "/channels", json)).status, 400)
    })
  )

  it.effect("are those of their subscriber alone", () =>
    Effect.gen(function* () {
      const one = yield* subscriber
      const other = yield* subscriber
      for (const [method, json] of [["PATCH", { state: "off" }], ["DELETE"]] as const)
        assert.deepStrictEqual(faultOf(yield* other.request(method, `/channels/${one.channel}`, json)), [
          404,
          "Channel not found"
        ])
      assert.strictEqual((yield* other.request("DELETE", `/projects/${one.id}`)).status, 404)
      assert.strictEqual((yield* settingsOf(one.token)).channels[0]?.state, "active")
    })
  )

  it.effect("get a new link, by which the old one is dead", () =>
    Effect.gen(function* () {
      const { ask, request, token } = yield* subscriber
      const { url } = yield* TestServer
      const answer = yield* request("POST", "/link")
      assert.strictEqual(answer.headers.get("cache-control"), "no-store")
      const settingsUrl = textOf(answer, "settingsUrl")
      assert.match(settingsUrl, new RegExp(`^${url}/n/me#sbt_[0-9A-Za-z]{40}$`))
      assert.deepStrictEqual(faultOf(yield* ask("GET", `${api}/subscriber`, { key: token })), [
        401,
        invalidKey
      ])
      assert.strictEqual((yield* settingsOf(settingsUrl.replace(/.*#/, ""))).name, "Ada")
    })
  )

  it.effect(
    "end when their subscriber leaves: addresses are deleted at once, and what waits is dropped",
    () =>
      Effect.gen(function* () {
        const { ask, channel, id, key, push, recipients, request, stage, token } = yield* subscriber
        const sql = yield* SqlClient
        // No worker takes it: a lane rests.
        yield* Effect.orDie(sql`INSERT INTO job_lanes (queue, lane, due_at, waiting, rests_until)
        VALUES ('deliveries', ${channel}, 'infinity', 0, now() + interval '1 hour')`)
        const [message] = (yield* sent(key)).messages
        assert.deepStrictEqual((yield* request("DELETE", "")).json, { deleted: true })
        assert.deepStrictEqual(faultOf(yield* request("GET", "")), [401, invalidKey])
        const left = yield* Effect.orDie(
          sql`SELECT 1 FROM subscribers WHERE token_hash = ${hashOf(token)} UNION ALL SELECT 1 FROM channels
          WHERE address = ${push.endpoint} UNION ALL SELECT 1 FROM project_subscriptions WHERE project_id = ${id}`
        )
        assert.isEmpty(left)
        const told = yield* ask("GET", `${api}/messages/${message?.id}/deliveries`, { key: stage.key })
        assert.deepInclude((told.json as { deliveries: ReadonlyArray<object> }).deliveries[0], {
          status: "dropped"
        })
        assert.strictEqual(yield* recipients, 0)
      })
  )

  it.effect("lose a project that its owner deleted, or removed them from; it can be joined again", () =>
    Effect.gen(function* () {
      const { ask, id, link, stage, token } = yield* subscriber
      const second = yield* openProject(stage)
      yield* joined(second.link, {}, token)
      yield* ask("DELETE", `${api}/projects/${second.id}`, { key: stage.key })
      const { id: subscriberId, projects } = yield* settingsOf(token)
      assert.deepStrictEqual(
        projects.map((project) => project.id),
        [id]
      )
      yield* ask("DELETE", `${api}/projects/${id}/subscribers/${subscriberId}`, { key: stage.key })
      assert.isEmpty((yield* settingsOf(token)).projects)
      assert.strictEqual((yield* join(link, {}, token)).status, 201)
      assert.strictEqual((yield* linkOf(stage, id)).length, 40)
    })
  )

  it.effect("go in time where nothing is to be expected of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ask, id, link, request, stage, token } = yield* subscriber
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      yield* request("POST", "/channels", { webhook: { url: hook.url } })
      const other = yield* joined(link, { push: subscription() })
      const me = (yield* settingsOf(token)).id
      const age = (table: string, column: string, days: number) =>
        Effect.orDie(sql`UPDATE ${sql(table)} SET ${sql(column)} = now() - ${days} * interval '1 day'
          WHERE ${sql(table === "channels" ? "subscriber_id" : "id")} = ${me}`)
      const sweep = Effect.orDie(sweepSubscribers)
      yield* age("channels", "created_at", 6.9)
      yield* age("subscribers", "created_at", 400)
      yield* sweep
      assert.lengthOf((yield* settingsOf(token)).channels, 2)
      yield* age("channels", "created_at", 7.1)
      yield* request("DELETE", `/projects/${id}`)
      // Days are counted from when there was no project, however old the subscriber is.
      yield* sweep
      yield* sweep
      yield* age("subscribers", "idle_since", 29.9)
      yield* sweep
      assert.deepStrictEqual(
        (yield* settingsOf(token)).channels.map(({ kind }) => kind),
        ["push"]
      )
      // One who came back in between begins anew. Stamped as late as this, no other sweep takes them before.
      yield* joined(link, {}, token)
      yield* age("subscribers", "idle_since", 31)
      yield* joined(link, {}, token)
      yield* request("DELETE", `/projects/${id}`)
      yield* sweep
      assert.lengthOf((yield* settingsOf(token)).channels, 1)
      // A project that its owner has deleted is none.
      const second = yield* openProject(stage)
      yield* joined(second.link, {}, token)
      yield* ask("DELETE", `${api}/projects/${second.id}`, { key: stage.key })
      yield* sweep
      yield* age("subscribers", "idle_since", 30.1)
      yield* sweep
      assert.strictEqual((yield* request("GET", "")).status, 401)
      assert.lengthOf((yield* settingsOf(other.token)).projects, 1)
    })
  )

  it.effect("go in time where there is no channel, unless one is added", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const ones = [yield* subscriber, yield* subscriber]
      const sweep = Effect.orDie(sweepSubscribers)
      for (const [at, { channel, request, token }] of ones.entries()) {
        const { id } = yield* settingsOf(token)
        yield* Effect.orDie(
          sql`UPDATE subscribers SET idle_since = now() - interval '31 days' WHERE id = ${id}`
        )
        if (at === 0) yield* request("POST", "/channels", { push: subscription() })
        for (const one of (yield* settingsOf(token)).channels)
          assert.strictEqual((yield* request("DELETE", `/channels/${one.id}`)).status, 200, channel)
      }
      yield* sweep
      const statuses = yield* Effect.forEach(ones, ({ request }) => request("GET", ""))
      assert.deepStrictEqual(
        statuses.map(({ status }) => status),
        [200, 401]
      )
    })
  )

  it.effect("are in no log: neither tokens, nor links, nor addresses", () =>
    Effect.gen(function* () {
      const { link, push, request, token } = yield* subscriber
      yield* request("PATCH", "", { timezone: "x" })
      yield* join(link, { push: { ...push, endpoint: `https://127.0.0.1/${push.endpoint.slice(-24)}` } })
      const log = (yield* TestServer).logged().join("\n")
      for (const secret of [token.slice(4), link, push.endpoint.slice(-24), push.keys.auth])
        assert.notInclude(log, secret)
    })
  )
})
