import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import type { LogName, SetAsideRecord } from "#schemas/system/QuarantineApi.ts"
import { NotSetAside } from "#streams/kernel/LogQuarantine.ts"
import type { SetAside } from "#streams/kernel/Quarantine.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { Conflict, NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"

const resource = (log: LogName, record: SetAside): SetAsideRecord => ({
  log,
  offset: record.offset,
  problem: record.problem,
  bytes: record.bytes,
  accepted_at: new Date(record.appendedAtMillis).toISOString(),
  set_aside_at: new Date(record.setAsideAtMillis).toISOString()
})

const notFound = ({ message }: NotSetAside) => Effect.fail(NotFound.of(`offset: ${message}`))

const unavailable = ({ message }: { readonly message: string }) =>
  Effect.fail(ServiceUnavailable.of(`The record stays set aside: ${message}`))

const problems = {
  NotSetAside: notFound,
  LogUnavailable: unavailable,
  SinkUnavailable: unavailable,
  SinkRefused: ({ message }: { readonly message: string }) =>
    Effect.fail(Conflict.of(`The record stays set aside: ${message}`))
}

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "quarantine",
  Effect.fnUntraced(function* (handlers) {
    const { all } = yield* Quarantines

    const find = Effect.fnUntraced(function* (log: LogName, text: string) {
      const offset = Number(text)
      const quarantine = all().get(log)
      const record = quarantine?.list().find((one) => one.offset === offset)
      if (quarantine === undefined || record === undefined) return yield* new NotSetAside({ offset })
      return { quarantine, record, offset }
    })

    return handlers.handleAll({
      listSetAside: () =>
        Effect.sync(() => ({
          records: Array.from(all(), ([log, { list }]) =>
            list().map((record) => resource(log, record))
          ).flat()
        })),
      retrySetAside: ({ params: { log, offset: text } }) =>
        Effect.gen(function* () {
          const { offset, quarantine, record } = yield* find(log, text)
          yield* quarantine.retry(offset)
          return resource(log, record)
        }).pipe(Effect.catchTags(problems)),
      dropSetAside: ({ params: { log, offset: text } }) =>
        Effect.gen(function* () {
          const { offset, quarantine, record } = yield* find(log, text)
          yield* quarantine.drop(offset)
          return resource(log, record)
        }).pipe(Effect.catchTags({ NotSetAside: notFound, LogUnavailable: unavailable }))
    })
  })
)
