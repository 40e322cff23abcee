import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"

/** A row for each process that began to count: inserts into `visits` of an earlier epoch than the last are refused. */
const epochs = `
CREATE TABLE IF NOT EXISTS counting_epochs (\`epoch\` UInt64)
ENGINE = MergeTree
ORDER BY epoch
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`

/** Hashes of the callers' event ids, for the process that counts next: kept as long as a repeated id is detected. */
const ids = `
CREATE TABLE IF NOT EXISTS event_ids (
  \`site\` LowCardinality(String) CODEC(ZSTD(1)),
  \`hash\` UInt64 CODEC(ZSTD(1)),
  \`received\` DateTime('UTC') CODEC(Delta(4), ZSTD(1)),
  \`log_id\` UInt64 CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(received, 'UTC')
ORDER BY (site, hash)
TTL received + INTERVAL 2 DAY
SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1`

export const counting: ClickHouseMigration = { id: 4, name: "counting", statements: [epochs, ids] }
