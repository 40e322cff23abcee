import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Collection } from "#schemas/llm/Collection.ts"
import { Connection } from "#src/cli/Connection.ts"
import { given, someOf } from "#src/cli/Given.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "model", "name", "auto_route", "models"]
const id = Argument.String("id").pipe(Argument.withDescription("Id of the collection (col_…)"))

const user = Flag.String("user").pipe(
  Flag.withDescription("Whose collections, by user id (administrators)"),
  Flag.optional
)
const slug = Flag.String("slug").pipe(
  Flag.withDescription("Name in collection/{slug}; default: made from the name"),
  Flag.optional
)
const models = Flag.String("model").pipe(
  Flag.withDescription("A model of the collection; say it again for the next one to try"),
  Flag.atLeast(0)
)
const autoRoute = Flag.Boolean("auto-route").pipe(
  Flag.withDescription("Try the next model when one fails (--no-auto-route: the first one answers alone)"),
  Flag.optional
)

/** Members in order; one that the upstream no longer offers has a question mark. */
const row = ({ models, ...collection }: Collection) => ({
  ...collection,
  models: models.map(({ available, id }) => (available ? id : `${id}?`)).join(" ")
})

const list = Command.make(
  "list",
  { json, user },
  Effect.fnUntraced(function* ({ json, user }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) =>
      client.collections.listCollections({ query: given("user_id", user) })
    )
    yield* show(json, answer, ({ data }) => tableOf(columns, data.map(row)))
  })
).pipe(Command.withDescription("List collections"))

const create = Command.make(
  "create",
  { json, user, slug, models, autoRoute, name: Argument.String("name") },
  Effect.fnUntraced(function* ({ autoRoute, json, models, name, slug, user }) {
    const { ask } = yield* Connection
    const payload = {
      name,
      models,
      ...given("slug", slug),
      ...given("auto_route", autoRoute),
      ...given("user_id", user)
    }
    const answer = yield* ask((client) => client.collections.createCollection({ payload }))
    yield* show(json, answer, (made) => `Made ${made.id}; ask it as ${made.model}`)
  })
).pipe(Command.withDescription("Make a collection"))

const update = Command.make(
  "update",
  {
    json,
    id,
    slug,
    models,
    autoRoute,
    name: Flag.String("name").pipe(Flag.withDescription("Another name"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ autoRoute, id, json, models, name, slug }) {
    const { ask } = yield* Connection
    const payload = {
      ...given("name", name),
      ...given("slug", slug),
      ...given("auto_route", autoRoute),
      ...given("models", someOf(models))
    }
    const answer = yield* ask((client) => client.collections.updateCollection({ params: { id }, payload }))
    yield* show(json, answer, (changed) => tableOf(columns, [row(changed)]))
  })
).pipe(Command.withDescription("Change a collection; models replace those before"))

const remove = Command.make(
  "delete",
  { id, json },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.collections.deleteCollection({ params: { id } }))
    yield* show(json, answer, () => `Deleted ${id}`)
  })
).pipe(Command.withDescription("Delete a collection"))

export const collections = Command.make("collections").pipe(
  Command.withDescription("List, make, change and delete collections of models"),
  Command.withSubcommands([list, create, update, remove])
)
