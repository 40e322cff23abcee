import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type BadRequest,
  Conflict,
  invalidField,
  type NotFound,
  type ServiceUnavailable,
  type Unauthorized
} from "#schemas/core/Problem.ts"
import type { Channel, ChannelChange, NewChannel } from "#schemas/notify/Settings.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import type { ChannelOf } from "#streams/notify/channels/Channel.ts"
import { hostOf, kindOf } from "#streams/notify/channels/Kinds.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { type ChannelAddress, makeChannelAddress } from "./ChannelAddress.ts"
import { Confirmations } from "./Confirmations.ts"
import { makeDropWaiting } from "./DropWaiting.ts"

/** A row of `channels`, as its subscriber may know it. */
type Row = ChannelOf & {
  readonly id: string
  readonly subscriber_id: string
  readonly name: string
  readonly address: string
  readonly state: Channel["state"]
  readonly created_at: Date
}

/** A channel that was written; `secret` is that of a new webhook. */
export interface Added {
  readonly channel: Channel
  readonly secret?: string
}

type ChangeFault = NotFound | BadRequest | Conflict | ServiceUnavailable | SqlError

/** Browsers and webhooks of subscribers. Source: contract/notify#subscribers. */
export class Channels extends Context.Service<
  Channels,
  {
    readonly list: (subscriberId: string) => Effect.Effect<ReadonlyArray<Channel>, SqlError>
    /** undefined: neither a browser nor a webhook is given */
    readonly check: (
      channel: NewChannel,
      of?: string
    ) => Effect.Effect<ChannelAddress | undefined, BadRequest | ServiceUnavailable>
    /** Within a transaction: no other writes this address until it ends. Answers the subscriber whose browser it is. */
    readonly lock: (address: ChannelAddress) => Effect.Effect<string | undefined, SqlError>
    /**
     * Within a transaction that has the lock. A browser that was another subscriber's is that one's no more. `isTrusted`: the
     * project's owner gave it, and it needs no confirmation.
     */
    readonly put: (
      subscriberId: string,
      address: ChannelAddress,
      isTrusted?: boolean
    ) => Effect.Effect<Added, Conflict | Unauthorized | SqlError>
    /** `add` of an address that was checked */
    readonly addChecked: (
      subscriberId: string,
      address: ChannelAddress,
      serverUrl: string
    ) => Effect.Effect<Added, BadRequest | Conflict | Unauthorized | SqlError>
    readonly add: (
      subscriberId: string,
      channel: NewChannel,
      serverUrl: string
    ) => Effect.Effect<Added, BadRequest | Conflict | ServiceUnavailable | Unauthorized | SqlError>
    readonly change: (
      subscriberId: string,
      id: string,
      change: ChannelChange
    ) => Effect.Effect<Channel, ChangeFault>
    readonly remove: (subscriberId: string, id: string) => Effect.Effect<void, NotFound | SqlError>
  }
>()("signalbox/notify/Channels") {
  static readonly layer = Layer.effect(
    Channels,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const check = yield* makeChannelAddress
      const confirmations = yield* Confirmations
      const dropWaiting = yield* makeDropWaiting
      const parts = { sql, dropWaiting, channelsMax: limits.channelsPerSubscriber }
      const { lock, put } = putting(parts)
      const addChecked: Channels["Service"]["addChecked"] = Effect.fnUntraced(
        function* (subscriberId, address, serverUrl) {
          const added = yield* sql.withTransaction(Effect.andThen(lock(address), put(subscriberId, address)))
          yield* confirmations.ask(added.channel.id, address, serverUrl)
          return added
        }
      )
      return Channels.of({
        addChecked,
        check,
        lock,
        put,
        list: (subscriberId) =>
          Effect.map(
            sql<Row>`SELECT * FROM channels WHERE subscriber_id = ${subscriberId} ORDER BY created_at, id`,
            (rows) => rows.map(shown)
          ),
        add: Effect.fn("Channels.add")(function* (subscriberId, channel, serverUrl) {
          const address = yield* check(channel)
          return yield* address === undefined ? noAddress() : addChecked(subscriberId, address, serverUrl)
        }),
        ...changing(parts, check, lock)
      })
    })
  )
}

