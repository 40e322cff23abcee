import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * Agent sessions, the steps that are their transcript, and the processes that own them.
 * Source: contract/agents#sessions.
 */
export const agents: PostgresMigration = {
  id: 9,
  name: "agents",
  statements: [
    // `epoch` counts the owners of a session: a writer has to name the present one. `version` numbers the writes of one
    // owner, so that one that arrives twice is written once. Amounts are pico-USD. A row is written with every step of
    // its session: there is room for it beside the old one, and no index has a column that changes with a step.
    `CREATE TABLE agent_sessions (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       key_id text NOT NULL REFERENCES keys (id),
       root text NOT NULL,
       workspace_name text NOT NULL,
       started_at timestamptz NOT NULL,
       epoch bigint NOT NULL,
       owner text NOT NULL,
       version bigint NOT NULL DEFAULT 0,
       steps integer NOT NULL DEFAULT 0,
       client_version text NOT NULL,
       client_platform text NOT NULL,
       client_name text NOT NULL,
       journal_id text NOT NULL,
       model text NOT NULL,
       thinking_level text NOT NULL,
       budget numeric(38,0),
       status text NOT NULL CHECK (status IN ('idle', 'running', 'ended')),
       prompts integer NOT NULL,
       tool_calls integer NOT NULL,
       tool_calls_denied integer NOT NULL,
       cost numeric(38,0) NOT NULL,
       prompt_tokens bigint NOT NULL,
       completion_tokens bigint NOT NULL,
       seq_reserved bigint NOT NULL,
       base_step integer NOT NULL,
       last_seen_at timestamptz NOT NULL,
       detached_at timestamptz,
       ended_at timestamptz,
       end_reason text CHECK (end_reason IN ('client_bye', 'ended_by_owner', 'expired', 'revoked', 'error')),
       CHECK ((status = 'ended') = (ended_at IS NOT NULL)),
       CHECK ((status = 'ended') = (end_reason IS NOT NULL))
     ) WITH (fillfactor = 70)`,
    `CREATE INDEX agent_sessions_user ON agent_sessions (user_id, started_at DESC, id)`,
    `CREATE INDEX agent_sessions_key ON agent_sessions (key_id) WHERE ended_at IS NULL`,
    `CREATE INDEX agent_sessions_running ON agent_sessions (owner) WHERE status = 'running'`,
    `CREATE INDEX agent_sessions_age ON agent_sessions (started_at) WHERE ended_at IS NULL`,

    // `content` is JSON, with its escapes: texts of models and tools have NULs and lone surrogates, which neither text nor
    // jsonb can hold. No foreign key: a step is written in the statement that has its session's row.
    `CREATE TABLE agent_steps (
       session_id text NOT NULL,
       index integer NOT NULL,
       seq bigint NOT NULL,
       at timestamptz NOT NULL,
       kind text NOT NULL,
       content text NOT NULL,
       PRIMARY KEY (session_id, index))`,
    `CREATE INDEX agent_steps_announced ON agent_steps (session_id, seq) WHERE seq > 0`,

    // New sessions, with the columns that are not null, where their keys have room. Answers the refused ones. One at a
    // time over all processes: two would count up to the same number. A later count sees the sessions of an earlier
    // one, because every statement of the function has a snapshot of its own.
    `CREATE FUNCTION agent_create(given json, process text, live_after timestamptz, most integer)
     RETURNS TABLE (id text, live integer) LANGUAGE plpgsql AS $$
     #variable_conflict use_column
     BEGIN
       PERFORM pg_advisory_xact_lock(hashtext('agent_create'));
       RETURN QUERY WITH asked AS MATERIALIZED (
         SELECT a.*, e.place FROM json_array_elements(given) WITH ORDINALITY AS e(value, place),
           json_populate_record(NULL::agent_sessions, e.value) AS a),
       counted AS (
         SELECT k.key_id, (
           SELECT count(*) FROM agent_sessions s
           WHERE s.key_id = k.key_id AND s.ended_at IS NULL AND s.last_seen_at > live_after
             AND s.id NOT IN (SELECT asked.id FROM asked)) AS live
         FROM (SELECT DISTINCT key_id FROM asked) AS k),
       placed AS MATERIALIZED (
         SELECT asked.*, counted.live,
           counted.live + row_number() OVER (PARTITION BY asked.key_id ORDER BY asked.place) <= most AS has_room
         FROM asked JOIN counted USING (key_id)),
       made AS (
         INSERT INTO agent_sessions (id, user_id, key_id, root, workspace_name, started_at, epoch, owner, client_version,
           client_platform, client_name, journal_id, model, thinking_level, budget, status, prompts, tool_calls,
           tool_calls_denied, cost, prompt_tokens, completion_tokens, seq_reserved, base_step, last_seen_at, detached_at,
           ended_at, end_reason)
         SELECT p.id, p.user_id, p.key_id, p.root, p.workspace_name, p.started_at, 1, process, p.client_version,
           p.client_platform, p.client_name, p.journal_id, p.model, p.thinking_level, p.budget, p.status, p.prompts,
           p.tool_calls, p.tool_calls_denied, p.cost, p.prompt_tokens, p.completion_tokens, p.seq_reserved, p.base_step,
           p.last_seen_at, p.detached_at, p.ended_at, p.end_reason
         FROM placed AS p WHERE p.has_room
         ON CONFLICT ON CONSTRAINT agent_sessions_pkey DO NOTHING)
       SELECT p.id, greatest(p.live, most)::integer FROM placed AS p WHERE NOT p.has_room;
     END $$`,

    // Server processes, by a name that is new with every start.
    `CREATE TABLE agent_owners (
       id text PRIMARY KEY,
       heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp())`
  ]
}
