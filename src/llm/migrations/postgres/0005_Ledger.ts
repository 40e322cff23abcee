import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"
import { ledgerFunctions } from "./LedgerFunctions.ts"

/**
 * Credits, key caps and allowances are rows of one table, `limits`: settled amounts, and the leases that processes hold
 * of them. Amounts are integers: pico-USD, or tokens of an allowance. Source: contract/llm#money.
 */
export const ledger: PostgresMigration = {
  id: 5,
  name: "ledger",
  statements: [
    // `credits:<user>`: cap is the sum of all top-ups. `key:<key>`: the spend limit; null: none, spending is only counted.
    // `allowance:<subscription>:<hour|day|week>`: one row per window. A key's cap may be set below its spending.
    `CREATE TABLE limits (
       id text NOT NULL,
       window_start timestamptz NOT NULL DEFAULT 'epoch',
       kind text NOT NULL CHECK (kind IN ('credits', 'key', 'allowance')),
       cap numeric(38,0) CHECK (cap >= 0),
       settled numeric(38,0) NOT NULL DEFAULT 0 CHECK (settled >= 0),
       leased numeric(38,0) NOT NULL DEFAULT 0 CHECK (leased >= 0),
       PRIMARY KEY (id, window_start),
       CHECK (kind = 'key' OR cap IS NOT NULL),
       CHECK (kind = 'key' OR settled + leased <= cap))`,

    // An owner is one server process, named by the id of its log of calls. `applied`: the log is settled below this offset.
    // `generation` rises when others have given up its leases: its own idea of its holds since then is void.
    `CREATE TABLE owners (
       id text PRIMARY KEY,
       generation integer NOT NULL DEFAULT 0,
       applied bigint NOT NULL DEFAULT 0,
       heartbeat timestamptz NOT NULL DEFAULT clock_timestamp())`,

    // Totals only ever rise, so that a process can repeat a statement whose outcome it does not know. `covered` is the
    // amount found for settlements whose lease had been given up.
    `CREATE TABLE leases (
       owner text NOT NULL REFERENCES owners (id),
       limit_id text NOT NULL,
       window_start timestamptz NOT NULL,
       granted numeric(38,0) NOT NULL DEFAULT 0,
       returned numeric(38,0) NOT NULL DEFAULT 0,
       covered numeric(38,0) NOT NULL DEFAULT 0,
       settled numeric(38,0) NOT NULL DEFAULT 0,
       amount numeric(38,0) GENERATED ALWAYS AS (granted + covered - returned - settled) STORED,
       PRIMARY KEY (owner, limit_id, window_start),
       CHECK (amount >= 0))`,
    `CREATE INDEX leases_limit ON leases (limit_id, window_start)`,

    // Double entry: one row takes from one account and gives to the other. A call that was extended after a reset has drawn
    // from two windows; money has one.
    `CREATE TABLE entries (
       id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       request_id text NOT NULL,
       kind text NOT NULL CHECK (kind IN
         ('topup', 'charge', 'loss', 'allowance:hour', 'allowance:day', 'allowance:week')),
       debit text NOT NULL,
       credit text NOT NULL,
       amount numeric(38,0) NOT NULL CHECK (amount > 0),
       unit text NOT NULL CHECK (unit IN ('pico-usd', 'token')),
       user_id text NOT NULL,
       key_id text,
       window_start timestamptz NOT NULL DEFAULT 'epoch',
       note text,
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       UNIQUE (request_id, kind, window_start))`,
    `CREATE INDEX entries_user ON entries (user_id, id)`,
    `CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN RAISE EXCEPTION 'entries are only ever added'; END $$`,
    `CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
     FOR EACH STATEMENT EXECUTE FUNCTION entries_stay()`,

    `CREATE TABLE plans (
       id text PRIMARY KEY,
       name text NOT NULL,
       price numeric(38,0) NOT NULL CHECK (price >= 0),
       scope text NOT NULL,
       covers_direct_api boolean NOT NULL,
       models text[],
       hour_tokens bigint NOT NULL CHECK (hour_tokens >= 0),
       day_tokens bigint NOT NULL CHECK (day_tokens >= 0),
       week_tokens bigint NOT NULL CHECK (week_tokens >= 0),
       created_at timestamptz NOT NULL DEFAULT now(),
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX plans_changed ON plans (changed)`,
    `CREATE TABLE subscriptions (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       plan_id text NOT NULL REFERENCES plans (id),
       status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'canceled', 'expired')),
       current_period_end timestamptz NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       canceled_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX subscriptions_active ON subscriptions (user_id) WHERE status = 'active'`,
    `CREATE INDEX subscriptions_changed ON subscriptions (changed)`,
    ...["plans", "subscriptions"].map(
      (table) => `CREATE TRIGGER ${table}_mark_changed BEFORE INSERT OR UPDATE ON ${table}
                  FOR EACH ROW EXECUTE FUNCTION mark_changed()`
    ),

    // Answers of top-ups by their Idempotency-Key, for 24 hours.
    `CREATE TABLE top_up_answers (
       user_id text NOT NULL,
       key text NOT NULL,
       body text NOT NULL,
       answer jsonb NOT NULL,
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       PRIMARY KEY (user_id, key))`,
    `CREATE INDEX top_up_answers_age ON top_up_answers (created_at)`,

    ...ledgerFunctions
  ]
}
