import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { LogName } from "#schemas/system/QuarantineApi.ts"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

const columns = ["log", "offset", "bytes", "accepted_at", "set_aside_at", "problem"]

const place = {
  json,
  log: Argument.Literals("log", LogName.literals).pipe(Argument.withDescription("Whose record it is")),
  offset: Argument.Int("offset").pipe(Argument.withDescription("Its place in the log, as `list` shows it"))
}

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const answer = yield* ask((client) => client.quarantine.listSetAside())
    yield* show(json, answer, ({ records }) =>
      records.length === 0 ? "No record is set aside" : tableOf(columns, records)
    )
  })
).pipe(Command.withDescription("List the records that were accepted, and that their store refuses"))

const retry = Command.make(
  "retry",
  place,
  Effect.fnUntraced(function* ({ json, log, offset }) {
    const { ask } = yield* Connection
    const params = { log, offset: String(offset) }
    const answer = yield* ask((client) => client.quarantine.retrySetAside({ params }))
    yield* show(json, answer, (record) => `Record ${record.offset} of ${record.log} is in its store`)
  })
).pipe(Command.withDescription("Offer a record to its store again"))

const drop = Command.make(
  "drop",
  place,
  Effect.fnUntraced(function* ({ json, log, offset }) {
    const { ask } = yield* Connection
    const params = { log, offset: String(offset) }
    const answer = yield* ask((client) => client.quarantine.dropSetAside({ params }))
    yield* show(json, answer, (record) => `Record ${record.offset} of ${record.log} is given up`)
  })
).pipe(Command.withDescription("Give a record up for good"))

const quarantine = Command.make("quarantine").pipe(
  Command.withDescription("Records that were set aside because their store takes them in no company"),
  Command.withSubcommands([list, retry, drop])
)

export const log = Command.make("log").pipe(
  Command.withDescription("The logs of accepted events, calls and settlements (administrators)"),
  Command.withSubcommands([quarantine])
)
