import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** Leaves jobs of a queue that were given up, in one lane and as old as their place. */
export const leaveDead = (queue: string, ids: ReadonlyArray<string>) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`INSERT INTO jobs_ended
      SELECT ${queue}, 'lane', nextval('job_seqs'), u.id, 'dead', 3, false, 'refused: ' || u.id, '{"secret": "payload"}',
        now() - interval '1 hour', now() + u.n * interval '1 second'
      FROM unnest(${ids}::text[]) WITH ORDINALITY AS u(id, n)`
  )
