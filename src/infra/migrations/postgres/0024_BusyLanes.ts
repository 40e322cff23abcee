import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** As in `0014_Jobs.ts`, which says why. */
const planned = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan`

/** Lanes that are due and sent back again and again, since this server has no attempt to spare for them. */
export const busyLanes: PostgresMigration = {
  id: 24,
  name: "busy_lanes",
  statements: [
    // Since when; null once an attempt at its first job was made.
    `ALTER TABLE job_lanes ADD COLUMN busy_since timestamptz`,
    `CREATE INDEX job_lanes_busy ON job_lanes (queue, busy_since) WHERE busy_since IS NOT NULL`,

    // As before; 'busy' is 'withdrawn' for want of an attempt here, and leaves the lane late from the first time on.
    `CREATE OR REPLACE FUNCTION jobs_settle(p_queue text, p_lanes text[], p_epochs text[], p_seqs text[], p_outcomes text[],
     p_delays double precision[], p_errors text[], p_wait_millis integer)
   RETURNS text[] LANGUAGE plpgsql ${planned} AS $$
   DECLARE
     at timestamptz := jobs_now();
     held text[];
     places tid[];
     ended integer;
   BEGIN
     IF p_wait_millis IS NOT NULL THEN PERFORM set_config('lock_timeout', p_wait_millis::text, true); END IF;
     WITH settled AS (
       UPDATE job_lanes l SET holder = NULL, waiting = l.waiting - a.ends,
         rests_until = at + a.delay * interval '1 millisecond',
         busy_since = CASE WHEN a.is_busy THEN coalesce(l.busy_since, at) END,
         due_at = CASE WHEN l.waiting = a.ends THEN 'infinity' ELSE at + a.delay * interval '1 millisecond' END
       FROM (SELECT u.lane, u.epoch, u.delay, (u.outcome IN ('done', 'dead'))::integer AS ends, u.outcome = 'busy' AS is_busy
             FROM unnest(p_lanes, p_epochs, p_outcomes, p_delays) AS u(lane, epoch, outcome, delay)
             ORDER BY u.lane COLLATE "C") AS a
       WHERE l.queue = p_queue AND l.lane = a.lane AND l.epoch = a.epoch::bigint AND l.holder IS NOT NULL
       RETURNING a.epoch)
     SELECT coalesce(array_agg(settled.epoch), '{}') INTO held FROM settled;
     IF cardinality(held) < cardinality(p_lanes) THEN
       SELECT array_agg(u.lane), array_agg(u.seq), array_agg(u.outcome), array_agg(u.error)
       INTO p_lanes, p_seqs, p_outcomes, p_errors
       FROM unnest(p_lanes, p_epochs, p_seqs, p_outcomes, p_errors) AS u(lane, epoch, seq, outcome, error)
       WHERE u.epoch = ANY (held);
     END IF;
     places := ARRAY(SELECT (SELECT f.ctid FROM (
         SELECT h.ctid, h.seq FROM jobs h WHERE h.queue = p_queue AND h.lane = a.lane AND h.seq >= a.seq::bigint
         ORDER BY h.seq LIMIT 1) AS f WHERE f.seq = a.seq::bigint)
       FROM unnest(p_lanes, p_seqs, p_outcomes) AS a(lane, seq, outcome) WHERE a.outcome IN ('done', 'dead'));
     WITH removed AS (
       DELETE FROM jobs j WHERE j.ctid = ANY (places)
       RETURNING j.*, array_position(p_lanes, j.lane) AS n)
     INSERT INTO jobs_ended (queue, lane, seq, id, outcome, attempts, repeated, last_error, payload, offered_at, ended_at)
     SELECT p_queue, r.lane, r.seq, r.id, p_outcomes[r.n], r.attempts, r.repeated,
       coalesce(nullif(p_errors[r.n], ''), r.last_error), r.payload, r.offered_at, at
     FROM removed r;
     GET DIAGNOSTICS ended = ROW_COUNT;
     IF ended < cardinality(held) THEN
       places := ARRAY(SELECT (SELECT f.ctid FROM (
         SELECT h.ctid, h.seq FROM jobs h WHERE h.queue = p_queue AND h.lane = a.lane AND h.seq >= a.seq::bigint
         ORDER BY h.seq LIMIT 1) AS f WHERE f.seq = a.seq::bigint)
         FROM unnest(p_lanes, p_seqs, p_outcomes) AS a(lane, seq, outcome) WHERE a.outcome NOT IN ('done', 'dead'));
       UPDATE jobs j SET open = p_outcomes[array_position(p_lanes, j.lane)] = 'left',
         last_error = coalesce(nullif(p_errors[array_position(p_lanes, j.lane)], ''), j.last_error),
         attempts = CASE p_outcomes[array_position(p_lanes, j.lane)] WHEN 'later' THEN 0
           WHEN 'withdrawn' THEN greatest(j.attempts - 1, 0) WHEN 'busy' THEN greatest(j.attempts - 1, 0)
           ELSE j.attempts END,
         repeated = j.repeated AND p_outcomes[array_position(p_lanes, j.lane)] <> 'later'
       WHERE j.ctid = ANY (places);
     END IF;
     RETURN held;
   END $$`
  ]
}