/** Source: contract/notify#subscribers. */
export const noAddress = () => invalidField("push", "is required, unless there is a webhook")

const shown = (row: Row): Channel => {
  const { created_at: createdAt, id, kind, name, state } = row
  return { id, kind, name, state, host: hostOf(row), createdAt }
}

/** Only the browser itself and this server know its keys. */
const isSame = (target: object, { target: other }: ChannelAddress): boolean =>
  "auth" in target &&
  "auth" in other &&
  "p256dh" in target &&
  target.auth === other.auth &&
  target.p256dh === other.p256dh

/** An address of these is one channel, of the subscriber who named it last. */
const movesAlong = (kind: Channel["kind"]): boolean => kind === "push" || kind === "telegram"

interface Parts {
  readonly sql: SqlClient
  readonly dropWaiting: Effect.Success<typeof makeDropWaiting>
  readonly channelsMax: number
}

/** The column `after_seq` of a channel that is about to be active: it takes nothing that was offered while it was off, or before. */
const afterOff = (sql: SqlClient) => sql`CASE state WHEN 'off' THEN nextval('job_seqs') ELSE after_seq END`

const putting = ({ channelsMax, dropWaiting, sql }: Parts) => {
  const lock: Channels["Service"]["lock"] = Effect.fnUntraced(function* (address) {
    if (!movesAlong(address.kind)) return undefined
    yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${`channel ${address.address}`}, 0))`
    const [row] =
      yield* sql<Row>`SELECT * FROM channels WHERE kind = ${address.kind} AND address = ${address.address}`
    if (row === undefined) return undefined
    return address.kind === "telegram" || isSame(row.target, address) ? row.subscriber_id : undefined
  })
  const put: Channels["Service"]["put"] = Effect.fnUntraced(function* (
    subscriberId,
    { address, kind, name, target },
    isTrusted = false
  ) {
    // Another one that is made for the same subscriber waits here, and counts this one.
    const [owner] =
      yield* sql`UPDATE subscribers SET idle_since = NULL WHERE id = ${subscriberId} RETURNING id`
    // They have left since their token was looked at.
    if (owner === undefined) return yield* invalidKey()
    const [there] = yield* sql<Row>`SELECT * FROM channels WHERE kind = ${kind} AND address = ${address}
      AND (${movesAlong(kind)} OR subscriber_id = ${subscriberId}) FOR UPDATE`
    if (there !== undefined && !movesAlong(kind))
      return yield* Conflict.of("webhook.url: is among the channels already", { param: "webhook.url" })
    if (there?.subscriber_id === subscriberId) {
      const [row] =
        yield* sql<Row>`UPDATE channels SET target = ${JSON.stringify(target)}::jsonb, state = 'active',
        after_seq = ${afterOff(sql)}, dead_in_a_row = 0, name = coalesce(nullif(${name}, ''), name) WHERE id = ${there.id} RETURNING *`
      return { channel: shown(row ?? there) }
    }
    if (there !== undefined) {
      yield* dropWaiting([there.id])
      yield* sql`DELETE FROM channels WHERE id = ${there.id}`
    }
    const [counted] = yield* sql<{ count: number }>`
      SELECT count(*)::int AS count FROM channels WHERE subscriber_id = ${subscriberId}`
    if ((counted?.count ?? 0) >= channelsMax)
      return yield* Conflict.of(`A subscriber has at most ${channelsMax} channels`, {
        code: "too_many_channels"
      })
    const [made] =
      yield* sql<Row>`INSERT INTO channels (id, subscriber_id, kind, name, address, target, state)
      VALUES (${newId("chn")}, ${subscriberId}, ${kind}, ${name}, ${address}, ${JSON.stringify(target)}::jsonb,
        ${isTrusted || kindOf(kind).confirmation === undefined ? "active" : "unconfirmed"}) RETURNING *`
    if (made === undefined) return yield* Effect.die(new Error("a channel was not written"))
    return { channel: shown(made), ...("secret" in target && { secret: target.secret }) }
  })
  return { lock, put }
}

/** Why the channel cannot be turned on or off as it is. */
const refusalOf = ({ kind, state }: Row, change: ChannelChange): Conflict | undefined => {
  if (change.state === undefined || change.push !== undefined) return undefined
  if (state === "unconfirmed")
    return Conflict.of("state: open the link that was posted to the webhook first", { param: "state" })
  return kind === "push" && state === "gone"
    ? Conflict.of("state: the browser has ended this subscription; it has to make another one", {
        param: "state"
      })
    : undefined
}

const changing = (
  { dropWaiting, sql }: Parts,
  check: Channels["Service"]["check"],
  lock: Channels["Service"]["lock"]
): Pick<Channels["Service"], "change" | "remove"> => {
  const own = (subscriberId: string, id: string) =>
    Effect.flatMap(
      sql<Row>`SELECT * FROM channels WHERE id = ${id} AND subscriber_id = ${subscriberId} FOR UPDATE`,
      ([row]) => (row === undefined ? Effect.fail(notFound("Channel")) : Effect.succeed(row))
    )
  /** In one order: two browsers may take each other's addresses. */
  const lockBoth = (id: string, address: ChannelAddress) =>
    Effect.andThen(
      lock(address),
      sql`SELECT id FROM channels WHERE id = ${id} OR (kind = 'push' AND address = ${address.address})
        ORDER BY id FOR UPDATE`
    )
  /** A browser's new subscription, in the row of its old one: what waits goes there. */
  const replace = Effect.fnUntraced(function* (row: Row, { address, target }: ChannelAddress) {
    if (row.kind !== "push") return yield* invalidField("push", "is for the channel of a browser")
    const others = yield* sql<{ id: string }>`SELECT id FROM channels
      WHERE kind = 'push' AND address = ${address} AND id <> ${row.id}`
    yield* dropWaiting(others.map(({ id }) => id))
    for (const { id } of others) yield* sql`DELETE FROM channels WHERE id = ${id}`
    yield* sql`UPDATE channels SET address = ${address}, target = ${JSON.stringify(target)}::jsonb, dead_in_a_row = 0,
      state = CASE state WHEN 'off' THEN 'off' ELSE 'active' END WHERE id = ${row.id}`
  })
  return {
    change: Effect.fn("Channels.change")(function* (subscriberId, id, change) {
      const address = yield* check(change.push === undefined ? {} : { push: change.push })
      const write = Effect.gen(function* () {
        if (address !== undefined) yield* lockBoth(id, address)
        const row = yield* own(subscriberId, id)
        const refusal = refusalOf(row, change)
        if (refusal !== undefined) return yield* refusal
        if (address !== undefined) yield* replace(row, address)
        if (change.state === "off") yield* dropWaiting([id])
        const [changed] = yield* sql<Row>`UPDATE channels SET name = coalesce(${change.name ?? null}, name),
          dead_in_a_row = CASE WHEN ${change.state ?? null}::text IS NULL THEN dead_in_a_row ELSE 0 END,
          after_seq = ${change.state === "active" ? afterOff(sql) : sql`after_seq`},
          state = coalesce(${change.state ?? null}, state) WHERE id = ${id} RETURNING *`
        return shown(changed ?? row)
      })
      return yield* sql.withTransaction(write)
    }),
    remove: (subscriberId, id) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* own(subscriberId, id)
          yield* dropWaiting([id])
          yield* sql`DELETE FROM channels WHERE id = ${id}`
        })
      )
  }
}
