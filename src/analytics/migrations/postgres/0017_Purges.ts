import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * The statistics of a site under a name of their own (`dataset`), which a reset replaces: those under an earlier name, and all
 * of a deleted site, are deleted by jobs. Source: docs/decisions/0023-purges.md.
 */
export const purges: PostgresMigration = {
  id: 17,
  name: "purges",
  statements: [
    // `purged_at`: a deleted site's rows are gone from ClickHouse and Postgres; what comes later is still known by its id.
    `ALTER TABLE sites
       ADD COLUMN retention_days integer CHECK (retention_days BETWEEN 1 AND 3650),
       ADD COLUMN generation integer NOT NULL DEFAULT 0,
       ADD COLUMN reset_at timestamptz,
       ADD COLUMN purged_at timestamptz,
       ADD COLUMN dataset text NOT NULL
         GENERATED ALWAYS AS (CASE generation WHEN 0 THEN id ELSE id || '~' || generation::text END) STORED`,
    `CREATE INDEX sites_unpurged ON sites (id) WHERE deleted_at IS NOT NULL AND purged_at IS NULL`,
    `CREATE INDEX sites_purged ON sites (purged_at) WHERE purged_at IS NOT NULL`,

    `ALTER TABLE drops ADD COLUMN dataset text`,
    `UPDATE drops SET dataset = site`,
    `ALTER TABLE drops ALTER COLUMN dataset SET NOT NULL, DROP CONSTRAINT drops_pkey,
       ADD PRIMARY KEY (dataset, day, reason, name)`,
    `ALTER TABLE drops DROP CONSTRAINT drops_site_fkey,
       ADD CONSTRAINT drops_site_fkey FOREIGN KEY (site) REFERENCES sites (id) ON DELETE CASCADE`,
    `CREATE INDEX drops_site ON drops (site)`,

    `ALTER TABLE imports ADD COLUMN dataset text`,
    `UPDATE imports SET dataset = site`,
    `DROP INDEX imports_parts`,
    `ALTER TABLE imports ALTER COLUMN dataset SET NOT NULL,
       DROP CONSTRAINT imports_site_part_of_fkey, DROP CONSTRAINT imports_pkey, ADD PRIMARY KEY (dataset, name)`,
    `ALTER TABLE imports ADD CONSTRAINT imports_dataset_part_of_fkey
       FOREIGN KEY (dataset, part_of) REFERENCES imports (dataset, name)`,
    `CREATE INDEX imports_parts ON imports (dataset, part_of) WHERE part_of IS NOT NULL`,
    `ALTER TABLE imports DROP CONSTRAINT imports_site_fkey,
       ADD CONSTRAINT imports_site_fkey FOREIGN KEY (site) REFERENCES sites (id) ON DELETE CASCADE`,
    `CREATE INDEX imports_site ON imports (site)`
  ]
}
