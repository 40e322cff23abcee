import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { ConfigChanges } from "#src/Config.ts"
import type { SmtpServer } from "#src/mail/transports/SmtpUrl.ts"
import { type Outside, TestServer } from "#test/harness/TestServer.ts"
import { type Sink, type SinkScript, startSink } from "./SmtpSink.ts"

/** The relay of a server whose mail goes to a sink of the test. */
export class Relay extends Context.Service<Relay, Sink>()("signalbox/test/Relay") {}

/** The sink as a relay that is logged in to, in plain text. */
export const smtpServerAt = ({ port }: Pick<Sink, "port">): SmtpServer => ({
  host: "127.0.0.1",
  port,
  tls: "none",
  login: { user: "shop", password: Redacted.make("open sesame") }
})

export const withLogin = (moves: SinkScript["moves"] = {}): SinkScript => ({ auth: "PLAIN", moves })

/** Another try comes soon: of the route after a tenth of a second, a delivery when `hurry` says so. */
export const impatient = {
  jobRetryMinMillis: 20,
  jobRetryMaxMillis: 200,
  jobPollMillis: 50,
  mailRestMinMillis: 100,
  mailRestMaxMillis: 100
}

/** A server with mail, and the relay that it hands its mail to. */
export const relayedServer = (changes: ConfigChanges = {}, outside: Outside = {}) =>
  Layer.unwrap(
    Effect.map(Relay, (sink) =>
      TestServer.own(
        {
          ...changes,
          smtpServer: smtpServerAt(sink),
          limits: { ...impatient, ...changes.limits }
        },
        outside
      )
    )
  ).pipe(Layer.provideMerge(Layer.effect(Relay, startSink(withLogin()))))

/** The pauses of all deliveries that wait are over. */
export const hurry = Effect.flatMap(
  SqlClient,
  (sql) => sql`UPDATE job_lanes SET due_at = now(), rests_until = '-infinity'
    WHERE queue = 'mail' AND holder IS NULL AND waiting > 0 AND due_at > now()`
)

/** The jobs of a mail that have not ended; `underWay`: those whose turn it is. */
export const jobsOf = (id: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ underWay: boolean }>`SELECT l.holder IS NOT NULL AS "underWay" FROM mail_deliveries d
        JOIN jobs j ON j.queue = 'mail' AND j.id = d.id JOIN job_lanes l ON l.queue = j.queue AND l.lane = j.lane
        WHERE d.message_id = ${id}`,
      (rows) => ({ left: rows.length, underWay: rows.filter(({ underWay }) => underWay).length })
    )
  )
