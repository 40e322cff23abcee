import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import { TestServer } from "#test/harness/TestServer.ts"

export const perUser = 50

export const loopback = EgressAllow.parse("127.0.0.1") ?? EgressAllow.nothing

export const served = TestServer.own({
  rooms: new Set(["accounts", "mail"]),
  egressAllow: loopback,
  limits: { suppressionsPerUser: perUser }
})

/** A delivery of a message from `<b>news</b>@example.com`; answers its id. */
export const addDelivery = Effect.fnUntraced(function* (of: {
  readonly owner: string
  readonly address: string
  /** the sender's own unsubscribe address */
  readonly url: string | null
}) {
  const sql = yield* SqlClient
  const [message, id] = [newId("eml"), newId("dlv")]
  yield* sql`INSERT INTO mail_messages ${sql.insert({
    id: message,
    user_id: of.owner,
    header_id: `${message}@example.com`,
    from_address: "<b>news</b>@example.com",
    subject: "News",
    is_bulk: true,
    unsubscribe_url: of.url,
    size: 1
  })}`
  yield* sql`INSERT INTO mail_deliveries ${sql.insert({
    id,
    message_id: message,
    place: 0,
    user_id: of.owner,
    kind: "to",
    address: of.address
  })}`
  return id
})
