/**
 * One finished model call, which the log of calls keeps (its bytes: CallRow.ts): the source of the ledger's settlement and of
 * usage. The log is the only way from a call to Postgres and ClickHouse, so that a crash loses no settled charge.
 */
export interface CallRecord {
  /** `req_…`, unique: an entry of the ledger is unique on it and its kind */
  readonly id: string
  readonly userId: string
  readonly keyId: string
  readonly source: "api" | "agent"
  /** epoch milliseconds at which the request came */
  readonly startedAt: number
  /** epoch milliseconds at which it was over: its place in usage windows */
  readonly endedAt: number
  /** as sent: a model's id or `collection/{slug}` */
  readonly requested: string
  /** the model that answered last, or where none did was tried last; "" where none was */
  readonly resolved: string
  /** id of the collection, "" where none was asked */
  readonly collection: string
  readonly kind: "chat" | "embeddings"
  readonly streamed: boolean
  /** the status of the answer; 499 where the client had gone before there was one */
  readonly status: number
  /** of the error's envelope; "" for a success */
  readonly errorCode: string
  /** a stream that ended with an error chunk is none, with any status */
  readonly success: boolean
  readonly attempts: number
  readonly promptTokens: number
  readonly completionTokens: number
  /** among the prompt tokens, those that the upstream read from its cache */
  readonly cachedTokens: number
  /** to the first content of the answer; null where there was none */
  readonly firstTokenMillis: number | null
  readonly settlement: Settlement
  /** the part of its cost not reported by the upstream; absent: none */
  readonly estimates?: ReadonlyArray<CostEstimate>
}

/** Why the platform pays something itself. */
const lossReasons = [
  /** it cost more than was held */
  "beyond_hold",
  /** the upstream charges for a model that costs callers nothing */
  "free_model",
  /** a try that came to nothing, or broke off */
  "failed_try",
  /** a call that this platform ended, or whose later stages failed */
  "not_charged"
] as const
export type LossReason = (typeof lossReasons)[number]

export interface Loss {
  readonly reason: LossReason
  /** pico-USD */
  readonly amount: string
}

/** Why a cost is reckoned here and not the upstream's own. */
const estimateReasons = [
  /** the upstream told no usage */
  "no_usage",
  /** it told one that the request and the model cannot have come to */
  "usage_out_of_bounds",
  /** … or such a cost: the tokens count, at the list's prices */
  "cost_out_of_bounds",
  /** the model has no price in the list, and the upstream told none */
  "no_price",
  /** its client left, and the usage did not come in time */
  "abandoned",
  /** it was ended here, before its usage */
  "cut",
  /** the try failed before its usage */
  "failed_try"
] as const
export type EstimateReason = (typeof estimateReasons)[number]

export interface CostEstimate {
  readonly reason: EstimateReason
  /** pico-USD that it was taken for, before it was known who pays */
  readonly amount: string
}

/** The ledger entries of a call. Amounts are integers as decimal text. */
export interface Settlement {
  /** pico-USD taken from the credits */
  readonly charge: string
  /** pico-USD charged to no limit: the platform's loss */
  readonly loss: string
  /** of what it is made up; absent: all of it is beyond the hold */
  readonly losses?: ReadonlyArray<Loss>
  /** drawn from the plan's allowances */
  readonly covered: boolean
  /** the amount taken from each limit; [] for a call that cost nothing */
  readonly draws: ReadonlyArray<Draw>
}

/** A part of one row of `limits` that the call has used up. */
export interface Draw {
  /** `credits:<user id>`, `key:<key id>`, `allowance:<subscription id>:<hour|day|week>` */
  readonly limit: string
  /** epoch milliseconds; 0 for limits without windows */
  readonly windowStart: number
  /** pico-USD, or tokens of an allowance */
  readonly amount: string
  /** whether it was leased before; spending of a key without a cap is only counted */
  readonly leased: boolean
}

export const nothingDrawn: Settlement = { charge: "0", loss: "0", covered: false, draws: [] }
