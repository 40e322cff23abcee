import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { given, someOf } from "#src/cli/Given.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "name", "kind", "prefix", "user_id", "expires_at", "created_at"]

const user = Flag.String("user").pipe(
  Flag.withDescription("Whose keys, by user id (administrators)"),
  Flag.optional
)

const list = Command.make(
  "list",
  { json, user },
  Effect.fnUntraced(function* ({ json, user }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.keys.listKeys({ query: given("user_id", user) }))
    yield* show(json, answer, ({ data }) => tableOf(columns, data))
  })
).pipe(Command.withDescription("List keys"))

const create = Command.make(
  "create",
  {
    json,
    user,
    name: Argument.String("name"),
    kind: Flag.Literals("kind", ["account", "router"]).pipe(Flag.withDefault("account")),
    expires: Flag.String("expires").pipe(
      Flag.withDescription("ISO-8601 instant, such as 2027-01-01T00:00:00Z"),
      Flag.optional
    ),
    models: Flag.String("model").pipe(
      Flag.withDescription("A model that a router key may use; say it again for more"),
      Flag.atLeast(0)
    ),
    collections: Flag.String("collection").pipe(
      Flag.withDescription("A collection (col_…) that a router key may use; say it again for more"),
      Flag.atLeast(0)
    ),
    spendLimit: Flag.Finite("spend-limit").pipe(
      Flag.withDescription("USD that a router key may spend"),
      Flag.optional
    ),
    rate: Flag.Int("rate").pipe(
      Flag.withDescription("Requests per minute, instead of the default"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ collections, expires, json, kind, models, name, rate, spendLimit, user }) {
    const { ask } = yield* Connection
    const payload = {
      name,
      kind,
      ...given("user_id", user),
      ...given("models", someOf(models)),
      ...given("collections", someOf(collections)),
      ...given("spend_limit_usd", spendLimit),
      ...given("expires_at", expires),
      ...given("rate_limit_per_minute", rate)
    }
    const answer = yield* ask((client) => client.keys.createKey({ payload }))
    yield* show(
      json,
      answer,
      (made) => `Made ${made.kind} key ${made.id}. It is shown only now:\n${made.key}`
    )
  })
).pipe(Command.withDescription("Make a key"))

const revoke = Command.make(
  "revoke",
  { json, id: Argument.String("id").pipe(Argument.withDescription("Id of the key (key_…)")) },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.keys.revokeKey({ params: { id } }))
    yield* show(json, answer, () => `Revoked ${id}; it stops working everywhere within a second`)
  })
).pipe(Command.withDescription("Revoke a key"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("List, make and revoke keys"),
  Command.withSubcommands([list, create, revoke])
)
