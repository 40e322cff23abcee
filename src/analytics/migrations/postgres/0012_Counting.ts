import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** The process that counts events, in one row: see src/analytics/counting/LeaseRow.ts. */
export const counting: PostgresMigration = {
  id: 12,
  name: "counting",
  statements: [
    // `holder` '': none, the last one let go of it. `lasts_ms`: how long a holder may count after Postgres said so last.
    // `wanted_by`: a process that has events in its log and waits for its turn, as long as it says so.
    `CREATE TABLE counting (
       one boolean PRIMARY KEY DEFAULT true CHECK (one),
       epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
       holder text NOT NULL DEFAULT '',
       due timestamptz NOT NULL DEFAULT '-infinity',
       lasts_ms integer NOT NULL DEFAULT 0,
       wanted_by text NOT NULL DEFAULT '',
       wanted_until timestamptz NOT NULL DEFAULT '-infinity')`,
    `INSERT INTO counting DEFAULT VALUES`
  ]
}
