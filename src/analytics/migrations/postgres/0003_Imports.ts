import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** The progress of each import of a site, and the salt of its identities while it is under way. */
export const imports: PostgresMigration = {
  id: 3,
  name: "imports",
  statements: [
    `CREATE TABLE imports (
       site text NOT NULL REFERENCES sites (id),
       name text NOT NULL,
       next bigint NOT NULL DEFAULT 0 CHECK (next >= 0),
       salt text,
       updated_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (site, name))`,
    `CREATE INDEX imports_salted ON imports (updated_at) WHERE salt IS NOT NULL`
  ]
}
