import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["provider", "percent", "isDefault"]

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.markups.listMarkups())
    yield* show(json, answer, ({ markups }) => tableOf(columns, markups))
  })
).pipe(Command.withDescription("List what each provider's prices are marked up by"))

const set = Command.make(
  "set",
  {
    json,
    provider: Argument.String("provider").pipe(
      Argument.withDescription("First segment of its models' ids, such as openai")
    ),
    percent: Argument.Finite("percent").pipe(Argument.withDescription("0 to 1000"))
  },
  Effect.fnUntraced(function* ({ json, percent, provider }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) =>
      client.markups.setMarkup({ params: { provider }, payload: { percent } })
    )
    yield* show(
      json,
      answer,
      (markup) =>
        `${markup.provider} is marked up by ${markup.percent} % from now on, everywhere within a second`
    )
  })
).pipe(Command.withDescription("Set a provider's markup"))

export const markups = Command.make("markups").pipe(
  Command.withDescription("What is added to the upstream's prices, by provider (administrators)"),
  Command.withSubcommands([list, set])
)
