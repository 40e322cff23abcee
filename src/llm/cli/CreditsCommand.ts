import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["id", "user_id", "amount_usd", "note", "created_at"]

const read = Command.make(
  "show",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.credits.readCredits())
    yield* show(
      json,
      answer,
      (credits) =>
        `Balance ${credits.balance_usd} USD; topped up ${credits.lifetime_topped_up_usd}, ` +
        `spent ${credits.lifetime_spent_usd}; this key has spent ${credits.key.spent_usd}`
    )
  })
).pipe(Command.withDescription("Show one's own credits"))

const topUp = Command.make(
  "topup",
  {
    json,
    user: Argument.String("user").pipe(Argument.withDescription("Id of the user (usr_…)")),
    amount: Argument.Finite("usd").pipe(Argument.withDescription("Amount in USD")),
    note: Flag.String("note").pipe(Flag.withDescription("What it is for"), Flag.withDefault("")),
    idempotencyKey: Flag.String("idempotency-key").pipe(
      Flag.withDescription("Say it again to repeat a top-up of which the outcome is not known"),
      Flag.withDefault("")
    )
  },
  Effect.fnUntraced(function* ({ amount, idempotencyKey, json, note, user }) {
    const { ask } = yield* Connection
    const payload = { user_id: user, amount_usd: amount, ...(note === "" ? {} : { note }) }
    const headers = { "idempotency-key": idempotencyKey === "" ? randomUUID() : idempotencyKey }
    const answer = yield* ask((client) => client.credits.topUp({ payload, headers }))
    yield* show(json, answer, ({ amount_usd, id, user_id }) => `Added ${amount_usd} USD to ${user_id}: ${id}`)
  })
).pipe(Command.withDescription("Add credits (administrators)"))

const topUps = Command.make(
  "topups",
  {
    json,
    user: Flag.String("user").pipe(
      Flag.withDescription("Whose, by user id (administrators)"),
      Flag.withDefault("")
    )
  },
  Effect.fnUntraced(function* ({ json, user }) {
    const { ask } = yield* Connection
    const query = user === "" ? {} : { user_id: user }
    const answer = yield* ask((client) => client.credits.listTopUps({ query }))
    yield* show(json, answer, ({ data }) => tableOf(columns, data))
  })
).pipe(Command.withDescription("List top-ups, newest first"))

export const credits = Command.make("credits").pipe(
  Command.withDescription("Show and add credits"),
  Command.withSubcommands([read, topUp, topUps])
)
