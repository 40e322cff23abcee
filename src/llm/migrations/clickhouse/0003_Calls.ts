import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"

/**
 * Model calls, by their user and then by time: a usage window is one range of rows. A partition a year, so that `ever` reads
 * few parts. Synced and deduplicated like `events`: the log of calls lets go of its records on this table's word.
 */
const table = `
CREATE TABLE IF NOT EXISTS calls (
  \`log_id\` UInt64 CODEC(ZSTD(1)),
  \`seq\` UInt64 CODEC(Delta(8), ZSTD(1)),
  \`user_id\` String CODEC(ZSTD(1)),
  \`ended\` DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  \`duration_ms\` UInt32 CODEC(T64, ZSTD(1)),
  \`first_token_ms\` Nullable(UInt32) CODEC(ZSTD(1)),
  \`id\` String CODEC(ZSTD(1)),
  \`key_id\` String CODEC(ZSTD(1)),
  \`source\` Enum8('api' = 1, 'agent' = 2) CODEC(ZSTD(1)),
  \`kind\` LowCardinality(String) CODEC(ZSTD(1)),
  \`streamed\` Bool CODEC(ZSTD(1)),
  \`requested\` String CODEC(ZSTD(1)),
  \`resolved\` LowCardinality(String) CODEC(ZSTD(1)),
  \`collection\` String CODEC(ZSTD(1)),
  \`status\` UInt16 CODEC(ZSTD(1)),
  \`error_code\` LowCardinality(String) CODEC(ZSTD(1)),
  \`success\` Bool CODEC(ZSTD(1)),
  \`attempts\` UInt16 CODEC(ZSTD(1)),
  \`prompt_tokens\` UInt64 CODEC(T64, ZSTD(1)),
  \`completion_tokens\` UInt64 CODEC(T64, ZSTD(1)),
  \`cached_tokens\` UInt64 CODEC(T64, ZSTD(1)),
  \`charge\` UInt128 COMMENT 'pico-USD' CODEC(ZSTD(1)),
  \`loss\` UInt128 COMMENT 'pico-USD' CODEC(ZSTD(1)),
  \`covered\` Bool CODEC(ZSTD(1)),
  INDEX of_log (log_id, seq) TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYear(ended)
ORDER BY (user_id, ended)
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  non_replicated_deduplication_window = 1000`

export const calls: ClickHouseMigration = { id: 3, name: "calls", statements: [table] }
