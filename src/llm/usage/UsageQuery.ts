import type { UsageSource } from "#schemas/llm/Usage.ts"
import type { BucketUnit, OpenWindow } from "#streams/llm/UsageWindows.ts"

/** The counts in a row of every answer. Sums are text: they may be beyond 2^53. */
export interface Counted {
  readonly requests: number | string
  readonly successes: number | string
  readonly prompt: string
  readonly completion: string
  /** pico-USD */
  readonly cost: string
}

const sums = `count() AS requests, countIf(success) AS successes,
  toString(sum(prompt_tokens)) AS prompt, toString(sum(completion_tokens)) AS completion,
  toString(sum(charge)) AS cost`

interface Statement {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
}

const instant = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`

const where = (source: UsageSource | undefined): string =>
  `user_id = {user:String}${source === undefined ? "" : " AND source = {source:String}"}`

/**
 * Every window in one reading of the user's calls. All windows end now, so ordered by their starts each holds the one after
 * it: a call is counted once, under how many of them it is in.
 */
export const windowsStatement = (
  user: string,
  source: UsageSource | undefined,
  startsMillis: ReadonlyArray<number>
): Statement => {
  const inside = startsMillis.map((_, index) => `(ended >= ${instant(`start${index}`)})`)
  return {
    sql: `SELECT ${inside.join(" + ")} AS windows, ${sums} FROM calls WHERE ${where(source)} GROUP BY windows`,
    parameters: {
      user,
      source,
      ...Object.fromEntries(startsMillis.map((start, index) => [`start${index}`, start]))
    }
  }
}

export interface WindowsRow extends Counted {
  /** how many windows hold these calls */
  readonly windows: number
}

const bucketOf: Readonly<Record<BucketUnit, string>> = {
  minute: "toStartOfMinute(ended)",
  hour: "toStartOfHour(ended)",
  day: "toStartOfDay(ended)",
  month: "toStartOfMonth(ended)"
}

const inWindow = (source: UsageSource | undefined, { resetMillis }: OpenWindow): string =>
  // There are no calls from before the account, so `ever` needs no bound; a clock may have been set since.
  resetMillis === undefined ? where(source) : `${where(source)} AND ended >= ${instant("start")}`

export const seriesStatement = (
  user: string,
  source: UsageSource | undefined,
  window: OpenWindow
): Statement => ({
  sql: `SELECT toUnixTimestamp(toDateTime(${bucketOf[window.bucketUnit]}, 'UTC')) AS bucket, ${sums}
    FROM calls WHERE ${inWindow(source, window)} GROUP BY bucket ORDER BY bucket`,
  parameters: { user, source, start: window.startMillis }
})

export interface SeriesRow extends Counted {
  /** epoch seconds of its start */
  readonly bucket: number
}

/** Models in one answer. Source: contract/llm#usage. */
const topModels = 10

export const modelsStatement = (
  user: string,
  source: UsageSource | undefined,
  window: OpenWindow
): Statement => ({
  sql: `SELECT resolved AS model, ${sums} FROM calls WHERE ${inWindow(source, window)} AND resolved != ''
    GROUP BY model ORDER BY sum(charge) DESC, sum(prompt_tokens) + sum(completion_tokens) DESC,
      requests DESC, model LIMIT ${topModels}`,
  parameters: { user, source, start: window.startMillis }
})

export interface ModelRow extends Counted {
  readonly model: string
}
