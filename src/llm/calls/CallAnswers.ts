import { hash } from "node:crypto"
import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { newId } from "#src/infra/crypto/Tokens.ts"

/** A call that is to be made once, however often it is sent. */
export interface KeyedCall {
  readonly keyId: string
  /** the header `Idempotency-Key` */
  readonly idempotencyKey: string
  readonly path: string
  readonly body: Uint8Array
}

/** An answer as it was sent. `body` null: it was too long to be kept, or cannot be. */
export interface KeptAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | null
}

/** What is known of a call when it arrives. */
export type Claim =
  | { readonly _tag: "Claimed"; readonly claim: string }
  | { readonly _tag: "InFlight" }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "Answered"; readonly answer: KeptAnswer }

/** Characters of an answer that are kept. */
export const keptLengthMax = 256 * 1024

/** The answers of calls with an Idempotency-Key, kept for 24 hours, for all processes. Source: decisions, LLM (Charging). */
export class CallAnswers extends Context.Service<
  CallAnswers,
  {
    readonly claim: (call: KeyedCall) => Effect.Effect<Claim, SqlError>
    readonly keep: (claim: string, call: KeyedCall, answer: KeptAnswer) => Effect.Effect<void, SqlError>
    /** The call came to nothing that counts: the next one with its key is made. */
    readonly release: (claim: string, call: KeyedCall) => Effect.Effect<void, SqlError>
  }
>()("signalbox/llm/CallAnswers") {
  static readonly layer = Layer.effect(
    CallAnswers,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* Effect.forkScoped(
        Effect.repeat(
          Effect.catch(forget(sql), (error) => Effect.logWarning("Old answers were not removed", error)),
          Schedule.spaced("10 minutes")
        )
      )
      return CallAnswers.of(answersIn(sql))
    })
  )
}

const forget = (sql: SqlClient) =>
  sql`DELETE FROM call_answers WHERE created_at < clock_timestamp() - interval '24 hours'`

interface Row {
  readonly request_hash: Uint8Array
  readonly path: string
  readonly status: number | null
  readonly content_type: string | null
  readonly body: string | null
}

const answersIn = (sql: SqlClient): CallAnswers["Service"] => {
  /** A row counts for 24 hours; one whose call never came to its end, because its process was killed, for one. */
  const take = (call: KeyedCall, claim: string) => sql<{ claim: string }>`
    INSERT INTO call_answers (key_id, idempotency_key, claim, path, request_hash)
    VALUES (${call.keyId}, ${call.idempotencyKey}, ${claim}, ${call.path}, ${hashOf(call.body)})
    ON CONFLICT (key_id, idempotency_key) DO UPDATE SET
      claim = excluded.claim, path = excluded.path, request_hash = excluded.request_hash, status = NULL,
      content_type = NULL, body = NULL, created_at = clock_timestamp()
    WHERE call_answers.created_at < clock_timestamp() - interval '24 hours'
      OR (call_answers.status IS NULL AND call_answers.created_at < clock_timestamp() - interval '1 hour')
    RETURNING claim`

  const isOwn = (claim: string, { idempotencyKey, keyId }: KeyedCall) =>
    sql`key_id = ${keyId} AND idempotency_key = ${idempotencyKey} AND claim = ${claim}`

  const claimOf = (call: KeyedCall): Effect.Effect<Claim, SqlError> =>
    Effect.gen(function* () {
      const claim = newId("clm")
      const taken = yield* take(call, claim)
      if (taken.length > 0) return { _tag: "Claimed", claim }
      const [row] = yield* sql<Row>`SELECT request_hash, path, status, content_type, body FROM call_answers
        WHERE key_id = ${call.keyId} AND idempotency_key = ${call.idempotencyKey}`
      // Released between the two statements.
      if (row === undefined) return yield* claimOf(call)
      if (row.path !== call.path || !hashOf(call.body).equals(row.request_hash))
        return { _tag: "OtherRequest" }
      if (row.status === null) return { _tag: "InFlight" }
      return {
        _tag: "Answered",
        answer: { status: row.status, contentType: row.content_type ?? "application/json", body: row.body }
      }
    })

  return {
    claim: claimOf,
    keep: (claim, call, { body, contentType, status }) =>
      Effect.asVoid(
        sql`UPDATE call_answers SET status = ${status}, content_type = ${contentType}, body = ${body}
          WHERE ${isOwn(claim, call)}`
      ),
    release: (claim, call) => Effect.asVoid(sql`DELETE FROM call_answers WHERE ${isOwn(claim, call)}`)
  }
}

const hashOf = (body: Uint8Array): Buffer => hash("sha256", body, "buffer")
