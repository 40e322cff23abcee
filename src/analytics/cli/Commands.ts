import { Argument, type Command, Flag } from "effect/cli"
import { id, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import { importCommand } from "./ImportCommand.ts"
import { rebuildCommand } from "./RebuildCommand.ts"

const site = id("Id of the site (st_…)")

const sites = noun("sites", "List, make, reset and delete sites", [
  verb(
    "list",
    "List one's own sites",
    {},
    (client) => client.sites.listSites(),
    ({ sites }) => tableOf(["id", "name", "domain", "timezone", "public", "firstEventAt", "createdAt"], sites)
  ),
  verb(
    "create",
    "Make a site",
    {
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
    (client, { domain, name, ...more }) =>
      client.sites.createSite({ payload: { ...more, domain, name: name === "" ? domain : name } }),
    ({ secret, site }) => `Made ${site.domain}: ${site.id}\nIts secret, shown only now: ${secret}`
  ),
  verb(
    "delete",
    "Delete a site",
    site,
    (client, params) => client.sites.deleteSite({ params }),
    (_, { id }) => `Deleted ${id}`
  ),
  verb(
    "retention",
    "Keep the statistics of some days, or of all",
    {
      ...site,
      days: optional(Flag.Int("days"), "UTC days before today, 1 to 3650; without it all are kept")
    },
    (client, { days = null, id }) =>
      client.sites.updateSite({ params: { id }, payload: { retentionDays: days } }),
    ({ id, retentionDays }) =>
      retentionDays === null
        ? `All days of ${id} are kept`
        : `${id} keeps ${retentionDays} days; older ones are deleted`
  ),
  verb(
    "reset",
    "Delete all statistics of a site up to now; counting goes on",
    site,
    (client, params) => client.sites.resetSite({ params }),
    ({ resetAt }, { id }) => `The statistics of ${id} begin at ${resetAt}`
  ),
  verb(
    "rotate-secret",
    "Replace a site's secret; the old one stops within a second",
    site,
    (client, params) => client.sites.rotateSiteSecret({ params }),
    ({ secret }) => `The new secret, shown only now: ${secret}`
  )
])

/** The room's commands of `signalbox`. */
export const commands: ReadonlyArray<Command.Command.Any> = [sites, importCommand, rebuildCommand]
