import { setTimeout as pause } from "node:timers/promises"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { collectGarbage } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import { type BenchCase, sized } from "#bench/harness/Suite.ts"
import { arrivedAt, refuseAt, resetSink } from "./Sink.ts"
import { type Given, mail, onPostgres, withServer } from "./Stage.ts"

/** Mails that are due, as sends leave them. */
const fill = (given: Given, count: number) =>
  onPostgres(
    given,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const raw = Buffer.from(
        `From: ${mail.from}\r\nTo: ${mail.to}\r\nSubject: ${mail.subject}\r\n\r\n${mail.text}\r\n`
      )
      yield* sql`INSERT INTO mail_messages (id, user_id, header_id, from_address, subject, is_bulk, size, bytes)
        SELECT 'eml_' || n, ${given.owner}, 'eml_' || n, ${mail.from}, ${mail.subject}, false, ${raw.length}, ${raw}
        FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`INSERT INTO mail_deliveries (id, message_id, place, user_id, kind, address, next_attempt_at)
        SELECT 'mdl_' || n, 'eml_' || n, 1, ${given.owner}, 'to', ${mail.to}, now() FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`INSERT INTO job_lanes (queue, lane, due_at, waiting)
        SELECT 'mail', 'mdl_' || n, now(), 1 FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`INSERT INTO jobs (queue, lane, seq, id, payload, offered_at)
        SELECT 'mail', 'mdl_' || n, nextval('job_seqs'), 'mdl_' || n,
          jsonb_build_object('message', 'eml_' || n, 'owner', ${given.owner}::text), now()
        FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`ANALYZE`
    })
  )

/**
 * A server with so much to do and a relay that refuses it, then one that is killed and started again with a relay that
 * takes mail: from the instant at which it is ready to the first mail at the relay.
 */
export const restarted: BenchCase<Given>["run"] = (context) =>
  withServer(context.given, async (server) => {
    const { given } = context
    const count = sized(context, { tiny: 200, quick: 100_000, full: 100_000 })
    await collectGarbage(server.pid())
    const idleMiB = residentMiB(server.pid())
    await refuseAt(given.sinkPort)
    await fill(given, count)
    let mostMiB = idleMiB
    const startedAt = performance.now()
    for (
      const end = startedAt + sized(context, { tiny: 200, quick: 5_000, full: 30_000 });
      performance.now() < end;
    ) {
      mostMiB = Math.max(mostMiB, residentMiB(server.pid()))
      await pause(100)
    }
    await server.stop("SIGKILL")
    await onPostgres(
      given,
      Effect.flatMap(
        SqlClient,
        (sql) => sql`UPDATE job_lanes SET due_at = now(), rests_until = '-infinity'
        WHERE queue = 'mail' AND holder IS NULL`
      )
    )
    await resetSink(given.sinkPort)
    await server.start()
    const readyAt = performance.timeOrigin + performance.now()
    for (const end = performance.now() + 60_000; performance.now() < end;) {
      if ((await arrivedAt(given.sinkPort)).count > 0) break
      await pause(50)
    }
    const { firstAtMillis } = await arrivedAt(given.sinkPort)
    if (firstAtMillis === 0) throw new Error("no mail came within 60 s of the restart")
    return {
      work: count,
      elapsedMillis: performance.now() - startedAt,
      // It may be there before the start is noticed.
      figures: {
        "RSS above idle MiB": mostMiB - idleMiB,
        "drain after ms": Math.max(0, firstAtMillis - readyAt)
      }
    }
  })
