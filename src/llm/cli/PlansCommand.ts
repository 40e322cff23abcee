import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "name", "price_usd", "scope", "covers_direct_api", "models", "allowances"]

const tokens = (name: string) => Flag.Int(name).pipe(Flag.withDescription(`Tokens of each ${name}`))

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.plans.listPlans())
    yield* show(json, answer, ({ data }) => tableOf(columns, data))
  })
).pipe(Command.withDescription("List plans"))

const create = Command.make(
  "create",
  {
    json,
    name: Argument.String("name"),
    price: Flag.Finite("price").pipe(Flag.withDescription("USD for a period")),
    hour: tokens("hour"),
    day: tokens("day"),
    week: tokens("week"),
    scope: Flag.String("scope").pipe(
      Flag.withDescription("A word for what it is for"),
      Flag.withDefault("models")
    ),
    direct: Flag.Boolean("direct").pipe(
      Flag.withDescription("Also pays for direct completion calls, not only for agent sessions"),
      Flag.withDefault(false)
    ),
    models: Flag.String("model").pipe(
      Flag.withDescription("A model that it covers; say it again for more; default: all"),
      Flag.atLeast(0)
    )
  },
  Effect.fnUntraced(function* ({ day, direct, hour, json, models, name, price, scope, week }) {
    const { ask } = yield* Connection
    const payload = {
      name,
      price_usd: price,
      scope,
      covers_direct_api: direct,
      models: models.length === 0 ? ("*" as const) : models,
      allowances: { hour, day, week }
    }
    const answer = yield* ask((client) => client.plans.createPlan({ payload }))
    yield* show(json, answer, ({ id, name }) => `Made plan ${name}: ${id}`)
  })
).pipe(Command.withDescription("Make a plan (administrators)"))

export const plans = Command.make("plans").pipe(
  Command.withDescription("List and make plans"),
  Command.withSubcommands([list, create])
)
