import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Resumable uploads. Their bytes are those of the row of `blob_uploads` that has the same id. */
export const uploads: PostgresMigration = {
  id: 26,
  name: "resumable uploads",
  statements: [
    // `length`: null: not told yet. `parts`: the uploads that a joined one is made of. `metadata`: as it was sent. `fields`: what
    // was read from it; null: of a part. `bucket`: the name of the one that the file goes to. `turn`: counts requests that
    // want an earlier one to end. `file`: what it has become, without its link: nothing keeps
    // the secret of that.
    `CREATE TABLE uploads (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       kind text NOT NULL CHECK (kind IN ('whole', 'part', 'joined')),
       length bigint CHECK (length >= 0),
       parts text[],
       metadata text NOT NULL,
       fields jsonb,
       bucket text,
       turn integer NOT NULL DEFAULT 0,
       created_at timestamptz NOT NULL DEFAULT now(),
       done_at timestamptz,
       file jsonb)`,
    `CREATE INDEX uploads_user ON uploads (user_id, created_at)`,
    `CREATE INDEX uploads_done ON uploads (done_at) WHERE done_at IS NOT NULL`
  ]
}
