import { Clock, Context, Effect, Layer } from "effect"
import { type PicoUsd, usdOf } from "#schemas/llm/Money.ts"
import type {
  UsageBucket,
  UsageOfWindow,
  UsageOverview,
  UsageParameters,
  UsageSource,
  UsageWindow,
  UsageWindowName,
  UsedModel
} from "#schemas/llm/Usage.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { bucketStarts, type OpenWindow, openWindow, usageWindows } from "#streams/llm/UsageWindows.ts"
import { UserDirectory } from "#src/accounts/Users.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { CallDrain } from "./CallDrain.ts"
import {
  type Counted,
  type ModelRow,
  modelsStatement,
  type SeriesRow,
  seriesStatement,
  type WindowsRow,
  windowsStatement
} from "./UsageStatements.ts"

type UsageFailed = SinkUnavailable | ClickHouseUnavailable | ClickHouseFailed

/** Users' usage. Readers see every call that this process had finished before they asked. */
export class Usage extends Context.Service<
  Usage,
  {
    readonly windows: (
      userId: string,
      source: UsageSource | undefined
    ) => Effect.Effect<UsageOverview["usage"], UsageFailed>
    readonly ofWindow: (
      userId: string,
      name: UsageWindowName,
      source: UsageParameters["source"]
    ) => Effect.Effect<UsageOfWindow, UsageFailed>
  }
>()("signalbox/llm/Usage") {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const drain = yield* CallDrain
      const users = yield* UserDirectory
      const madeMillis = (userId: string, nowMillis: number): number =>
        Math.min(users.get(userId)?.createdAt.getTime() ?? nowMillis, nowMillis)

      return Usage.of({
        windows: Effect.fn("Usage.windows")(function* (userId, source) {
          yield* drain.flush
          const nowMillis = yield* Clock.currentTimeMillis
          const made = madeMillis(userId, nowMillis)
          const open = (name: UsageWindowName) => openWindow(name, nowMillis, made)
          // `ever` holds all calls, also from before a clock was set.
          const starts = usageWindows.map((name) => (name === "ever" ? 0 : open(name).startMillis))
          const { parameters, sql } = windowsStatement(userId, source, starts)
          const rows = yield* clickhouse.query<WindowsRow>(sql, parameters)
          const ordered = starts.toSorted((a, b) => a - b)
          const figures = (name: UsageWindowName): UsageWindow => {
            const window = open(name)
            // The first so many of the ordered windows hold a call; equal starts hold the same calls.
            const rank = ordered.indexOf(name === "ever" ? 0 : window.startMillis)
            return windowFigures(window, totalOf(rows.filter((row) => Number(row.windows) > rank)))
          }
          return {
            hour: figures("hour"),
            day: figures("day"),
            week: figures("week"),
            month: figures("month"),
            year: figures("year"),
            ever: figures("ever")
          }
        }),
        ofWindow: Effect.fn("Usage.ofWindow")(function* (userId, name, source) {
          yield* drain.flush
          const nowMillis = yield* Clock.currentTimeMillis
          const window = openWindow(name, nowMillis, madeMillis(userId, nowMillis))
          const series = seriesStatement(userId, source, window)
          const models = modelsStatement(userId, source, window)
          const [cells, top] = yield* Effect.all(
            [
              clickhouse.query<SeriesRow>(series.sql, series.parameters),
              clickhouse.query<ModelRow>(models.sql, models.parameters)
            ],
            { concurrency: 2 }
          )
          return {
            window: name,
            usage: { [name]: windowFigures(window, totalOf(cells)) },
            series: seriesOf(bucketStarts(window, nowMillis), cells),
            topModels: top.map(usedModel)
          }
        })
      })
    })
  )
}

interface Total {
  readonly requests: number
  readonly successes: number
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly cost: PicoUsd
}

/** Exact: amounts and tokens are added up as integers, and turned into numbers at the very end. */
const totalOf = (rows: ReadonlyArray<Counted>): Total => ({
  requests: rows.reduce((sum, row) => sum + Number(row.requests), 0),
  successes: rows.reduce((sum, row) => sum + Number(row.successes), 0),
  promptTokens: rows.reduce((sum, row) => sum + BigInt(row.prompt), 0n),
  completionTokens: rows.reduce((sum, row) => sum + BigInt(row.completion), 0n),
  cost: rows.reduce((sum, row) => sum + BigInt(row.cost), 0n)
})

/** The contract has integers; only an upstream that lies can get beyond 2^53. */
const countOf = (value: bigint): number => Math.min(Number(value), Number.MAX_SAFE_INTEGER)

const figuresOf = (total: Total) => ({
  requests: total.requests,
  totalTokens: countOf(total.promptTokens + total.completionTokens),
  costUsd: usdOf(total.cost)
})

const windowFigures = (window: OpenWindow, total: Total): UsageWindow => ({
  window: window.name,
  ...figuresOf(total),
  successes: total.successes,
  errors: total.requests - total.successes,
  promptTokens: countOf(total.promptTokens),
  completionTokens: countOf(total.completionTokens),
  since: new Date(window.startMillis).toISOString(),
  resetsAt: window.resetMillis === undefined ? null : new Date(window.resetMillis).toISOString()
})

/** A call outside, by a clock that is ahead, counts in the nearest bucket: the series adds up to the window. */
const seriesOf = (
  starts: ReadonlyArray<number>,
  cells: ReadonlyArray<SeriesRow>
): ReadonlyArray<UsageBucket> => {
  const inBucket = new Map<number, Array<SeriesRow>>(starts.map((start) => [start, []]))
  const [first = 0, last = 0] = [starts[0], starts.at(-1)]
  for (const cell of cells) {
    inBucket.get(Math.min(last, Math.max(first, Number(cell.bucket) * 1000)))?.push(cell)
  }
  return starts.map((start) => {
    const total = totalOf(inBucket.get(start) ?? [])
    return {
      bucket: new Date(start).toISOString(),
      errors: total.requests - total.successes,
      ...figuresOf(total)
    }
  })
}

const usedModel = (row: ModelRow): UsedModel => {
  const total = totalOf([row])
  return { model: row.model, errors: total.requests - total.successes, ...figuresOf(total) }
}
