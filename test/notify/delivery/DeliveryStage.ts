import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import type { ChannelKind, Targets } from "#streams/notify/channels/Channel.ts"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { HttpReceiver, type Reaction } from "#test/harness/HttpReceiver.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { PushBrowser } from "#test/notify/channels/PushBrowser.ts"
import { api, subscriber } from "#test/notify/Stage.ts"

/** Services of channels on loopback may be spoken to in plain http. */
export const loopback = EgressAllow.parse("127.0.0.1") ?? EgressAllow.nothing

/** A service of channels that ends with the scope. */
export const receiver = (otherwise?: Reaction) =>
  Effect.acquireRelease(
    Effect.promise(() => HttpReceiver.start(otherwise)),
    (open) => Effect.promise(() => open.close())
  )

export interface AddedChannel {
  readonly id: string
  readonly subscriber: string
}

/** As joining leaves it. */
export const addChannel = Effect.fnUntraced(function* (
  ofSubscriber: string,
  kind: ChannelKind,
  address: string,
  target: Targets[ChannelKind]
) {
  const sql = yield* SqlClient
  const id = newId("chn")
  yield* Effect.orDie(
    sql`INSERT INTO channels (id, subscriber_id, kind, address, target)
      VALUES (${id}, ${ofSubscriber}, ${kind}, ${address}, ${JSON.stringify(target)}::jsonb)`
  )
  const added: AddedChannel = { id, subscriber: ofSubscriber }
  return added
})

/** A browser that subscribed to the projects, at this push service. */
export const addBrowser = Effect.fnUntraced(function* (projects: ReadonlyArray<string>, origin: string) {
  const endpoint = `${origin}/push/${randomBytes(6).toString("hex")}`
  const browser = yield* Effect.promise(() => PushBrowser.make(endpoint))
  return {
    ...(yield* addChannel(yield* subscriber(projects), "push", endpoint, browser.target)),
    browser,
    endpoint
  }
})

/** A webhook that was subscribed to the projects; by its own subscriber where none is named. */
export const addWebhook = Effect.fnUntraced(function* (
  projects: ReadonlyArray<string>,
  origin: string,
  ofSubscriber?: string
) {
  const target = {
    url: `${origin}/hook/${randomBytes(6).toString("hex")}`,
    secret: webhookSecret(randomBytes(24))
  }
  const owner = ofSubscriber ?? (yield* subscriber(projects))
  return { ...(yield* addChannel(owner, "webhook", target.url, target)), target }
})

export interface ShownDelivery {
  readonly id: string
  readonly channel: string
  readonly kind: string
  readonly status: "waiting" | "held" | "delivered" | "dead" | "dropped"
  readonly attempts: number
  readonly nextAttemptAt: string | null
  readonly lastError: string | null
  readonly repeated: boolean
  readonly endedAt: string | null
}

/** The deliveries of a message, as its owner sees them. */
export const deliveriesOf = (message: string, key: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("GET", `${api}/messages/${message}/deliveries?limit=100`, { key }),
      ({ json }) => (json as { readonly deliveries: ReadonlyArray<ShownDelivery> }).deliveries
    )
  )

/** Waits until each delivery of the message has ended. */
export const allEnded = Effect.fnUntraced(function* (message: string, key: string) {
  let shown: ReadonlyArray<ShownDelivery> = []
  yield* eventually(
    "all deliveries have ended",
    Effect.map(deliveriesOf(message, key), (deliveries) => {
      shown = deliveries
      return deliveries.every(({ endedAt }) => endedAt !== null)
    })
  )
  return shown
})

/** As after an answer that asked for a pause: what is sent to the channel waits. */
export const rest = (channel: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`INSERT INTO job_lanes (queue, lane, due_at, waiting, rests_until)
      VALUES ('deliveries', ${channel}, 'infinity', 0, now() + interval '1 hour')`
  )

/** The pause is over. */
export const wake = (channel: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`UPDATE job_lanes SET due_at = now(), rests_until = '-infinity'
      WHERE queue = 'deliveries' AND lane = ${channel} AND waiting > 0`
  )

export const channelState = (channel: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{
        state: string
        dead_in_a_row: number
      }>`SELECT state, dead_in_a_row FROM channels WHERE id = ${channel}`,
      ([row]) => row
    )
  )

/** Short pauses, so that what is made again is made soon, and what is late is told soon. */
export const impatient = {
  jobRetryMinMillis: 20,
  jobRetryMaxMillis: 200,
  jobPollMillis: 100,
  deliveryPauseMillis: 20,
  breakerFailures: 1_000_000,
  jobCountsMillis: 100,
  deliveriesLateMillis: 1_000,
  // Not of Postgres on a busy machine: a wire that is cut refuses at once.
  postgresConnectMillis: 60_000
}
