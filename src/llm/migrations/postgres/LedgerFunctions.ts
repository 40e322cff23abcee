/**
 * The ledger's functions in Postgres. Rows of `limits` are locked in the order of (id, window_start) everywhere, after
 * the owner's row and before its leases, so that no two of these wait for each other.
 */
export const ledgerFunctions: ReadonlyArray<string> = [
  // The clock of allowance windows; tests replace it.
  `CREATE FUNCTION ledger_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$`,

  // Calendar windows in UTC, weeks from Monday; other limits have one row for ever.
  `CREATE FUNCTION ledger_window(p_id text, p_at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
   SELECT CASE WHEN p_id LIKE 'allowance:%' THEN date_trunc(split_part(p_id, ':', 3), p_at, 'UTC')
               ELSE 'epoch'::timestamptz END $$`,

  // The rest of a limit that can be granted; null: no cap.
  `CREATE FUNCTION ledger_left(p_limit limits) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
   SELECT p_limit.cap - p_limit.settled - p_limit.leased $$`,

  // The row of a key's cap follows the key, and processes that hold leases of it are notified.
  `CREATE FUNCTION key_limit() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO limits (id, kind, cap) VALUES ('key:' || NEW.id, 'key', round(NEW.spend_limit_usd * 1e12))
     ON CONFLICT (id, window_start) DO UPDATE SET cap = excluded.cap;
     IF TG_OP = 'UPDATE' THEN PERFORM pg_notify('ledger', 'recall - ' || NEW.user_id); END IF;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER keys_limit AFTER INSERT ON keys FOR EACH ROW EXECUTE FUNCTION key_limit()`,
  `CREATE TRIGGER keys_limit_changed AFTER UPDATE OF spend_limit_usd ON keys FOR EACH ROW
   WHEN (NEW.spend_limit_usd IS DISTINCT FROM OLD.spend_limit_usd) EXECUTE FUNCTION key_limit()`,
  `INSERT INTO limits (id, kind, cap) SELECT 'key:' || id, 'key', round(spend_limit_usd * 1e12) FROM keys`,

  // The rows of the windows around an instant, if the subscription is active then.
  `CREATE FUNCTION ledger_open_windows(p_ids text[], p_at timestamptz) RETURNS void LANGUAGE sql AS $$
   INSERT INTO limits (id, window_start, kind, cap)
   SELECT a.id, ledger_window(a.id, p_at), 'allowance',
          CASE split_part(a.id, ':', 3) WHEN 'hour' THEN p.hour_tokens WHEN 'day' THEN p.day_tokens
                                        ELSE p.week_tokens END
   FROM unnest(p_ids) AS a(id)
   JOIN subscriptions s ON s.id = split_part(a.id, ':', 2)
   JOIN plans p ON p.id = s.plan_id
   WHERE a.id LIKE 'allowance:%' AND s.status = 'active' AND s.current_period_end > p_at
     AND NOT EXISTS (SELECT 1 FROM limits l WHERE l.id = a.id AND l.window_start = ledger_window(a.id, p_at))
   ORDER BY a.id
   ON CONFLICT DO NOTHING $$`,

  // Leases of each limit at least need, or nothing of any of them; at most want, and if that leaves some, up to a
  // quarter of the rest and at most more. No rows: the owner's leases were given up. leased_by_others: by other owners.
  `CREATE FUNCTION ledger_grant(p_owner text, p_generation integer, p_ids text[], p_needs numeric[], p_wants numeric[],
     p_mores numeric[])
   RETURNS TABLE (limit_id text, window_millis text, ends_in_millis double precision, is_granted boolean,
     granted_total text, available text, leased_by_others text)
   LANGUAGE plpgsql AS $$
   #variable_conflict use_column
   DECLARE
     at timestamptz := ledger_now();
     starts timestamptz[] := ARRAY(SELECT ledger_window(id, at) FROM unnest(p_ids) WITH ORDINALITY AS a(id, n) ORDER BY n);
     may boolean := true;
     r record;
     l limits;
     ends timestamptz;
     own leases;
     give numeric;
   BEGIN
     PERFORM 1 FROM owners o WHERE o.id = p_owner AND o.generation = p_generation FOR KEY SHARE;
     IF NOT FOUND THEN RETURN; END IF;
     PERFORM ledger_open_windows(p_ids, at);
     PERFORM 1 FROM limits li JOIN unnest(p_ids, starts) AS a(id, start) ON li.id = a.id AND li.window_start = a.start
       ORDER BY li.id, li.window_start FOR UPDATE OF li;
     SELECT bool_and(li.id IS NOT NULL AND coalesce(ledger_left(li) >= a.need, true)
              AND (s.id IS NOT NULL OR a.id NOT LIKE 'allowance:%')) INTO may
       FROM unnest(p_ids, starts, p_needs) AS a(id, start, need)
       LEFT JOIN limits li ON li.id = a.id AND li.window_start = a.start
       LEFT JOIN subscriptions s ON a.id LIKE 'allowance:%' AND s.id = split_part(a.id, ':', 2)
         AND s.status = 'active' AND s.current_period_end > at;
     FOR r IN SELECT * FROM unnest(p_ids, starts, p_needs, p_wants, p_mores) AS a(id, start, need, want, more) LOOP
       SELECT * INTO l FROM limits li WHERE li.id = r.id AND li.window_start = r.start;
       ends := NULL;
       IF r.id LIKE 'allowance:%' THEN
         SELECT least(r.start + ('1 ' || split_part(r.id, ':', 3))::interval, s.current_period_end) INTO ends
           FROM subscriptions s WHERE s.id = split_part(r.id, ':', 2) AND s.status = 'active' AND s.current_period_end > at;
         IF ends IS NULL THEN l := NULL; END IF;
       END IF;
       give := 0;
       IF may AND l.id IS NOT NULL THEN
         give := CASE WHEN ledger_left(l) IS NULL THEN r.want + r.more
                      WHEN ledger_left(l) <= r.want THEN greatest(ledger_left(l), 0)
                      ELSE r.want + least(r.more, floor((ledger_left(l) - r.want) / 4)) END;
       END IF;
       IF give > 0 THEN
         UPDATE limits li SET leased = li.leased + give WHERE li.id = r.id AND li.window_start = r.start RETURNING li.* INTO l;
         INSERT INTO leases AS le (owner, limit_id, window_start, granted) VALUES (p_owner, r.id, r.start, give)
         ON CONFLICT (owner, limit_id, window_start) DO UPDATE SET granted = le.granted + give RETURNING le.* INTO own;
       ELSE
         SELECT * INTO own FROM leases le WHERE le.owner = p_owner AND le.limit_id = r.id AND le.window_start = r.start;
       END IF;
       limit_id := r.id;
       window_millis := round(extract(epoch FROM r.start) * 1000)::text;
       ends_in_millis := extract(epoch FROM ends - at) * 1000;
       is_granted := may;
       granted_total := coalesce(own.granted, 0)::text;
       available := CASE WHEN l.id IS NULL THEN '0' ELSE ledger_left(l)::text END;
       leased_by_others := (coalesce(l.leased, 0) - coalesce(own.amount, 0))::text;
       RETURN NEXT;
     END LOOP;
   END $$`,

  // Gives back leases up to these totals, as far as they are there, and notifies the processes that want them.
  `CREATE FUNCTION ledger_return(p_owner text, p_generation integer, p_ids text[], p_starts bigint[], p_totals numeric[],
     p_told text[])
   RETURNS TABLE (limit_id text, window_millis text, granted_total text) LANGUAGE plpgsql AS $$
   #variable_conflict use_column
   BEGIN
     PERFORM 1 FROM owners o WHERE o.id = p_owner AND o.generation = p_generation FOR KEY SHARE;
     IF NOT FOUND THEN RETURN; END IF;
     PERFORM 1 FROM limits li JOIN unnest(p_ids, p_starts) AS a(id, start)
         ON li.id = a.id AND li.window_start = 'epoch'::timestamptz + a.start * interval '1 millisecond'
       ORDER BY li.id, li.window_start FOR UPDATE OF li;
     RETURN QUERY
       WITH asked AS (
         SELECT a.id, a.start, le.window_start,
                greatest(0, least(a.total - le.returned, le.amount)) AS back, le.granted
         FROM unnest(p_ids, p_starts, p_totals) AS a(id, start, total)
         JOIN leases le ON le.owner = p_owner AND le.limit_id = a.id
           AND le.window_start = 'epoch'::timestamptz + a.start * interval '1 millisecond'),
       given AS (
         UPDATE leases le SET returned = le.returned + a.back FROM asked a
         WHERE le.owner = p_owner AND le.limit_id = a.id AND le.window_start = a.window_start AND a.back > 0),
       freed AS (
         UPDATE limits li SET leased = li.leased - a.back FROM asked a
         WHERE li.id = a.id AND li.window_start = a.window_start AND a.back > 0)
       SELECT a.id, a.start::text, a.granted::text FROM asked a;
     PERFORM pg_notify('ledger', 'returned ' || p_owner || ' ' || told) FROM unnest(p_told) AS told;
   END $$`,

  // Gives up all leases of an owner: those that a process left, or a dead one's.
  `CREATE FUNCTION ledger_release(p_owner text) RETURNS integer LANGUAGE plpgsql AS $$
   DECLARE new_generation integer;
   BEGIN
     PERFORM 1 FROM owners WHERE id = p_owner FOR UPDATE;
     UPDATE owners SET generation = generation + 1 WHERE id = p_owner RETURNING generation INTO new_generation;
     PERFORM 1 FROM limits li JOIN leases le ON le.limit_id = li.id AND le.window_start = li.window_start
       WHERE le.owner = p_owner ORDER BY li.id, li.window_start FOR UPDATE OF li;
     WITH gone AS (DELETE FROM leases le WHERE le.owner = p_owner RETURNING le.limit_id, le.window_start, le.amount)
     UPDATE limits li SET leased = li.leased - g.amount FROM gone g
       WHERE li.id = g.limit_id AND li.window_start = g.window_start;
     RETURN new_generation;
   END $$`,

  // Books the new ones among settlements, in one transaction with the offset that the log is settled to. Rows: draws
  // that neither leases nor the rest of the limit cover, and the missing amount; then nothing was booked.
  `CREATE FUNCTION ledger_settle(p_owner text, p_applied bigint,
     e_requests text[], e_kinds text[], e_debits text[], e_credits text[], e_amounts numeric[], e_units text[],
     e_users text[], e_keys text[], e_starts bigint[],
     d_entries integer[], d_ids text[], d_starts bigint[], d_amounts numeric[], d_leased boolean[])
   RETURNS TABLE (limit_id text, window_millis text, missing text) LANGUAGE plpgsql AS $$
   #variable_conflict use_column
   DECLARE
     is_new boolean[];
     ids text[];
     starts timestamptz[];
     totals numeric[];
     leaseds numeric[];
   BEGIN
     is_new := ARRAY(SELECT NOT EXISTS (SELECT 1 FROM entries e WHERE e.request_id = r AND e.kind = k
                       AND e.window_start = 'epoch'::timestamptz + s * interval '1 millisecond')
                     FROM unnest(e_requests, e_kinds, e_starts) WITH ORDINALITY AS a(r, k, s, n) ORDER BY n);
     SELECT array_agg(s.id), array_agg(s.start), array_agg(s.total), array_agg(s.leased)
       INTO ids, starts, totals, leaseds
       FROM (SELECT d.id, 'epoch'::timestamptz + d.start * interval '1 millisecond' AS start, sum(d.amount) AS total,
                    coalesce(sum(d.amount) FILTER (WHERE d.leased), 0) AS leased
             FROM unnest(d_entries, d_ids, d_starts, d_amounts, d_leased) AS d(entry, id, start, amount, leased)
             WHERE is_new[d.entry] GROUP BY 1, 2) AS s;
     PERFORM 1 FROM limits li JOIN unnest(ids, starts) AS d(id, start) ON li.id = d.id AND li.window_start = d.start
       ORDER BY li.id, li.window_start FOR UPDATE OF li;

     -- The amount that the leases lack (they were given up) is leased now, up to the rest of the limit.
     WITH late AS (
       SELECT li.id, li.window_start,
              least(d.leased - coalesce(le.amount, 0), greatest(coalesce(ledger_left(li), d.leased), 0)) AS give
       FROM unnest(ids, starts, leaseds) AS d(id, start, leased)
       JOIN limits li ON li.id = d.id AND li.window_start = d.start
       LEFT JOIN leases le ON le.owner = p_owner AND le.limit_id = d.id AND le.window_start = d.start
       WHERE d.leased > coalesce(le.amount, 0)),
     leased AS (
       UPDATE limits li SET leased = li.leased + late.give FROM late
       WHERE li.id = late.id AND li.window_start = late.window_start)
     INSERT INTO leases AS le (owner, limit_id, window_start, covered)
       SELECT p_owner, late.id, late.window_start, late.give FROM late WHERE late.give > 0
     ON CONFLICT (owner, limit_id, window_start) DO UPDATE SET covered = le.covered + excluded.covered;

     RETURN QUERY
       SELECT d.id, round(extract(epoch FROM d.start) * 1000)::text, (d.leased - coalesce(le.amount, 0))::text
       FROM unnest(ids, starts, leaseds) AS d(id, start, leased)
       LEFT JOIN leases le ON le.owner = p_owner AND le.limit_id = d.id AND le.window_start = d.start
       WHERE d.leased > coalesce(le.amount, 0);
     IF FOUND THEN RETURN; END IF;

     INSERT INTO entries (request_id, kind, debit, credit, amount, unit, user_id, key_id, window_start)
       SELECT e.request, e.kind, e.debit, e.credit, e.amount, e.unit, e.user_id, e.key_id,
              'epoch'::timestamptz + e.start * interval '1 millisecond'
       FROM unnest(is_new, e_requests, e_kinds, e_debits, e_credits, e_amounts, e_units, e_users, e_keys, e_starts)
         AS e(is_new, request, kind, debit, credit, amount, unit, user_id, key_id, start)
       WHERE e.is_new;
     UPDATE limits li SET settled = li.settled + d.total, leased = li.leased - d.leased
       FROM unnest(ids, starts, totals, leaseds) AS d(id, start, total, leased)
       WHERE li.id = d.id AND li.window_start = d.start;
     UPDATE leases le SET settled = le.settled + d.leased
       FROM unnest(ids, starts, leaseds) AS d(id, start, leased)
       WHERE le.owner = p_owner AND le.limit_id = d.id AND le.window_start = d.start AND d.leased > 0;
     UPDATE owners SET applied = p_applied WHERE id = p_owner;
   END $$`
]
