import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "user_id", "plan_id", "status", "current_period_end", "created_at"]

const list = Command.make(
  "list",
  {
    json,
    user: Flag.String("user").pipe(
      Flag.withDescription("Whose, by user id; default: everybody's"),
      Flag.withDefault("")
    )
  },
  Effect.fnUntraced(function* ({ json, user }) {
    const { ask } = yield* Connection
    const query = user === "" ? {} : { user_id: user }
    const answer = yield* ask((client) => client.subscriptions.listSubscriptions({ query }))
    yield* show(json, answer, ({ data }) => tableOf(columns, data))
  })
).pipe(Command.withDescription("List subscriptions (administrators)"))

const own = Command.make(
  "show",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.subscriptions.readSubscription())
    yield* show(json, answer, ({ allowances, plan }) =>
      plan === null
        ? "Not subscribed: usage is charged to the credits"
        : `${plan.name}\n${tableOf(["window", "token_limit", "tokens_used", "resets_at"], allowances)}`
    )
  })
).pipe(Command.withDescription("Show one's own subscription"))

const create = Command.make(
  "create",
  {
    json,
    user: Argument.String("user").pipe(Argument.withDescription("Id of the user (usr_…)")),
    plan: Argument.String("plan").pipe(Argument.withDescription("Id of the plan (pln_…)")),
    until: Argument.String("until").pipe(
      Argument.withDescription("End of the period, such as 2027-01-01T00:00:00Z")
    )
  },
  Effect.fnUntraced(function* ({ json, plan, until, user }) {
    const { ask } = yield* Connection
    const payload = { user_id: user, plan_id: plan, current_period_end: until }
    const answer = yield* ask((client) => client.subscriptions.createSubscription({ payload }))
    yield* show(json, answer, ({ id, user_id }) => `Subscribed ${user_id}: ${id}`)
  })
).pipe(Command.withDescription("Subscribe a user to a plan (administrators)"))

const cancel = Command.make(
  "cancel",
  {
    json,
    id: Argument.String("id").pipe(Argument.withDescription("Id of the subscription (sub_…)"))
  },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.subscriptions.cancelSubscription({ params: { id } }))
    yield* show(json, answer, () => `Canceled ${id}; further calls are charged to the credits`)
  })
).pipe(Command.withDescription("Cancel a subscription at once (administrators)"))

export const subscriptions = Command.make("subscriptions").pipe(
  Command.withDescription("Show, list, make and cancel subscriptions"),
  Command.withSubcommands([own, list, create, cancel])
)
