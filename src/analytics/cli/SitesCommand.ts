import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "name", "domain", "timezone", "public", "firstEventAt", "createdAt"]
const id = Argument.String("id").pipe(Argument.withDescription("Id of the site (st_…)"))

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.sites.listSites())
    yield* show(json, answer, ({ sites }) => tableOf(columns, sites))
  })
).pipe(Command.withDescription("List one's own sites"))

const create = Command.make(
  "create",
  {
    json,
    domain: Argument.String("domain").pipe(Argument.withDescription("Host name, such as example.com")),
    name: Flag.String("name").pipe(
      Flag.withDescription("Name to show; default: the domain"),
      Flag.withDefault("")
    ),
    timezone: Flag.String("timezone").pipe(Flag.withDescription("IANA time zone"), Flag.withDefault("UTC")),
    public: Flag.Boolean("public").pipe(
      Flag.withDescription("Let anyone read its statistics"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ domain, json, name, public: isPublic, timezone }) {
    const { ask } = yield* Connection
    const payload = { domain, name: name === "" ? domain : name, timezone, public: isPublic }
    const answer = yield* ask((client) => client.sites.createSite({ payload }))
    yield* show(
      json,
      answer,
      ({ secret, site }) => `Made ${site.domain}: ${site.id}\nIts secret, shown only now: ${secret}`
    )
  })
).pipe(Command.withDescription("Make a site"))

const remove = Command.make(
  "delete",
  { id, json },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.sites.deleteSite({ params: { id } }))
    yield* show(json, answer, () => `Deleted ${id}`)
  })
).pipe(Command.withDescription("Delete a site"))

const rotate = Command.make(
  "rotate-secret",
  { id, json },
  Effect.fnUntraced(function* ({ id, json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.sites.rotateSiteSecret({ params: { id } }))
    yield* show(json, answer, ({ secret }) => `The new secret, shown only now: ${secret}`)
  })
).pipe(Command.withDescription("Replace a site's secret; the old one stops within a second"))

export const sites = Command.make("sites").pipe(
  Command.withDescription("List, make and delete sites"),
  Command.withSubcommands([list, create, remove, rotate])
)
