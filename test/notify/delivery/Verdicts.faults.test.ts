import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { lose } from "#src/notify/delivery/DeliveryEnds.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { faultOf, live, makeStage, send, sent } from "#test/notify/Stage.ts"
import {
  addBrowser,
  addWebhook,
  allEnded,
  channelState,
  deliveriesOf,
  impatient,
  loopback,
  receiver,
  rest,
  wake
} from "./DeliveryStage.ts"

const postgres = postgresWire()

const served = TestServer.own({ egressAllow: loopback, notifySandbox: "off", limits: impatient }, postgres)

/** A project with a key of its owner's, and sends that answer the message's id. */
const makeSender = Effect.gen(function* () {
  const { key, project, projectKey } = yield* makeStage
  const projectId = yield* project()
  const sender = yield* projectKey({ rateLimitPerMinute: 6_000 })
  const sendOne = (fields: object = {}) =>
    Effect.map(sent(sender, fields), ({ messages: [message] }) => message?.id ?? "")
  return { key, projectId, sender, sendOne }
})

const statuses = (deliveries: ReadonlyArray<{ readonly status: string }>) =>
  deliveries.map(({ status }) => status)

layer(served, live)("deliveries", (it) => {
  it.effect("to a channel are made in order, one at a time, and wait for no other channel", () =>
    Effect.gen(function* () {
      const { key, projectId, sendOne } = yield* makeSender
      let [under, most] = [0, 0]
      let go: () => void = () => undefined
      const gate = new Promise<void>((resolve) => (go = resolve))
      const slow = yield* receiver(async (_, response) => {
        most = Math.max(most, ++under)
        await gate
        under--
        response.writeHead(204).end()
      })
      const quick = yield* receiver()
      yield* addWebhook([projectId], slow.origin)
      yield* addWebhook([projectId], quick.origin)
      const ids: Array<string> = []
      for (let n = 0; n < 4; n++) ids.push(yield* sendOne({ message: `m${n}` }))
      yield* eventually(
        "the other channel has all",
        Effect.sync(() => quick.received.length === 4)
      )
      assert.strictEqual(slow.received.length, 1)
      go()
      for (const id of ids)
        assert.deepStrictEqual(statuses(yield* allEnded(id, key)), ["delivered", "delivered"])
      for (const { received } of [slow, quick])
        assert.deepStrictEqual(
          received.map(({ body }) => JSON.parse(String(body)).data.message),
          ["m0", "m1", "m2", "m3"]
        )
      assert.strictEqual(most, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("to a channel that its service says is gone are dropped unsent", () =>
    Effect.gen(function* () {
      const { key, projectId, sendOne } = yield* makeSender
      for (const [kind, status] of [
        ["push", 404],
        ["push", 410],
        ["webhook", 410]
      ] as const) {
        const service = yield* receiver({ status, afterMillis: 100 })
        const add = kind === "push" ? addBrowser : addWebhook
        const channel = yield* add([projectId], service.origin)
        const ids = [yield* sendOne(), yield* sendOne()]
        for (const [n, id] of ids.entries()) {
          const [delivery] = yield* allEnded(id, key)
          assert.deepInclude(delivery, { status: "dropped", attempts: 1, channel: channel.id })
          if (n === 0) assert.match(delivery?.lastError ?? "", new RegExp(`answered ${status}`))
        }
        assert.strictEqual(service.received.length, 1, `${kind} ${status}`)
        assert.strictEqual((yield* channelState(channel.id))?.state, "gone")
        assert.deepStrictEqual(yield* deliveriesOf(yield* sendOne(), key), [])
      }
    }).pipe(Effect.scoped)
  )

  it.effect("that are answered 410 end no channel that has another address by then, or is off", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { projectId } = yield* makeSender
      const { browser, id } = yield* addBrowser([projectId], "https://push.test")
      const answered = (endpoint: string) =>
        lose(sql, id, { kind: "push", target: { ...browser.target, endpoint }, deadInARow: 0 })
      const { endpoint } = browser.target
      yield* answered(`${endpoint}/old`)
      assert.strictEqual((yield* channelState(id))?.state, "active")
      yield* sql`UPDATE channels SET state = 'off' WHERE id = ${id}`
      yield* answered(endpoint)
      assert.strictEqual((yield* channelState(id))?.state, "off")
      yield* sql`UPDATE channels SET state = 'failing' WHERE id = ${id}`
      yield* answered(endpoint)
      assert.strictEqual((yield* channelState(id))?.state, "gone")
    }).pipe(Effect.scoped)
  )

  it.effect("go to the new address of a browser that subscribed anew while its old one answered 410", () =>
    Effect.gen(function* () {
      const { key, projectId, sendOne } = yield* makeSender
      const sql = yield* SqlClient
      const [old, later] = [yield* receiver({ status: 410, afterMillis: 500 }), yield* receiver()]
      const { browser, id } = yield* addBrowser([projectId], old.origin)
      const message = yield* sendOne()
      yield* eventually(
        "the attempt is under way",
        Effect.sync(() => old.received.length === 1)
      )
      const endpoint = `${later.origin}/push/anew`
      yield* sql`UPDATE channels SET address = ${endpoint}, target = ${JSON.stringify({ ...browser.target, endpoint })}::jsonb
        WHERE id = ${id}`
      assert.deepStrictEqual(statuses(yield* allEnded(message, key)), ["delivered"])
      assert.deepStrictEqual([old.received.length, later.received.length], [1, 1])
      assert.strictEqual((yield* channelState(id))?.state, "active")
    }).pipe(Effect.scoped)
  )

  it.effect(
    "whose service is in trouble are made again after growing pauses, or such as it names; the channel waits",
    () =>
      Effect.gen(function* () {
        const { key, projectId, sendOne } = yield* makeSender
        const service = yield* receiver()
        yield* addBrowser([projectId], service.origin)
        service.next(
          { status: 503 },
          "cut",
          { status: 500 },
          { status: 429, headers: { "retry-after": "1" } }
        )
        const [first, second] = [yield* sendOne({ message: "first" }), yield* sendOne({ message: "second" })]
        const [delivery] = yield* allEnded(first, key)
        assert.deepInclude(delivery, { status: "delivered", attempts: 5, repeated: false })
        yield* allEnded(second, key)
        const at = service.received.map(({ atMillis }) => atMillis)
        const pauses = at.slice(1).map((millis, n) => millis - (at[n] ?? 0))
        assert.strictEqual(pauses.length, 5)
        for (const [n, least] of [16, 32, 64, 1_000].entries()) assert.isAtLeast(pauses[n] ?? 0, least - 2)
        // The next message waited behind it, and the same topic marks all attempts of one.
        const topics = service.received.map(({ headers }) => headers["topic"])
        assert.strictEqual(new Set(topics.slice(0, 5)).size, 1)
        assert.notStrictEqual(topics[5], topics[0])
      }).pipe(Effect.scoped)
  )

  it.effect(
    "are made with 2,000 bytes once after 413, with a new signature once after 401 and 403; then they are dead",
    () =>
      Effect.gen(function* () {
        const { key, projectId, sendOne } = yield* makeSender
        const service = yield* receiver()
        const browser = yield* addBrowser([projectId], service.origin)
        const text = { message: "long ".repeat(700) }
        const ends = Effect.fnUntraced(function* (...answers: ReadonlyArray<number>) {
          service.received.length = 0
          service.next(...answers.map((status) => ({ status })))
          const [delivery] = yield* allEnded(yield* sendOne(text), key)
          return [delivery?.status, delivery?.attempts, service.received.length]
        })
        assert.deepStrictEqual(yield* ends(413), ["delivered", 1, 2])
        const [whole, small] = yield* Effect.promise(() =>
          Promise.all(service.received.map(({ body }) => browser.browser.decrypt(body)))
        )
        assert.isAbove(whole?.plaintext.length ?? 0, 3_000)
        assert.isAtMost(small?.plaintext.length ?? 0, 2_000)
        assert.deepStrictEqual(yield* ends(413, 413), ["dead", 1, 2])
        for (const refused of [401, 403]) {
          assert.deepStrictEqual(yield* ends(refused), ["delivered", 1, 2])
          const [old, renewed] = service.received.map(({ headers }) => headers.authorization)
          assert.notStrictEqual(old, renewed)
          assert.deepStrictEqual(yield* ends(refused, refused), ["dead", 1, 2])
        }
        assert.strictEqual((yield* channelState(browser.id))?.state, "active")
      }).pipe(Effect.scoped)
  )

  it.effect(
    "to a channel that refuses ten in a row end: it is failing and gets no new ones, until one arrives",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { key, projectId, sendOne } = yield* makeSender
        const service = yield* receiver({ status: 400 })
        const hook = yield* addWebhook([projectId], service.origin)
        service.next({ status: 400 }, { redirectTo: "https://example.com/" }, { status: 204 })
        const ids: Array<string> = []
        for (let n = 0; n < 12; n++) ids.push(yield* sendOne())
        for (const id of ids) yield* allEnded(id, key)
        // The third arrived, so the counting began anew.
        assert.deepStrictEqual(yield* channelState(hook.id), { state: "active", dead_in_a_row: 9 })
        yield* allEnded(yield* sendOne(), key)
        assert.deepStrictEqual(yield* channelState(hook.id), { state: "failing", dead_in_a_row: 10 })
        assert.deepStrictEqual(yield* deliveriesOf(yield* sendOne(), key), [])
        service.otherwise = { status: 204 }
        service.received.length = 0
        const redriven = yield* ask("POST", "/api/v1/deliveries/redrive", { key, json: { channel: hook.id } })
        assert.deepStrictEqual(redriven.json, { redriven: 12 })
        for (const id of ids) assert.deepInclude((yield* allEnded(id, key))[0], { status: "delivered" })
        assert.deepStrictEqual(yield* channelState(hook.id), { state: "active", dead_in_a_row: 0 })
        assert.strictEqual((yield* deliveriesOf(yield* sendOne(), key)).length, 1)
      }).pipe(Effect.scoped)
  )

  it.effect("to an address that may not be reached are dead", () =>
    Effect.gen(function* () {
      const { key, projectId, sendOne } = yield* makeSender
      yield* addWebhook([projectId], "http://169.254.169.254")
      const [delivery] = yield* allEnded(yield* sendOne(), key)
      assert.deepInclude(delivery, { status: "dead", attempts: 1 })
      assert.match(delivery?.lastError ?? "", /may not be reached: link-local address$/)
    }).pipe(Effect.scoped)
  )
  it.effect("that are 72 hours old are dead, and those that were redriven have 72 hours more", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { key, projectId, sendOne } = yield* makeSender
      const service = yield* receiver()
      const { id: channel } = yield* addBrowser([projectId], service.origin)
      yield* rest(channel)
      const [old, young] = [yield* sendOne({ message: "old" }), yield* sendOne({ message: "young" })]
      yield* sql`UPDATE jobs SET offered_at = now() - interval '72 hours' WHERE payload ->> 'message' = ${old}`
      yield* sql`UPDATE jobs SET offered_at = now() - interval '71 hours' WHERE payload ->> 'message' = ${young}`
      yield* wake(channel)
      assert.deepInclude((yield* allEnded(old, key))[0], {
        status: "dead",
        lastError: "it was not delivered in time"
      })
      assert.deepInclude((yield* allEnded(young, key))[0], { status: "delivered" })
      const ttlOf = (n: number) => Number(service.received[n]?.headers["ttl"])
      assert.isAtMost(Math.abs(ttlOf(0) - 3_600), 60)
      const redriven = yield* ask("POST", "/api/v1/deliveries/redrive", { key, json: { message: old } })
      assert.deepStrictEqual(redriven.json, { redriven: 1 })
      assert.deepInclude((yield* allEnded(old, key))[0], { status: "delivered" })
      assert.isAtMost(Math.abs(ttlOf(1) - 72 * 3_600), 60)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "are given up where the next attempt would come too late, and their channel waits all the same",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { key, projectId, sendOne } = yield* makeSender
        const service = yield* receiver()
        const { id: channel } = yield* addBrowser([projectId], service.origin)
        yield* rest(channel)
        const id = yield* sendOne()
        yield* sql`UPDATE jobs SET offered_at = now() - interval '71 hours' WHERE payload ->> 'message' = ${id}`
        service.next({ status: 429, headers: { "retry-after": "7200" } })
        yield* wake(channel)
        const [delivery] = yield* allEnded(id, key)
        assert.strictEqual(delivery?.lastError, "the push service answered 429, until it was too old")
        const [next] = yield* deliveriesOf(yield* sendOne(), key)
        assert.isAbove(Date.parse(next?.nextAttemptAt ?? ""), Date.now() + 3_600_000)
      }).pipe(Effect.scoped)
  )

  it.effect("of a message, project, subscription or channel that is gone by its turn are not sent", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const service = yield* receiver()
      const gone = Effect.fnUntraced(function* (
        end: (given: {
          readonly key: string
          readonly message: string
          readonly projectId: string
          readonly channel: string
          readonly subscriber: string
        }) => Effect.Effect<unknown, unknown, TestServer | SqlClient>
      ) {
        const { key, projectId, sendOne } = yield* makeSender
        const { id: channel, subscriber } = yield* addBrowser([projectId], service.origin)
        yield* rest(channel)
        const message = yield* sendOne()
        yield* end({ key, message, projectId, channel, subscriber })
        yield* wake(channel)
        yield* eventually(
          "nothing waits",
          Effect.map(
            sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' AND lane = ${channel}`,
            ({ length }) => length === 0
          )
        )
        return yield* sql<{ isDropped: boolean }>`SELECT dropped_at IS NOT NULL AS "isDropped" FROM deliveries
          WHERE message_id = ${message}`
      })
      const dropped = [{ isDropped: true }]
      assert.deepStrictEqual(
        yield* gone(({ key, message }) => ask("DELETE", `/api/v1/messages/${message}`, { key })),
        []
      )
      assert.deepStrictEqual(
        yield* gone(({ key, projectId }) => ask("DELETE", `/api/v1/projects/${projectId}`, { key })),
        dropped
      )
      assert.deepStrictEqual(
        yield* gone(({ key, projectId, subscriber }) =>
          ask("DELETE", `/api/v1/projects/${projectId}/subscribers/${subscriber}`, { key })
        ),
        dropped
      )
      assert.deepStrictEqual(
        yield* gone(
          ({ subscriber }) => sql`DELETE FROM project_subscriptions WHERE subscriber_id = ${subscriber}`
        ),
        dropped
      )
      for (const state of ["off", "gone", "unconfirmed"])
        assert.deepStrictEqual(
          yield* gone(({ channel }) => sql`UPDATE channels SET state = ${state} WHERE id = ${channel}`),
          dropped,
          state
        )
      // The channel was turned off, and is on again.
      assert.deepStrictEqual(
        yield* gone(
          ({ message }) => sql`UPDATE deliveries SET dropped_at = now() WHERE message_id = ${message}`
        ),
        dropped
      )
      assert.deepStrictEqual(
        yield* gone(({ channel }) => sql`DELETE FROM channels WHERE id = ${channel}`),
        dropped
      )
      assert.strictEqual(service.received.length, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("whose attempt was left open are made again, marked, under the same topic and webhook-id", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { key, projectId, sendOne } = yield* makeSender
      const service = yield* receiver()
      const [browser, hook] = [
        yield* addBrowser([projectId], service.origin),
        yield* addWebhook([projectId], service.origin)
      ]
      for (const { id } of [browser, hook]) yield* rest(id)
      const message = yield* sendOne()
      // As a process leaves it that was killed in between.
      yield* sql`UPDATE jobs SET open = true, attempts = 1 WHERE payload ->> 'message' = ${message}`
      for (const { id } of [browser, hook]) yield* wake(id)
      for (const delivery of yield* allEnded(message, key))
        assert.deepInclude(delivery, { status: "delivered", attempts: 2, repeated: true })
      const ids = service.received.map(({ headers }) => headers["topic"] ?? headers["webhook-id"])
      const shown = yield* deliveriesOf(message, key)
      assert.sameMembers(
        ids,
        shown.map(({ id }) => id)
      )
    }).pipe(Effect.scoped)
  )

  it.effect("that are dead wait again by id, message, project, channel, for their owner alone", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, projectId, sendOne } = yield* makeSender
      const stranger = yield* makeStage
      const service = yield* receiver({ status: 400 })
      const { id: channel } = yield* addBrowser([projectId], service.origin)
      const messages = [yield* sendOne({ message: "m0" }), yield* sendOne({ message: "m1" })]
      const ended = Effect.forEach(messages, (id) => Effect.map(allEnded(id, key), ([one]) => one))
      const [first] = yield* ended
      const redrive = (json: object, by = key) =>
        Effect.map(ask("POST", "/api/v1/deliveries/redrive", { key: by, json }), (answer) =>
          answer.status === 200 ? (answer.json as { readonly redriven: number }).redriven : faultOf(answer)
        )
      for (const which of [
        { ids: [first?.id] },
        { message: messages[0] },
        { project: projectId },
        { channel }
      ])
        assert.strictEqual(yield* redrive(which, stranger.key), 0)
      for (const json of [{}, { channel, project: projectId }])
        assert.deepStrictEqual(yield* redrive(json), [
          400,
          "ids: expected one of ids, message, project and channel, and no other"
        ])
      for (const [json, count] of [
        [{ ids: [first?.id, "dlv_unknown"] }, 1],
        [{ message: messages[1] }, 1],
        [{ project: projectId }, 2],
        [{ channel }, 2]
      ] as const) {
        service.received.length = 0
        assert.strictEqual(yield* redrive(json), count)
        yield* eventually(
          "they were tried again",
          Effect.map(ended, () => service.received.length === count)
        )
        yield* ended
      }
      // In the order of acceptance.
      assert.deepStrictEqual(
        service.received.map(({ headers }) => headers["topic"]),
        (yield* ended).map((one) => one?.id)
      )
      yield* ask("DELETE", `/api/v1/messages/${messages[0]}`, { key })
      assert.strictEqual(yield* redrive({ channel }), 1, "the message of the other one is deleted")
    }).pipe(Effect.scoped)
  )

  it.effect("are kept 30 days after their end, and 90 where they are dead", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { key, projectId, sendOne } = yield* makeSender
      const service = yield* receiver()
      yield* addBrowser([projectId], service.origin)
      const ids: Array<string> = []
      const cases = [
        [204, 29, true],
        [204, 31, false],
        [400, 89, true],
        [400, 91, false]
      ] as const
      for (const [status, days] of cases) {
        service.next({ status })
        const id = yield* sendOne()
        yield* allEnded(id, key)
        yield* sql`UPDATE jobs_ended SET ended_at = now() - ${`${days} days`}::interval WHERE payload ->> 'message' = ${id}`
        ids.push(id)
      }
      const sweep = (name: string) =>
        sql`UPDATE job_lanes SET due_at = now() WHERE queue = ${name} AND holder IS NULL`
      yield* sweep("sweep-jobs")
      yield* sweep("sweep-deliveries")
      const isLeft = Effect.forEach(ids, (id) =>
        Effect.map(deliveriesOf(id, key), ({ length }) => length === 1)
      )
      yield* eventually(
        "the old ones are gone",
        Effect.map(isLeft, (left) => left.filter((one) => one).length === 2)
      )
      assert.deepStrictEqual(
        yield* isLeft,
        cases.map(([, , isKept]) => isKept)
      )
      for (const id of [ids[0] ?? "", ids[2] ?? ""])
        assert.strictEqual((yield* deliveriesOf(id, key))[0]?.attempts, 1)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "are made 4 at a time at a host of webhooks, 32 at a push service, and all of them in the end",
    () =>
      Effect.gen(function* () {
        for (const [add, most, count] of [
          [addWebhook, 4, 20],
          [addBrowser, 32, 50]
        ] as const) {
          const { key, projectId, sendOne } = yield* makeSender
          let [under, highest] = [0, 0]
          const full = Promise.withResolvers<void>()
          const service = yield* receiver(async (_, response) => {
            highest = Math.max(highest, ++under)
            // No answer comes before as many as may be are under way, and a while in which more would show.
            if (under === most) setTimeout(full.resolve, 300)
            await full.promise
            under--
            response.writeHead(201).end()
          })
          for (let n = 0; n < count; n++) yield* add([projectId], service.origin)
          const ended = yield* allEnded(yield* sendOne(), key)
          assert.deepStrictEqual(
            ended.map(({ attempts, status }) => [attempts, status]),
            Array.from({ length: count }, () => [1, "delivered"])
          )
          assert.strictEqual(highest, most)
          assert.strictEqual(service.received.length, count)
        }
      }).pipe(Effect.scoped)
  )

  it.effect("wait while Postgres is away, and none is repeated; sends are 503", () =>
    Effect.gen(function* () {
      const { key, projectId, sender, sendOne } = yield* makeSender
      const service = yield* receiver({ status: 201, afterMillis: 500 })
      yield* addBrowser([projectId], service.origin)
      const [first, second] = [yield* sendOne(), yield* sendOne()]
      yield* eventually(
        "an attempt is under way",
        Effect.sync(() => service.received.length === 1)
      )
      postgres.breakWire("refuse")
      assert.strictEqual((yield* send(sender)).status, 503)
      yield* Effect.sleep(1_500)
      const { ask } = yield* Readiness
      yield* eventually(
        "it is told that nothing is known of what waits",
        Effect.map(ask("notify"), (state) =>
          /^deliveries were not counted for \d+ s$/.test(state?.detail ?? "")
        )
      )
      assert.strictEqual(service.received.length, 1)
      postgres.mend()
      for (const id of [first, second])
        assert.deepInclude((yield* allEnded(id, key))[0], {
          status: "delivered",
          attempts: 1,
          repeated: false
        })
      assert.strictEqual(service.received.length, 2)
    }).pipe(Effect.scoped)
  )
})
