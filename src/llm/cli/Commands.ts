import { randomUUID } from "node:crypto"
import { Argument, type Command, Flag } from "effect/cli"
import type { Collection } from "#schemas/llm/Collection.ts"
import { id, many, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import { ledger } from "./LedgerCommand.ts"
import { sandboxUpstream } from "./SandboxUpstreamCommand.ts"

/** Members in order; one that the upstream no longer offers has a question mark. */
const collectionsTable = (collections: ReadonlyArray<Collection>): string =>
  tableOf(
    ["id", "model", "name", "auto_route", "models"],
    collections.map(({ models, ...collection }) => ({
      ...collection,
      models: models.map(({ available, id }) => (available ? id : `${id}?`)).join(" ")
    }))
  )

const owner = {
  user_id: optional(Flag.String("user"), "Whose collections, by user id (administrators)")
}
const collectionFields = {
  slug: optional(Flag.String("slug"), "Name in collection/{slug}; default: made from the name"),
  models: many("model", "A model of the collection; say it again for the next one to try"),
  auto_route: optional(
    Flag.Boolean("auto-route"),
    "Try the next model when one fails (--no-auto-route: the first one answers alone)"
  )
}
const collection = id("Id of the collection (col_…)")

const collections = noun("collections", "List, make, change and delete collections of models", [
  verb(
    "list",
    "List collections",
    owner,
    (client, query) => client.collections.listCollections({ query }),
    ({ data }) => collectionsTable(data)
  ),
  verb(
    "create",
    "Make a collection",
    { ...owner, ...collectionFields, name: Argument.String("name") },
    (client, { models = [], ...more }) =>
      client.collections.createCollection({ payload: { models, ...more } }),
    ({ id, model }) => `Made ${id}; ask it as ${model}`
  ),
  verb(
    "update",
    "Change a collection; models replace those before",
    { ...collection, ...collectionFields, name: optional(Flag.String("name"), "Another name") },
    (client, { id, ...payload }) => client.collections.updateCollection({ params: { id }, payload }),
    (changed) => collectionsTable([changed])
  ),
  verb(
    "delete",
    "Delete a collection",
    collection,
    (client, params) => client.collections.deleteCollection({ params }),
    (_, { id }) => `Deleted ${id}`
  )
])

/** Only the rows of one user; of all where it is empty. */
const ofUser = (about: string) => ({
  user: Flag.String("user").pipe(Flag.withDescription(about), Flag.withDefault(""))
})
const queryOf = ({ user }: { readonly user: string }) => (user === "" ? {} : { user_id: user })
const user_id = Argument.String("user").pipe(Argument.withDescription("Id of the user (usr_…)"))

const credits = noun("credits", "Show and add credits", [
  verb(
    "show",
    "Show one's own credits",
    {},
    (client) => client.credits.readCredits(),
    (own) =>
      `Balance ${own.balance_usd} USD; topped up ${own.lifetime_topped_up_usd}, ` +
      `spent ${own.lifetime_spent_usd}; this key has spent ${own.key.spent_usd}`
  ),
  verb(
    "topup",
    "Add credits (administrators)",
    {
      user_id,
      amount_usd: Argument.Finite("usd").pipe(Argument.withDescription("Amount in USD")),
      note: Flag.String("note").pipe(Flag.withDescription("What it is for"), Flag.withDefault("")),
      repeated: Flag.String("idempotency-key").pipe(
        Flag.withDescription("Say it again to repeat a top-up of which the outcome is not known"),
        Flag.withDefault("")
      )
    },
    (client, { amount_usd, note, repeated, user_id }) =>
      client.credits.topUp({
        payload: { user_id, amount_usd, ...(note === "" ? {} : { note }) },
        headers: { "idempotency-key": repeated === "" ? randomUUID() : repeated }
      }),
    ({ amount_usd, id, user_id }) => `Added ${amount_usd} USD to ${user_id}: ${id}`
  ),
  verb(
    "topups",
    "List top-ups, newest first",
    ofUser("Whose, by user id (administrators)"),
    (client, given) => client.credits.listTopUps({ query: queryOf(given) }),
    ({ data }) => tableOf(["id", "user_id", "amount_usd", "note", "created_at"], data)
  )
])

const tokens = (name: string) => Flag.Int(name).pipe(Flag.withDescription(`Tokens of each ${name}`))

const plans = noun("plans", "List and make plans", [
  verb(
    "list",
    "List plans",
    {},
    (client) => client.plans.listPlans(),
    ({ data }) =>
      tableOf(["id", "name", "price_usd", "scope", "covers_direct_api", "models", "allowances"], data)
  ),
  verb(
    "create",
    "Make a plan (administrators)",
    {
      name: Argument.String("name"),
      price_usd: Flag.Finite("price").pipe(Flag.withDescription("USD for a period")),
      allowances: { hour: tokens("hour"), day: tokens("day"), week: tokens("week") },
      scope: Flag.String("scope").pipe(
        Flag.withDescription("A word for what it is for"),
        Flag.withDefault("models")
      ),
      covers_direct_api: Flag.Boolean("direct").pipe(
        Flag.withDescription("Also pays for direct completion calls, not only for agent sessions"),
        Flag.withDefault(false)
      ),
      models: many("model", "A model that it covers; say it again for more; default: all")
    },
    (client, { models = "*" as const, ...more }) => client.plans.createPlan({ payload: { models, ...more } }),
    ({ id, name }) => `Made plan ${name}: ${id}`
  )
])

const subscriptions = noun("subscriptions", "Show, list, make and cancel subscriptions", [
  verb(
    "show",
    "Show one's own subscription",
    {},
    (client) => client.subscriptions.readSubscription(),
    ({ allowances, plan }) =>
      plan === null
        ? "Not subscribed: usage is charged to the credits"
        : `${plan.name}\n${tableOf(["window", "token_limit", "tokens_used", "resets_at"], allowances)}`
  ),
  verb(
    "list",
    "List subscriptions (administrators)",
    ofUser("Whose, by user id; default: everybody's"),
    (client, given) => client.subscriptions.listSubscriptions({ query: queryOf(given) }),
    ({ data }) => tableOf(["id", "user_id", "plan_id", "status", "current_period_end", "created_at"], data)
  ),
  verb(
    "create",
    "Subscribe a user to a plan (administrators)",
    {
      user_id,
      plan_id: Argument.String("plan").pipe(Argument.withDescription("Id of the plan (pln_…)")),
      current_period_end: Argument.String("until").pipe(
        Argument.withDescription("End of the period, such as 2027-01-01T00:00:00Z")
      )
    },
    (client, payload) => client.subscriptions.createSubscription({ payload }),
    ({ id, user_id }) => `Subscribed ${user_id}: ${id}`
  ),
  verb(
    "cancel",
    "Cancel a subscription at once (administrators)",
    id("Id of the subscription (sub_…)"),
    (client, params) => client.subscriptions.cancelSubscription({ params }),
    (_, { id }) => `Canceled ${id}; further calls are charged to the credits`
  )
])

const markups = noun("markups", "What is added to the upstream's prices, by provider (administrators)", [
  verb(
    "list",
    "List what each provider's prices are marked up by",
    {},
    (client) => client.markups.listMarkups(),
    ({ markups }) => tableOf(["provider", "percent", "isDefault"], markups)
  ),
  verb(
    "set",
    "Set a provider's markup",
    {
      provider: Argument.String("provider").pipe(
        Argument.withDescription("First segment of its models' ids, such as openai")
      ),
      percent: Argument.Finite("percent").pipe(Argument.withDescription("0 to 1000"))
    },
    (client, { percent, provider }) =>
      client.markups.setMarkup({ params: { provider }, payload: { percent } }),
    ({ percent, provider }) =>
      `${provider} is marked up by ${percent} % from now on, everywhere within a second`
  )
])

/** Commands of `signalbox` for this room. */
export const commands: ReadonlyArray<Command.Command.Any> = [
  collections,
  credits,
  plans,
  subscriptions,
  markups,
  ledger,
  sandboxUpstream
]
