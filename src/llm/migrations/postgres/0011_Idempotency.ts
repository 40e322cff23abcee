import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Requests with an Idempotency-Key, those of model calls and of top-ups in one place. */
export const idempotency: PostgresMigration = {
  id: 11,
  name: "idempotency",
  statements: [
    // `claim` names the request that is carried out; status null: it is under way, and its process was alive at
    // `alive_at`. body null: done, but too long to be kept, or given up for others of the same user.
    `CREATE TABLE idempotency (
       scope text NOT NULL,
       key text NOT NULL,
       user_id text NOT NULL,
       claim text NOT NULL,
       request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
       status integer,
       content_type text,
       body text,
       length integer NOT NULL GENERATED ALWAYS AS (coalesce(length(body), 0)) STORED,
       alive_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       PRIMARY KEY (scope, key))`,
    `CREATE INDEX idempotency_age ON idempotency (created_at)`,
    `CREATE INDEX idempotency_user ON idempotency (user_id, created_at)`,
    `INSERT INTO idempotency (scope, key, user_id, claim, request_hash, status, content_type, body, created_at)
     SELECT 'top-up:' || user_id, key, user_id, 'clm_before', sha256(convert_to(body, 'UTF8')), 200,
            'application/json', answer::text, created_at
     FROM top_up_answers`,
    // Calls were told apart by path and body, and are by both together now: earlier answers cannot be repeated.
    `DROP TABLE top_up_answers`,
    `DROP TABLE call_answers`
  ]
}
