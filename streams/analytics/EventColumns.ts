/** A column of the `events` table: its name and ClickHouse type. RowBinary writes LowCardinality(T) as T. */
export interface EventColumn {
  readonly name: string
  readonly type: string
}

/**
 * The columns of `events` after `(log_id, seq)`, in the order in which `EventRecord` writes them. The one place that
 * names them: the migration, the insert and the codec's test read this list. '' stands for unknown everywhere.
 *
 * Time is `day` (the UTC day of the identity) and `at_ms`, milliseconds since its midnight, which for a ping after
 * midnight go beyond the day; `lag_ms` is how much later the event came in. The three take half the bytes of two
 * timestamps. Statements may say `ts` and `received`, which the table derives from them.
 */
export const eventColumns: ReadonlyArray<EventColumn> = [
  { name: "site", type: "LowCardinality(String)" },
  { name: "kind", type: "Enum8('pageview' = 1, 'event' = 2, 'engage' = 3)" },
  { name: "day", type: "Date" },
  { name: "at_ms", type: "UInt32" },
  { name: "lag_ms", type: "Int64" },
  { name: "visitor", type: "UInt64" },
  { name: "name", type: "LowCardinality(String)" },
  { name: "hostname", type: "LowCardinality(String)" },
  { name: "path", type: "LowCardinality(String)" },
  { name: "pv", type: "String" },
  { name: "engaged_ms", type: "UInt32" },
  { name: "referrer", type: "LowCardinality(String)" },
  { name: "source", type: "LowCardinality(String)" },
  { name: "channel", type: "LowCardinality(String)" },
  { name: "utm_source", type: "LowCardinality(String)" },
  { name: "utm_medium", type: "LowCardinality(String)" },
  { name: "utm_campaign", type: "LowCardinality(String)" },
  { name: "utm_term", type: "LowCardinality(String)" },
  { name: "utm_content", type: "LowCardinality(String)" },
  { name: "country", type: "LowCardinality(String)" },
  { name: "browser", type: "LowCardinality(String)" },
  { name: "browser_version", type: "LowCardinality(String)" },
  { name: "os", type: "LowCardinality(String)" },
  { name: "device", type: "LowCardinality(String)" },
  { name: "props_keys", type: "Array(LowCardinality(String))" },
  { name: "props_values", type: "Array(String)" }
]
