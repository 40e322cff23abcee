import { Argument, type Command, Flag } from "effect/cli"
import { LogName } from "#schemas/system/QuarantineApi.ts"
import { id, many, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import { admin } from "./AdminCommand.ts"
import { status } from "./StatusCommand.ts"

const users = noun("users", "List, make and delete users (administrators)", [
  verb(
    "list",
    "List users",
    {
      limit: Flag.Int("limit").pipe(Flag.withDescription("How many, 1 to 100"), Flag.withDefault(100)),
      offset: Flag.Int("offset").pipe(Flag.withDescription("How many to skip"), Flag.withDefault(0))
    },
    (client, query) => client.account.listUsers({ query }),
    ({ users }) => tableOf(["id", "email", "name", "role", "createdAt"], users)
  ),
  verb(
    "create",
    "Make a user",
    {
      email: Argument.String("email"),
      name: optional(Flag.String("name"), "Name to show; default: the e-mail address"),
      role: Flag.Literals("role", ["user", "admin"]).pipe(Flag.withDefault("user"))
    },
    (client, { email, name = email, role }) => client.admin.createUser({ payload: { email, name, role } }),
    (user) => `Made ${user.role} ${user.email}: ${user.id}`
  ),
  verb(
    "delete",
    "Delete a user",
    id("Id of the user (usr_…)"),
    (client, params) => client.admin.deleteUser({ params }),
    (_, { id }) => `Deleted ${id}; their keys and sessions end within a second`
  ),
  verb(
    "login-link",
    "Make a link that signs a user in, once",
    id("Id of the user (usr_…)"),
    (client, params) => client.admin.createLoginLink({ params }),
    ({ expiresAt, url }) => `${url}\nIt works once, until ${expiresAt.toISOString()}.`
  )
])

const user_id = optional(Flag.String("user"), "Whose keys, by user id (administrators)")

const keys = noun("keys", "List, make and revoke keys", [
  verb(
    "list",
    "List keys",
    { user_id },
    (client, query) => client.keys.listKeys({ query }),
    ({ data }) => tableOf(["id", "name", "kind", "prefix", "user_id", "expires_at", "created_at"], data)
  ),
  verb(
    "create",
    "Make a key",
    {
      user_id,
      name: Argument.String("name"),
      kind: Flag.Literals("kind", ["account", "router"]).pipe(Flag.withDefault("account")),
      expires_at: optional(Flag.String("expires"), "ISO-8601 instant, such as 2027-01-01T00:00:00Z"),
      scopes: many(
        "scope",
        "full (the default), read, write, read:<bucket> or write:<bucket>, for account keys; say it again for more"
      ),
      models: many("model", "A model that a router key may use; say it again for more"),
      collections: many(
        "collection",
        "A collection (col_…) that a router key may use; say it again for more"
      ),
      spend_limit_usd: optional(Flag.Finite("spend-limit"), "USD that a router key may spend"),
      rate_limit_per_minute: optional(Flag.Int("rate"), "Requests per minute, instead of the default")
    },
    (client, payload) => client.keys.createKey({ payload }),
    ({ id, key, kind }) => `Made ${kind} key ${id}. It is shown only now:\n${key}`
  ),
  verb(
    "revoke",
    "Revoke a key",
    id("Id of the key (key_…)"),
    (client, params) => client.keys.revokeKey({ params }),
    (_, { id }) => `Revoked ${id}; it stops working everywhere within a second`
  )
])

const place = {
  log: Argument.Literals("log", LogName.literals).pipe(Argument.withDescription("Whose record it is")),
  offset: Argument.Int("offset").pipe(Argument.withDescription("Its place in the log, as `list` shows it"))
}

const quarantine = noun(
  "quarantine",
  "Records that were set aside because their store takes them in no company",
  [
    verb(
      "list",
      "List the records that were accepted, and that their store refuses",
      {},
      (client) => client.quarantine.listSetAside(),
      ({ records }) =>
        records.length === 0
          ? "No record is set aside"
          : tableOf(["log", "offset", "bytes", "accepted_at", "set_aside_at", "problem"], records)
    ),
    verb(
      "retry",
      "Offer a record to its store again",
      place,
      (client, { log, offset }) =>
        client.quarantine.retrySetAside({ params: { log, offset: String(offset) } }),
      ({ log, offset }) => `Record ${offset} of ${log} is in its store`
    ),
    verb(
      "drop",
      "Give a record up for good",
      place,
      (client, { log, offset }) =>
        client.quarantine.dropSetAside({ params: { log, offset: String(offset) } }),
      ({ log, offset }) => `Record ${offset} of ${log} is given up`
    )
  ]
)

const log = noun("log", "The logs of accepted events, calls and settlements (administrators)", [quarantine])

const jobs = noun("jobs", "Work that waits, and work that was given up (administrators)", [
  verb(
    "list",
    "List the queues and the newest dead jobs",
    {},
    (client) => client.jobs.listJobs(),
    ({ dead, queues }) =>
      [
        queues.length === 0
          ? "No queue has jobs"
          : tableOf(["queue", "waiting", "dead", "late_seconds"], queues),
        ...(dead.length === 0
          ? []
          : [tableOf(["queue", "lane", "id", "attempts", "ended_at", "error"], dead)])
      ].join("\n\n")
  ),
  verb(
    "redrive",
    "Have dead jobs of a queue wait again",
    {
      queue: Argument.String("queue").pipe(Argument.withDescription("Name of the queue")),
      ids: many("id", "Id of a dead job, as `list` shows it; may be repeated. Left out: the oldest 10,000")
    },
    (client, { queue, ids }) =>
      client.jobs.redriveJobs({ params: { queue }, payload: ids === undefined ? {} : { ids } }),
    ({ redriven }, { queue }) => `${redriven} jobs of ${queue} wait again`
  )
])

/** Commands of `signalbox` for this room. */
export const commands: ReadonlyArray<Command.Command.Any> = [status, users, keys, log, jobs, admin]
