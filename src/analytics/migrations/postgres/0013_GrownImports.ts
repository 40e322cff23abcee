import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * Imports of files that grow: an import that begins with the lines of an earlier one is a further name of that one, whose
 * row (`part_of`) has the state of both. `logged`: lines below it are in the log already, beyond `next` after a crash. And
 * what became of the lines.
 */
export const grownImports: PostgresMigration = {
  id: 13,
  name: "grown imports",
  statements: [
    `ALTER TABLE imports
       ADD COLUMN part_of text,
       ADD COLUMN logged bigint NOT NULL DEFAULT 0,
       ADD COLUMN stored bigint NOT NULL DEFAULT 0,
       ADD COLUMN failed bigint NOT NULL DEFAULT 0,
       ADD COLUMN dropped jsonb NOT NULL DEFAULT '{}',
       ADD COLUMN begun_at timestamptz NOT NULL DEFAULT now(),
       ADD COLUMN finished_at timestamptz,
       ADD FOREIGN KEY (site, part_of) REFERENCES imports (site, name)`,
    `CREATE INDEX imports_parts ON imports (site, part_of) WHERE part_of IS NOT NULL`
  ]
}
