import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

const lossKinds = ["loss:beyond_hold", "loss:free_model", "loss:failed_try", "loss:not_charged"]
const olderKinds = ["topup", "charge", "loss", "allowance:hour", "allowance:day", "allowance:week"]
const listOf = (kinds: ReadonlyArray<string>): string => kinds.map((kind) => `'${kind}'`).join(", ")

/** Losses by their reason, each a counted limit without a cap; and the estimated part of costs. */
export const losses: PostgresMigration = {
  id: 10,
  name: "losses",
  statements: [
    `ALTER TABLE entries DROP CONSTRAINT entries_kind_check`,
    `ALTER TABLE entries ADD CONSTRAINT entries_kind_check
     CHECK (kind IN (${listOf([...olderKinds, ...lossKinds])}))`,
    `ALTER TABLE limits DROP CONSTRAINT limits_kind_check`,
    `ALTER TABLE limits ADD CONSTRAINT limits_kind_check CHECK (kind IN ('credits', 'key', 'allowance', 'loss'))`,
    `ALTER TABLE limits DROP CONSTRAINT limits_check`,
    `ALTER TABLE limits DROP CONSTRAINT limits_check1`,
    `ALTER TABLE limits ADD CONSTRAINT limits_cap CHECK (kind IN ('key', 'loss') OR cap IS NOT NULL)`,
    `ALTER TABLE limits ADD CONSTRAINT limits_room CHECK (kind = 'key' OR settled + leased <= cap)`,
    // Each row has the sum of all losses for one reason, as each key's row has its spending. "loss": those of versions
    // that knew no reasons.
    `INSERT INTO limits (id, kind, settled)
     SELECT 'loss', 'loss', coalesce(sum(amount), 0) FROM entries WHERE kind = 'loss'`,
    `INSERT INTO limits (id, kind)
     SELECT kind, 'loss' FROM unnest(ARRAY[${listOf(lossKinds)}]) AS a(kind)`,

    // A call may have several: a try that failed, and an answer.
    `CREATE TABLE cost_estimates (
       request_id text NOT NULL,
       place integer NOT NULL,
       user_id text NOT NULL,
       reason text NOT NULL,
       amount numeric(38,0) NOT NULL CHECK (amount >= 0),
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       PRIMARY KEY (request_id, place))`,
    `CREATE INDEX cost_estimates_reason ON cost_estimates (reason)`
  ]
}
