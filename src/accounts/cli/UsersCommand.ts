import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "email", "name", "role", "createdAt"]
const id = Argument.String("id").pipe(Argument.withDescription("Id of the user (usr_…)"))

const list = Command.make(
  "list",
  {
    json,
    limit: Flag.Int("limit").pipe(Flag.withDescription("How many, 1 to 100"), Flag.withDefault(100)),
    offset: Flag.Int("offset").pipe(Flag.withDescription("How many to skip"), Flag.withDefault(0))
  },
  Effect.fnUntraced(function* ({ json, limit, offset }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.account.listUsers({ query: { limit, offset } }))
    yield* show(json, answer, ({ users }) => tableOf(columns, users))
  })
).pipe(Command.withDescription("List users"))

const create = Command.make(
  "create",
  {
    json,
    email: Argument.String("email"),
    name: Flag.String("name").pipe(
      Flag.withDescription("Name to show; default: the e-mail address"),
      Flag.optional
    ),
    role: Flag.Literals("role", ["user", "admin"]).pipe(Flag.withDefault("user"))
  },
  Effect.fnUntraced(function* ({ email, json, name, role }) {
    const { ask } = yield* Connection
    const payload = { email, name: Option.getOrElse(name, () => email), role }
    const answer = yield* ask((client) => client.admin.createUser({ payload }))
    yield* show(json, answer, (user) => `Made ${user.role} ${user.email}: ${user.id}`)
  })
).pipe(Command.withDescription("Make a user"))

const remove = Command.make(
  "delete",
  { json, id },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.admin.deleteUser({ params: { id } }))
    yield* show(json, answer, () => `Deleted ${id}; their keys stop working within a second`)
  })
).pipe(Command.withDescription("Delete a user"))

export const users = Command.make("users").pipe(
  Command.withDescription("List, make and delete users (administrators)"),
  Command.withSubcommands([list, create, remove])
)
