import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Answers of model calls by their Idempotency-Key, for 24 hours. */
export const callAnswers: PostgresMigration = {
  id: 8,
  name: "call_answers",
  statements: [
    // `claim` names the call that answers; status null: it is under way. body null: done, but too long to be kept.
    `CREATE TABLE call_answers (
       key_id text NOT NULL,
       idempotency_key text NOT NULL,
       claim text NOT NULL,
       path text NOT NULL,
       request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
       status integer,
       content_type text,
       body text,
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       PRIMARY KEY (key_id, idempotency_key))`,
    `CREATE INDEX call_answers_age ON call_answers (created_at)`
  ]
}
