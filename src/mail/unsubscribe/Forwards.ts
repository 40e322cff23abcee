import { Effect, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Egress } from "#src/infra/egress/Egress.ts"
import { again, dead, done, type Job, type Outcome, queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"

const Forward = Schema.Struct({ delivery: Schema.String })

/** Pauses before the other four of five attempts: 1, 10 and 60 minutes, 6 hours. */
const pausesMillis = [60_000, 600_000, 3_600_000, 6 * 3_600_000]

/** Senders' own unsubscribe addresses that are to be told of a recipient who opted out here. */
export const forwards = queue("mail-unsubscribes", Forward, { attemptsMax: pausesMillis.length + 1 })

const limits = { atOnce: 8, attemptMillis: 30_000, requestMillis: 20_000, answerBytes: 4_096 } as const

/** Such an answer may be another one later: RFC 9110, 15.5.9, RFC 8470 and RFC 6585. */
const isPassing = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status)

/** Makes the same POST as a mail client would. `pauses`: before the second attempt and later ones. Source: RFC 8058, 3.2. */
export const makeForward = Effect.fnUntraced(function* (pauses: ReadonlyArray<number> = pausesMillis) {
  const sql = yield* SqlClient
  const egress = yield* Egress

  return Effect.fnUntraced(function* ({
    attempt,
    payload
  }: Pick<Job<typeof Forward.Type>, "attempt" | "payload">) {
    const [row] = yield* sql<{ url: string | null }>`SELECT m.unsubscribe_url AS url
      FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id WHERE d.id = ${payload.delivery}`
    // It went with the message.
    if (row === undefined || row.url === null) return done()
    const failed = (error: string): Outcome => again(error, pauses[attempt - 1] ?? 0)
    const answer = yield* Effect.result(
      egress.fetch({
        url: row.url,
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: "List-Unsubscribe=One-Click",
        maxBodyBytes: limits.answerBytes,
        isCutAllowed: true,
        totalMillis: limits.requestMillis
      })
    )
    if (Result.isFailure(answer)) {
      const { _tag, message } = answer.failure
      return _tag === "EgressRefused" ? dead(message) : failed(message)
    }
    const { status } = answer.success
    if (status >= 200 && status < 300) return done()
    return isPassing(status) ? failed(`it answered ${status}`) : dead(`it answered ${status}`)
  })
})

/** Tells senders' own addresses, five times at most. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const jobs = yield* Jobs
    yield* jobs.work(forwards, {
      concurrency: limits.atOnce,
      attemptMillis: limits.attemptMillis,
      handle: yield* makeForward()
    })
  })
)
