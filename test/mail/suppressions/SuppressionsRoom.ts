import { Effect, Layer } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { SqlClient } from "effect/sql/SqlClient"
import { strictBodies } from "#schemas/core/StrictBodies.ts"
import { SuppressionsApi } from "#schemas/mail/Suppression.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import { mailSuppressions as tables } from "#src/mail/migrations/postgres/0035_MailSuppressions.ts"
import { Suppressions } from "#src/mail/suppressions/Suppressions.ts"
import * as SuppressionsRoutes from "#src/mail/suppressions/SuppressionsRoutes.ts"
import * as Forwards from "#src/mail/unsubscribe/Forwards.ts"
import * as UnsubscribeRoutes from "#src/mail/unsubscribe/UnsubscribeRoutes.ts"
import { Unsubscribes } from "#src/mail/unsubscribe/Unsubscribes.ts"
import { UnsubscribeTokens } from "#src/mail/unsubscribe/UnsubscribeTokens.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import type { Room } from "#src/Room.ts"
import { rooms } from "#src/Rooms.ts"
import { TestServer } from "#test/harness/TestServer.ts"

/** The columns of mails and deliveries that unsubscribe links read. */
export const mails = [
  `CREATE TABLE IF NOT EXISTS mail_messages (
     id text PRIMARY KEY, user_id text NOT NULL, header_id text NOT NULL, from_address text NOT NULL,
     subject text NOT NULL, is_bulk boolean NOT NULL, unsubscribe_url text, size integer NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS mail_deliveries (
     id text PRIMARY KEY, message_id text NOT NULL, place integer NOT NULL, user_id text NOT NULL, kind text NOT NULL,
     address text NOT NULL, opted_out_at timestamptz)`
]

export const perUser = 50

const api = HttpApi.make("signalbox").add(SuppressionsApi).annotate(HttpApi.PayloadParseOptions, strictBodies)

/** Suppressions and unsubscribe links as a room of their own. */
const room = {
  name: "suppressions",
  needs: [],
  api,
  rawApi: HttpApi.make("signalbox"),
  migrations: {
    postgres: [
      {
        id: postgresMigrations.length + 1,
        name: "suppressions",
        statements: [
          ...mails,
          ...tables.statements.map((text) =>
            text.replace(/^CREATE (TABLE|INDEX) /, "CREATE $1 IF NOT EXISTS ")
          )
        ]
      }
    ],
    clickhouse: []
  },
  commands: async () => [],
  server: async () => ({
    served: Layer.mergeAll(
      HttpApiBuilder.layer(api).pipe(Layer.provide(SuppressionsRoutes.layer)),
      UnsubscribeRoutes.layer,
      Forwards.layer
    ).pipe(
      Layer.provide(Unsubscribes.layer),
      Layer.provide([Suppressions.layerOf(perUser), UnsubscribeTokens.layer])
    ),
    raw: Layer.empty,
    paths: UnsubscribeRoutes.paths
  })
} as const satisfies Room<"suppressions">

export const served = TestServer.own(
  {
    rooms: new Set(["accounts", "suppressions"]),
    egressAllow: EgressAllow.parse("127.0.0.1") ?? EgressAllow.nothing
  },
  { rooms: [...rooms, room] }
)

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
