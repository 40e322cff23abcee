import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { pageIdSql } from "#streams/analytics/PageIds.ts"

/** The paths behind the numbers, with the last day that has a visit with them. */
const pageNames = `
CREATE TABLE IF NOT EXISTS page_names (
  \`site\` LowCardinality(String) CODEC(ZSTD(1)),
  \`id\` UInt64 CODEC(ZSTD(1)),
  \`path\` String CODEC(ZSTD(3)),
  \`day\` Date CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(day)
ORDER BY (site, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`

const idsOf = (paths: string): string => `arrayMap(path -> ${pageIdSql("path")}, ${paths})`

interface List {
  readonly name: string
  readonly type: string
  readonly codec: string
  /** the list before it */
  readonly before: string
  readonly value: string
}

const lists: ReadonlyArray<List> = [
  { name: "view.page", type: "UInt64", codec: "ZSTD(1)", before: "pages", value: idsOf("pages") },
  { name: "view.second", type: "UInt32", codec: "T64, LZ4", before: "page_s", value: "page_s" },
  { name: "view.new", type: "UInt8", codec: "ZSTD(1)", before: "page_new", value: "page_new" },
  { name: "goal.name", type: "LowCardinality(String)", codec: "ZSTD(1)", before: "goals", value: "goals" },
  { name: "goal.second", type: "UInt32", codec: "T64, LZ4", before: "goal_s", value: "goal_s" },
  { name: "goal.page", type: "UInt64", codec: "ZSTD(1)", before: "goal_pages", value: idsOf("goal_pages") }
]

/** A clause for each list. */
export const each = (clause: (list: List) => string): string => lists.map(clause).join(", ")

/**
 * Visits know pages by numbers, which are read, compared and grouped at a fraction of what their paths take, and lists of the
 * same length have it once (src/docs/decisions/0009-reads.md). The next migration drops the lists before, so that this
 * one can run again.
 */
export const pageIds: ClickHouseMigration = {
  id: 6,
  name: "page ids",
  statements: [
    pageNames,
    `ALTER TABLE visits ${each(
      ({ codec, name, type, value }) =>
        `ADD COLUMN IF NOT EXISTS \`${name}\` Array(${type}) DEFAULT ${value} CODEC(${codec})`
    )}`,
    `INSERT INTO page_names (site, id, path, day)
      SELECT site, ${pageIdSql("path")}, path, max(visits.day)
      FROM visits ARRAY JOIN arrayConcat(pages, CAST(goal_pages, 'Array(String)')) AS path GROUP BY site, path`,
    `ALTER TABLE visits ${each(({ name }) => `MATERIALIZE COLUMN \`${name}\``)} SETTINGS mutations_sync = 2`
  ]
}
