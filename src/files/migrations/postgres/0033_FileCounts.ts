import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** How many versions each user has; names of hidden directories that no bucket has. */
export const fileCounts: PostgresMigration = {
  id: 33,
  name: "file counts",
  statements: [
    `CREATE TABLE file_counts (
       user_id text PRIMARY KEY REFERENCES users (id),
       versions bigint NOT NULL)`,
    `INSERT INTO file_counts (user_id, versions) SELECT user_id, count(*) FROM file_versions GROUP BY user_id`,

    `UPDATE directories SET name = 'device ' || name WHERE kind = 'device' AND name NOT LIKE 'device %'`
  ]
}
