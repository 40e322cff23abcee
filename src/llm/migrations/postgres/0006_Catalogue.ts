import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * The last good list of models of each upstream, as it was sent; and markups on providers' prices other than the
 * default. `id` of a markup is the provider.
 */
export const catalogue: PostgresMigration = {
  id: 6,
  name: "catalogue",
  statements: [
    `CREATE TABLE catalogue_copies (
       upstream text PRIMARY KEY,
       body text NOT NULL,
       fetched_at timestamptz NOT NULL)`,
    `CREATE TABLE markups (
       id text PRIMARY KEY,
       percent numeric NOT NULL CHECK (percent >= 0),
       updated_at timestamptz NOT NULL DEFAULT now(),
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX markups_changed ON markups (changed)`,
    `CREATE TRIGGER markups_mark_changed BEFORE INSERT OR UPDATE ON markups
       FOR EACH ROW EXECUTE FUNCTION mark_changed()`
  ]
}
