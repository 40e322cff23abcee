import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  Conflict,
  type Forbidden,
  type NotFound,
  type RateLimited,
  type ServiceUnavailable
} from "#schemas/core/Problem.ts"
import type { RetriedEmail } from "#schemas/mail/Email.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { mailDeliveries } from "../delivery/MailDeliveries.ts"
import { makeAllowed, makeBudget } from "../sending/SendingRights.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"

type Refused = NotFound | Conflict | Forbidden | RateLimited | ServiceUnavailable

/** Deliveries that failed and are tried anew. Source: contract/mail#reading. */
export class MailRetries extends Context.Service<
  MailRetries,
  {
    /** The recipients of a mail whose deliveries bounced, expired or are unknown; those who are suppressed stay as they are. */
    readonly retry: (caller: Principal, id: string) => Effect.Effect<RetriedEmail, Refused | SqlError>
  }
>()("signalbox/mail/MailRetries") {
  static readonly layer = Layer.effect(
    MailRetries,
    Effect.suspend(() => make)
  )
}

interface MessageRow {
  readonly from_address: string
  readonly is_bulk: boolean
  readonly is_kept: boolean
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const jobs = yield* Jobs
  const suppressions = yield* Suppressions
  const allowed = yield* makeAllowed
  const budget = yield* makeBudget

  const requeue = Effect.fnUntraced(function* (
    message: string,
    owner: string,
    deliveries: ReadonlyArray<string>
  ) {
    yield* sql`UPDATE mail_deliveries SET status = 'queued', retried_at = now(), next_attempt_at = now(),
        ending_attempt = NULL, ended_at = NULL
      WHERE id = ANY(${deliveries}::text[])`
    // Of ids of their own: the job before may be about to end, and one of its id would be left out for it.
    yield* jobs.offer(
      mailDeliveries,
      deliveries.map((lane) => ({ lane, payload: { message, owner } }))
    )
    // A report may have bounced a delivery whose job waits for its next attempt, hours away.
    yield* jobs.hasten(mailDeliveries, deliveries)
  })

  const retry = Effect.fn("MailRetries.retry")(function* (
    caller: Principal,
    id: string
  ): Effect.fn.Return<RetriedEmail, Refused | SqlError> {
    const owner = caller.ownerId
    const [message] = yield* sql<MessageRow>`
      SELECT from_address, is_bulk, bytes IS NOT NULL OR sha256 IS NOT NULL AS is_kept
      FROM mail_messages WHERE id = ${id} AND user_id = ${owner}`
    if (message === undefined) return yield* notFound("Mail")
    const failed = yield* sql<{ id: string; address: string }>`SELECT id, address FROM mail_deliveries
      WHERE message_id = ${id} AND status IN ('bounced', 'expired', 'unknown') ORDER BY place FOR UPDATE`
    if (failed.length === 0) return yield* Conflict.of("No delivery of this mail failed")
    if (!message.is_kept) return yield* Conflict.of("The body of this mail is not kept any more")
    yield* allowed(caller, message.from_address.slice(message.from_address.lastIndexOf("@") + 1))
    const addresses = failed.map(({ address }) => address)
    const suppressed = yield* suppressions.of(owner, addresses, message.is_bulk)
    const due = failed.filter(({ address }) => !suppressed.has(address))
    if (due.length > 0) {
      yield* budget(caller, due.length)
      yield* requeue(
        id,
        owner,
        due.map((delivery) => delivery.id)
      )
    }
    return { retried: due.map(({ address }) => address), suppressed: [...suppressed.keys()] }
  }, sql.withTransaction)

  return MailRetries.of({ retry })
})
