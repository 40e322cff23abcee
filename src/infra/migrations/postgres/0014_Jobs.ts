import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * Plans of these functions must not follow statistics: a queue is empty whenever it is analysed, and full when it
 * matters. Joins by hash, merge or whole scans, which such statistics ask for, made a turn a thousand times slower. The order
 * by seq, without a sort, leaves the key's index alone to find the jobs of a lane.
 */
const planned = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan`

/** Rows of lanes and jobs are rewritten all the time: vacuum comes by number, not by share, and without pauses. */
const storage = `WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_cost_delay = 0)`

const tables: ReadonlyArray<string> = [
  // `due_at`: from when on the first job of the lane may be taken. A lease is a `due_at` ahead, an empty lane is at
  // infinity. `epoch` names the lease, `holder` is null without one. The lane rests until `rests_until`, empty or not.
  `CREATE TABLE job_lanes (
     queue text COLLATE "C" NOT NULL,
     lane text COLLATE "C" NOT NULL,
     due_at timestamptz NOT NULL,
     waiting integer NOT NULL CHECK (waiting >= 0),
     epoch bigint NOT NULL DEFAULT 0,
     holder text,
     rests_until timestamptz NOT NULL DEFAULT '-infinity',
     PRIMARY KEY (queue, lane)) ${storage}`,
  `CREATE INDEX job_lanes_due ON job_lanes (queue, due_at) WHERE due_at < 'infinity'`,

  // `seq` is drawn while the lane is locked: it is the order of the commits. `open`: an attempt has begun and nothing
  // is known of its end. `repeated`: an earlier attempt was left open, and may have had its effect.
  `CREATE SEQUENCE job_seqs`,
  `CREATE TABLE jobs (
     queue text COLLATE "C" NOT NULL,
     lane text COLLATE "C" NOT NULL,
     seq bigint NOT NULL,
     id text COLLATE "C" NOT NULL,
     not_before timestamptz,
     attempts integer NOT NULL DEFAULT 0,
     open boolean NOT NULL DEFAULT false,
     repeated boolean NOT NULL DEFAULT false,
     last_error text,
     payload jsonb NOT NULL,
     offered_at timestamptz NOT NULL,
     PRIMARY KEY (queue, lane, seq),
     UNIQUE (queue, id)) ${storage}`,

  `CREATE TABLE jobs_ended (
     queue text COLLATE "C" NOT NULL,
     lane text COLLATE "C" NOT NULL,
     seq bigint NOT NULL,
     id text COLLATE "C" NOT NULL,
     outcome text NOT NULL CHECK (outcome IN ('done', 'dead')),
     attempts integer NOT NULL,
     repeated boolean NOT NULL,
     last_error text,
     payload jsonb NOT NULL,
     offered_at timestamptz NOT NULL,
     ended_at timestamptz NOT NULL)`,
  `CREATE INDEX jobs_ended_age ON jobs_ended USING brin (ended_at) WITH (pages_per_range = 32)`,
  `CREATE INDEX jobs_dead ON jobs_ended (queue, seq) WHERE outcome = 'dead'`,
  `CREATE INDEX jobs_dead_ids ON jobs_ended (queue, id) WHERE outcome = 'dead'`,
  // Never the same twice, so that the lease of a lane that was deleted and made again is another one.
  `CREATE SEQUENCE job_epochs CACHE 64`
]

const functions: ReadonlyArray<string> = [
  // The clock of due times and leases; tests replace it.
  `CREATE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$`,

  // In arrays of texts '' stands for null. Adds jobs at the ends of their lanes, leaving out those whose id waits already;
  // answers how many were new. Lanes are locked in one order, before a seq is drawn, and ids are written in one order:
  // offers in different transactions may wait for each other, and never in a circle.
  `CREATE FUNCTION jobs_offer(p_queue text, p_lanes text[], p_ids text[], p_payloads text[], p_not_before text[])
   RETURNS integer LANGUAGE plpgsql ${planned} AS $$
   DECLARE
     at timestamptz := jobs_now();
     first_seq bigint;
     added integer;
   BEGIN
     INSERT INTO job_lanes AS l (queue, lane, due_at, waiting)
     SELECT p_queue, a.lane, coalesce(nullif((array_agg(a.not_before ORDER BY a.n))[1], '')::timestamptz, at), count(*)
     FROM unnest(p_lanes, p_not_before) WITH ORDINALITY AS a(lane, not_before, n)
     GROUP BY a.lane ORDER BY a.lane COLLATE "C"
     ON CONFLICT (queue, lane) DO UPDATE SET waiting = l.waiting + excluded.waiting,
       due_at = CASE WHEN l.waiting = 0 THEN greatest(excluded.due_at, l.rests_until) ELSE l.due_at END;
     first_seq := nextval('job_seqs');
     INSERT INTO jobs (queue, lane, seq, id, not_before, payload, offered_at)
     SELECT p_queue, a.lane, a.seq, a.id, nullif(a.not_before, '')::timestamptz, a.payload::jsonb, at
     FROM (SELECT u.lane, nextval('job_seqs') AS seq, u.id, u.payload, u.not_before
           FROM unnest(p_lanes, p_ids, p_payloads, p_not_before) AS u(lane, id, payload, not_before)) AS a
     ORDER BY a.id COLLATE "C", a.seq
     ON CONFLICT (queue, id) DO NOTHING;
     GET DIAGNOSTICS added = ROW_COUNT;
     IF added < cardinality(p_ids) THEN
       UPDATE job_lanes l SET waiting = l.waiting - c.offered + c.added,
         due_at = CASE WHEN l.waiting > c.offered THEN l.due_at WHEN c.added = 0 THEN 'infinity'
                       ELSE greatest(c.head, l.rests_until) END
       FROM (SELECT a.lane, a.offered,
               (SELECT count(*)::integer FROM (
                 SELECT FROM jobs j WHERE j.queue = p_queue AND j.lane = a.lane AND j.seq > first_seq
                 ORDER BY j.seq OFFSET 0) AS new) AS added,
               (SELECT coalesce(j.not_before, j.offered_at) FROM jobs j
                WHERE j.queue = p_queue AND j.lane = a.lane ORDER BY j.seq LIMIT 1) AS head
             FROM (SELECT u.lane, count(*)::integer AS offered FROM unnest(p_lanes) AS u(lane) GROUP BY u.lane) AS a) AS c
       WHERE l.queue = p_queue AND l.lane = c.lane;
     END IF;
     RETURN added;
   END $$`,

  // The first jobs of at most so many due lanes, which the holder has on lease from now on. Each statement sees
  // all that was committed before it: the heads are read once the lanes are locked. Rows are found one by
  // one and changed by their place: as joins, plans that were made while the table was empty read whole lanes and queues.
  `CREATE FUNCTION jobs_claim(p_queue text, p_holder text, p_lanes_max integer, p_lease_millis double precision)
   RETURNS TABLE (lane text, epoch text, seq text, id text, attempts integer, repeated boolean, payload text,
     offered_millis double precision)
   LANGUAGE plpgsql ${planned} AS $$
   #variable_conflict use_column
   DECLARE
     at timestamptz := jobs_now();
     lanes text[];
     epochs bigint[];
     heads tid[];
     claimed integer;
   BEGIN
     WITH due AS MATERIALIZED (
       SELECT l.lane FROM job_lanes l WHERE l.queue = p_queue AND l.due_at <= at AND l.due_at < 'infinity'
       ORDER BY l.due_at LIMIT p_lanes_max FOR UPDATE SKIP LOCKED),
     held AS (
       UPDATE job_lanes l SET due_at = at + p_lease_millis * interval '1 millisecond', holder = p_holder,
         epoch = nextval('job_epochs')
       WHERE l.queue = p_queue AND l.lane = ANY (ARRAY(SELECT due.lane FROM due)) RETURNING l.lane, l.epoch)
     SELECT array_agg(held.lane), array_agg(held.epoch) INTO lanes, epochs FROM held;
     IF lanes IS NULL THEN RETURN; END IF;
     heads := ARRAY(SELECT (SELECT h.ctid FROM jobs h WHERE h.queue = p_queue AND h.lane = held.lane ORDER BY h.seq LIMIT 1)
       FROM unnest(lanes) AS held(lane));
     RETURN QUERY
       UPDATE jobs j SET attempts = j.attempts + 1, repeated = j.repeated OR j.open, open = true
       WHERE j.ctid = ANY (heads) AND (j.not_before IS NULL OR j.not_before <= at)
       RETURNING j.lane, epochs[array_position(lanes, j.lane)]::text, j.seq::text, j.id, j.attempts, j.repeated, j.payload::text,
         extract(epoch FROM j.offered_at)::double precision * 1000;
     GET DIAGNOSTICS claimed = ROW_COUNT;
     IF claimed < cardinality(lanes) THEN
       UPDATE job_lanes l SET holder = NULL, waiting = CASE WHEN head.due_at IS NULL THEN 0 ELSE l.waiting END,
         due_at = CASE WHEN head.due_at IS NULL THEN 'infinity' ELSE greatest(head.due_at, l.rests_until) END
       FROM unnest(lanes) AS held(lane) LEFT JOIN LATERAL (
         SELECT coalesce(h.not_before, h.offered_at) AS due_at, h.not_before FROM jobs h
         WHERE h.queue = p_queue AND h.lane = held.lane ORDER BY h.seq LIMIT 1) AS head ON true
       WHERE l.queue = p_queue AND l.lane = held.lane AND (head.due_at IS NULL OR head.not_before > at);
     END IF;
   END $$`,

  // Ends attempts, and answers the epochs that were still in force: of the others nothing is changed. 'done' and 'dead'
  // end the job; 'again' has failed, 'later' has not, and the same job is due after its delay; 'left' leaves open
  // whether the attempt had its effect. Every lane rests for the delay. With p_wait_millis it fails where a lane is
  // locked by another transaction for longer.
  `CREATE FUNCTION jobs_settle(p_queue text, p_lanes text[], p_epochs text[], p_seqs text[], p_outcomes text[],
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
         due_at = CASE WHEN l.waiting = a.ends THEN 'infinity' ELSE at + a.delay * interval '1 millisecond' END
       FROM (SELECT u.lane, u.epoch, u.delay, (u.outcome IN ('done', 'dead'))::integer AS ends
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
         attempts = CASE WHEN p_outcomes[array_position(p_lanes, j.lane)] = 'later' THEN 0 ELSE j.attempts END,
         repeated = j.repeated AND p_outcomes[array_position(p_lanes, j.lane)] <> 'later'
       WHERE j.ctid = ANY (places);
     END IF;
     RETURN held;
   END $$`,

  // Those of the lanes that no other transaction has locked; the caller's has them then.
  `CREATE FUNCTION jobs_lock(p_queue text, p_lanes text[]) RETURNS text[] LANGUAGE plpgsql ${planned} AS $$
   BEGIN
     RETURN ARRAY(SELECT l.lane FROM job_lanes l WHERE l.queue = p_queue AND l.lane = ANY (p_lanes)
       FOR UPDATE SKIP LOCKED);
   END $$`,

  // Lengthens leases; answers the epochs that are in force. Lanes that another transaction has locked, which offers
  // or settles there, are not waited for, and cannot be taken meanwhile.
  `CREATE FUNCTION jobs_extend(p_queue text, p_lanes text[], p_epochs text[], p_lease_millis double precision)
   RETURNS text[] LANGUAGE plpgsql ${planned} AS $$
   DECLARE
     free text[] := jobs_lock(p_queue, p_lanes);
   BEGIN
     UPDATE job_lanes l SET due_at = jobs_now() + p_lease_millis * interval '1 millisecond'
     FROM unnest(p_lanes, p_epochs) AS a(lane, epoch)
     WHERE a.lane = ANY (free) AND l.queue = p_queue AND l.lane = a.lane AND l.epoch = a.epoch::bigint
       AND l.holder IS NOT NULL;
     RETURN ARRAY(SELECT a.epoch FROM unnest(p_lanes, p_epochs) AS a(lane, epoch) JOIN job_lanes l
       ON l.queue = p_queue AND l.lane = a.lane AND l.epoch = a.epoch::bigint AND l.holder IS NOT NULL);
   END $$`,

  // Milliseconds until a lane is due, or its lease ends; null: none is.
  `CREATE FUNCTION jobs_next(p_queue text) RETURNS double precision LANGUAGE plpgsql ${planned} AS $$
   BEGIN
     RETURN (SELECT extract(epoch FROM l.due_at - jobs_now())::double precision * 1000 FROM job_lanes l
       WHERE l.queue = p_queue AND l.due_at < 'infinity' ORDER BY l.due_at LIMIT 1);
   END $$`,

  // Dead jobs wait again, at the ends of their lanes and in their order; those of the ids, or so many of all. One whose
  // id waits stays dead, and of several of one id the oldest comes first.
  `CREATE FUNCTION jobs_redrive(p_queue text, p_ids text[], p_max integer) RETURNS integer LANGUAGE plpgsql AS $$
   DECLARE
     lanes text[];
     revived text[];
     payloads text[];
     added integer;
   BEGIN
     WITH removed AS (
       DELETE FROM jobs_ended e WHERE e.ctid = ANY (ARRAY(
         SELECT d.ctid FROM jobs_ended d
         WHERE d.queue = p_queue AND d.outcome = 'dead' AND (p_ids IS NULL OR d.id = ANY (p_ids))
           AND NOT EXISTS (SELECT FROM jobs j WHERE j.queue = p_queue AND j.id = d.id)
           AND NOT EXISTS (SELECT FROM jobs_ended o
             WHERE o.queue = p_queue AND o.outcome = 'dead' AND o.id = d.id AND o.seq < d.seq)
         ORDER BY d.seq LIMIT p_max FOR UPDATE SKIP LOCKED))
       RETURNING e.lane, e.id, e.payload, e.seq)
     SELECT array_agg(r.lane ORDER BY r.seq), array_agg(r.id ORDER BY r.seq), array_agg(r.payload::text ORDER BY r.seq)
     INTO lanes, revived, payloads FROM removed r;
     IF lanes IS NULL THEN RETURN 0; END IF;
     added := jobs_offer(p_queue, lanes, revived, payloads, array_fill(''::text, ARRAY[cardinality(lanes)]));
     UPDATE jobs j SET repeated = true FROM unnest(revived) AS r(id)
     WHERE j.queue = p_queue AND j.id = r.id AND j.lane = ANY (lanes);
     RETURN added;
   END $$`
]

/** Work that is done once: see src/infra/jobs/Jobs.ts. */
export const jobs: PostgresMigration = {
  id: 14,
  name: "jobs",
  statements: [...tables, ...functions]
}
