/**
 * One finished model call as the log of calls keeps it (UTF-8 JSON): what the ledger settles and usage is counted from.
 * The log is the only way from a call to Postgres and ClickHouse, so that a crash loses no settled charge.
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
  /** the model that answered last; "" where none did */
  readonly resolved: string
  /** id of the collection, "" where none was asked */
  readonly collection: string
  readonly kind: "chat" | "embeddings"
  readonly streamed: boolean
  /** the status of the answer; 499 where the client had gone before there was one */
  readonly status: number
  /** of the error's envelope; "" for a success */
  readonly errorCode: string
  /** a stream that ended with an error chunk is none, whatever its status */
  readonly success: boolean
  readonly attempts: number
  readonly promptTokens: number
  readonly completionTokens: number
  /** among the prompt tokens, those that the upstream read from its cache */
  readonly cachedTokens: number
  /** to the first content of the answer; null where there was none */
  readonly firstTokenMillis: number | null
  readonly settlement: Settlement
}

/** What a call leaves in the ledger. Amounts are integers as decimal text. */
export interface Settlement {
  /** pico-USD taken from the credits */
  readonly charge: string
  /** pico-USD that the call cost above what was held: the platform's loss */
  readonly loss: string
  /** drawn from the plan's allowances */
  readonly covered: boolean
  /** what is taken from each limit; [] for a call that cost nothing */
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
  /** whether it was leased before; what a key without a cap spends is only counted */
  readonly leased: boolean
}

export const nothingDrawn: Settlement = { charge: "0", loss: "0", covered: false, draws: [] }

export const encode = (record: CallRecord): Uint8Array => Buffer.from(JSON.stringify(record))

export const decode = (bytes: Uint8Array): CallRecord => JSON.parse(Buffer.from(bytes).toString("utf8"))
