import { randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { addChannel, allEnded, deliveriesOf, rest, wake } from "../delivery/DeliveryStage.ts"
import { api, live, makeStage, sent, subscriber } from "../Stage.ts"
import { makeDue, writeSettings } from "./DigestStage.ts"

/** A person who wants hourly digests of two projects, in a browser and at a webhook of the sandbox. */
const staged = Effect.gen(function* () {
  const sandbox = yield* sandboxOfServer
  const stage = yield* makeStage
  const projects = [
    yield* stage.project({ slug: "nightly", name: "Nightly" }),
    yield* stage.project({ slug: "shop", name: "Shop" })
  ]
  const key = yield* stage.projectKey()
  const person = yield* subscriber(projects)
  yield* writeSettings(person, { delivery: "hourly" })
  const secret = webhookSecret(randomBytes(24))
  const [subscription, hook] = yield* Effect.promise(() =>
    Promise.all([sandbox.subscribe(), sandbox.webhook({ secret })])
  )
  const { endpoint, keys } = subscription
  const push = yield* addChannel(person, "push", endpoint, { endpoint, ...keys })
  const webhook = yield* addChannel(person, "webhook", hook.url, { url: hook.url, secret })
  const sendOne = (fields: object = {}) =>
    Effect.map(sent(key, { project: "nightly", ...fields }), ({ messages: [message] }) => message?.id ?? "")
  /** The payloads that came to a channel, once there are so many. */
  const came = (channel: { readonly id: string }, count: number) =>
    Effect.map(
      Effect.promise(() => sandbox.accepted(count, { channel: channel.id })),
      (entries) => entries.map(({ payload }) => payload as Readonly<Record<string, unknown>>)
    )
  const statuses = (message: string) =>
    Effect.map(deliveriesOf(message, stage.key), (shown) => shown.map(({ status }) => status))
  return { sandbox, stage, key, person, push, webhook, subscription, hook, sendOne, came, statuses }
})

const made = (person: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    eventually(
      "the digest is made",
      Effect.map(sql`SELECT 1 FROM digests WHERE subscriber_id = ${person}`, ({ length }) => length > 0)
    )
  )

layer(TestServer.shared, live)("a digest of several messages", (it) => {
  it.effect("comes to each channel once, with the first five, and a page of all", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* TestServer
      const { came, hook, person, sendOne, stage, statuses, subscription } = yield* staged
      const ids: Array<string> = []
      for (let n = 0; n < 6; n++) ids.push(yield* sendOne({ app: "backup", message: `part ${n}\nof <b>` }))
      ids.push(
        yield* sendOne({
          project: "shop",
          title: "Sold",
          message: "1 lamp",
          body: "long",
          url: "https://shop.test/1"
        })
      )
      for (const id of ids) assert.deepStrictEqual(yield* statuses(id), ["held", "held"])
      yield* makeDue(person)
      const [push] = yield* came(subscription, 1)
      assert.deepInclude(push, {
        title: "7 messages",
        text: [...[0, 1, 2, 3, 4].map((n) => `Nightly · backup: part ${n} of <b>`), "and 2 more"].join("\n")
      })
      const [call] = yield* came(hook, 1)
      const { data, type } = call as {
        readonly type: string
        readonly data: Readonly<Record<string, unknown>>
      }
      assert.strictEqual(type, "digest.created")
      assert.strictEqual(data["count"], 7)
      assert.strictEqual(data["viewUrl"], push?.["open"])
      assert.deepStrictEqual((data["messages"] as ReadonlyArray<object>)[1], {
        id: ids[1],
        project: { slug: "nightly", name: "Nightly" },
        app: "backup",
        message: "part 1\nof <b>",
        priority: "normal"
      })
      for (const id of ids) {
        yield* allEnded(id, stage.key)
        assert.deepStrictEqual(yield* statuses(id), ["delivered", "delivered"])
        const { json } = yield* ask("GET", `${api}/messages/${id}`, { key: stage.key })
        assert.deepInclude(json, { status: "done" })
      }
      const page = yield* ask("GET", String(push?.["open"]).replace(url, ""), { key: "" })
      const text = Buffer.from(page.bytes).toString()
      assert.strictEqual(page.status, 200)
      assert.include(text, "<h1>7 messages</h1>")
      for (const part of ["part 5", "<bdi>Sold</bdi>", "1 lamp", 'href="https://shop.test/1"', ">Show all<"])
        assert.include(text, part)
      const [own] = /\/n\/m\/[0-9A-Za-z]{40}/.exec(text) ?? []
      assert.strictEqual((yield* ask("GET", own ?? "", { key: "" })).status, 200)
    })
  )

  it.effect("of which one is left is that message, and of which none is left is nothing", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { came, hook, person, push, sendOne, stage, statuses, subscription, webhook } = yield* staged
      for (const { id } of [push, webhook]) yield* rest(id)
      const [one, two] = [yield* sendOne({ message: "one" }), yield* sendOne({ message: "two" })]
      yield* makeDue(person)
      yield* made(person)
      assert.deepStrictEqual(yield* statuses(one), ["held", "held"])
      yield* ask("DELETE", `${api}/messages/${one}`, { key: stage.key })
      yield* wake(webhook.id)
      const [call] = yield* came(hook, 1)
      assert.deepInclude((call as { readonly data: object }).data, { id: two, message: "two" })
      yield* ask("DELETE", `${api}/messages/${two}`, { key: stage.key })
      yield* wake(push.id)
      const after = yield* sendOne({ priority: "high", message: "after" })
      const [only] = yield* came(subscription, 1)
      assert.strictEqual(only?.["text"], "after")
      yield* allEnded(after, stage.key)
    })
  )

  it.effect(
    "that is given up leaves its messages dead, which make a digest again when they are redriven",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { came, hook, person, sandbox, sendOne, stage, statuses, subscription, webhook } = yield* staged
        yield* Effect.promise(() => sandbox.order({ target: hook.id, status: 400, times: 1 }))
        const ids = [yield* sendOne({ message: "one" }), yield* sendOne({ message: "two", project: "shop" })]
        yield* makeDue(person)
        yield* came(subscription, 1)
        for (const id of ids) {
          yield* allEnded(id, stage.key)
          assert.sameMembers(yield* statuses(id), ["delivered", "dead"])
        }
        const { json } = yield* ask("GET", `${api}/deliveries?status=dead`, { key: stage.key })
        const dead = (json as { readonly deliveries: ReadonlyArray<object> }).deliveries
        assert.lengthOf(dead, 2)
        for (const [n, row] of dead.toReversed().entries())
          assert.deepInclude(row, { message: ids[n], status: "dead", attempts: 1 })
        const redriven = yield* ask("POST", `${api}/deliveries/redrive`, {
          key: stage.key,
          json: { channel: webhook.id }
        })
        assert.deepStrictEqual(redriven.json, { redriven: 2 })
        const [again] = yield* came(hook, 1)
        assert.deepInclude(again, { type: "digest.created" })
        assert.deepInclude((again as { readonly data: object }).data, { count: 2 })
        for (const id of ids) {
          yield* allEnded(id, stage.key)
          assert.deepStrictEqual(yield* statuses(id), ["delivered", "delivered"])
        }
      })
  )

  it.effect("is dropped for each owner where its channel is gone, or off by its turn", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { person, push, sandbox, sendOne, stage, statuses, subscription, webhook } = yield* staged
      yield* rest(webhook.id)
      yield* Effect.promise(() => sandbox.changeSubscription(subscription.id, { state: "expired" }))
      const ids = [yield* sendOne(), yield* sendOne()]
      yield* makeDue(person)
      yield* made(person)
      yield* eventually(
        "the push is dropped",
        Effect.map(statuses(ids[0] ?? ""), (shown) => shown.includes("dropped"))
      )
      yield* sql`UPDATE channels SET state = 'off' WHERE id = ${webhook.id}`
      yield* wake(webhook.id)
      for (const id of ids) {
        yield* allEnded(id, stage.key)
        assert.deepStrictEqual(yield* statuses(id), ["dropped", "dropped"])
      }
      const [state] = yield* sql`SELECT state FROM channels WHERE id = ${push.id}`
      assert.deepStrictEqual(state, { state: "gone" })
    })
  )
})
