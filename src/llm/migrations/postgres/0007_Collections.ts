import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Collections: ordered lists of models that are asked by one name. */
export const collections: PostgresMigration = {
  id: 7,
  name: "collections",
  statements: [
    `CREATE TABLE collections (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       name text NOT NULL,
       slug text NOT NULL,
       auto_route boolean NOT NULL,
       models text[] NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       deleted_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX collections_slug ON collections (user_id, slug) WHERE deleted_at IS NULL`,
    `CREATE INDEX collections_changed ON collections (changed)`,
    `CREATE TRIGGER collections_mark_changed BEFORE INSERT OR UPDATE ON collections
       FOR EACH ROW EXECUTE FUNCTION mark_changed()`
  ]
}
