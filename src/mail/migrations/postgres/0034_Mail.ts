import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Mails, a delivery for each recipient, and what each attempt came to. Source: docs/decisions/0041-mail.md. */
export const mail: PostgresMigration = {
  id: 34,
  name: "mail",
  statements: [
    // `seq` orders a list. `bytes`: the composed message, without what one recipient's copy has of its own; null: it is a blob
    // of `store`. `names`: for the list, From as it is shown.
    `CREATE TABLE mail_messages (
       id text COLLATE "C" PRIMARY KEY,
       seq bigint GENERATED ALWAYS AS IDENTITY,
       user_id text NOT NULL,
       key_id text,
       header_id text NOT NULL,
       from_address text NOT NULL,
       from_name text,
       subject text NOT NULL,
       campaign text,
       is_bulk boolean NOT NULL,
       unsubscribe_url text,
       size integer NOT NULL,
       bytes bytea,
       store text,
       sha256 bytea,
       send_at timestamptz,
       created_at timestamptz NOT NULL DEFAULT now(),
       CHECK (bytes IS NULL OR store IS NULL))`,
    `CREATE INDEX mail_messages_owner ON mail_messages (user_id, seq)`,
    `CREATE INDEX mail_messages_age ON mail_messages USING brin (created_at)`,

    // A job of its id carries it. `ending_attempt`: the attempt that was about to hand over its last byte; the reply to it,
    // if there is one, ends that mark together with the attempt. `attempts` counts those that reached the next hop.
    `CREATE TABLE mail_deliveries (
       id text COLLATE "C" PRIMARY KEY,
       message_id text COLLATE "C" NOT NULL,
       place integer NOT NULL,
       user_id text NOT NULL,
       kind text NOT NULL CHECK (kind IN ('to', 'cc', 'bcc')),
       address text NOT NULL,
       status text NOT NULL DEFAULT 'queued' CHECK (status IN
         ('queued', 'sending', 'deferred', 'sent', 'bounced', 'expired', 'suppressed', 'canceled', 'unknown')),
       attempts integer NOT NULL DEFAULT 0,
       ending_attempt integer,
       last_reply text,
       last_attempt_at timestamptz,
       next_attempt_at timestamptz,
       opted_out_at timestamptz,
       ended_at timestamptz,
       UNIQUE (message_id, place))`,
    `CREATE INDEX mail_deliveries_address ON mail_deliveries (user_id, address)`,

    `CREATE TABLE mail_attempts (
       delivery_id text COLLATE "C" NOT NULL,
       attempt integer NOT NULL,
       route text NOT NULL,
       outcome text NOT NULL CHECK (outcome IN ('sent', 'deferred', 'bounced', 'route_down', 'unknown')),
       reply text NOT NULL,
       began_at timestamptz NOT NULL,
       ended_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (delivery_id, attempt))`,

    // Mail that the sandbox took, a row for each delivery: its copy is the message behind `head`.
    `CREATE TABLE mail_inbox (
       delivery_id text COLLATE "C" PRIMARY KEY,
       seq bigint GENERATED ALWAYS AS IDENTITY,
       user_id text NOT NULL,
       message_id text COLLATE "C" NOT NULL,
       address text NOT NULL,
       head bytea NOT NULL,
       received_at timestamptz NOT NULL DEFAULT now())`,
    `CREATE INDEX mail_inbox_owner ON mail_inbox (user_id, seq)`,
    `CREATE INDEX mail_inbox_age ON mail_inbox USING brin (received_at)`
  ]
}
