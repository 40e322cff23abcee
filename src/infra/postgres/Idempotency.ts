import { hash } from "node:crypto"
import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Limits } from "#src/Limits.ts"

/** A request that is to be carried out once, however often it is sent. */
export interface OnceRequest {
  /** the owner of the keys, such as `call:<key id>`: the same key elsewhere is another one */
  readonly scope: string
  /** the user whose limit the answers count for */
  readonly userId: string
  /** the header `Idempotency-Key` */
  readonly key: string
  /** all that makes it this request and not another one */
  readonly request: Uint8Array | string
}

/** An answer as it was sent. `body` null: it was too long to be kept, or cannot be. */
export interface KeptAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | null
}

/** The record of a request that came before. */
export type Known =
  | { readonly _tag: "InFlight" }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "Answered"; readonly answer: KeptAnswer }

/** … or it is the first one, and is carried out under this claim. */
export type Claim = Known | { readonly _tag: "Claimed"; readonly claim: string }

/** Characters of an answer that are kept. */
export const keptLengthMax = 256 * 1024

/**
 * Requests with an Idempotency-Key and their answers, kept for 24 hours, for all processes. A process says of its claims
 * that it is at work on them; those of one that died are free within a minute. Source: contract/http#idempotency.
 */
export class Idempotency extends Context.Service<
  Idempotency,
  {
    /** For work that outlasts a transaction: it ends with `keep` or `release`. */
    readonly claim: (request: OnceRequest) => Effect.Effect<Claim, SqlError>
    readonly keep: (claim: string, request: OnceRequest, answer: KeptAnswer) => Effect.Effect<void, SqlError>
    /** It came to nothing that counts: the next request with its key is carried out. */
    readonly release: (claim: string, request: OnceRequest) => Effect.Effect<void, SqlError>
    /** Carries it out and keeps its answer in one transaction; one that dies with its process leaves nothing. */
    readonly inTransaction: <E>(
      request: OnceRequest,
      make: Effect.Effect<KeptAnswer, E>
    ) => Effect.Effect<Known, E | SqlError>
  }
>()("signalbox/infra/Idempotency") {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      const store = new Store(sql, limits)
      const often = (what: string, effect: Effect.Effect<unknown, SqlError>, everyMillis: number) =>
        Effect.forkScoped(
          Effect.repeat(
            Effect.catch(effect, (error) => Effect.logWarning(what, error)),
            Schedule.spaced(everyMillis)
          )
        )
      yield* often("Claims could not be renewed", store.renew, limits.idempotencyBeatMillis)
      yield* often("Old answers were not removed", store.forget, limits.idempotencySweepMillis)
      return Idempotency.of({
        claim: (request) => store.claim(request),
        keep: (claim, request, answer) => store.keep(claim, request, answer),
        release: (claim, request) => store.release(claim, request),
        inTransaction: (request, make) => store.inTransaction(request, make)
      })
    })
  )
}

interface Row {
  readonly request_hash: Uint8Array
  readonly status: number | null
  readonly content_type: string | null
  readonly body: string | null
}

const hashOf = ({ request }: OnceRequest): Buffer => hash("sha256", request, "buffer")

class Store {
  private readonly sql: SqlClient
  private readonly limits: Limits
  /** claims of this process under way */
  private readonly held = new Map<string, OnceRequest>()
  /** kept for a user since the bounds were last looked at */
  private readonly grown = new Map<string, { answers: number; characters: number }>()

  constructor(sql: SqlClient, limits: Limits) {
    this.sql = sql
    this.limits = limits
  }

  claim(request: OnceRequest): Effect.Effect<Claim, SqlError> {
    const { key, scope, userId } = request
    const claim = newId("clm")
    const dead = this.limits.idempotencyDeadMillis
    return Effect.gen({ self: this }, function* () {
      const taken = yield* this.sql`
        INSERT INTO idempotency (scope, key, user_id, claim, request_hash)
        VALUES (${scope}, ${key}, ${userId}, ${claim}, ${hashOf(request)})
        ON CONFLICT (scope, key) DO UPDATE SET
          user_id = excluded.user_id, claim = excluded.claim, request_hash = excluded.request_hash, status = NULL,
          content_type = NULL, body = NULL, created_at = clock_timestamp(), alive_at = clock_timestamp()
        WHERE idempotency.created_at < clock_timestamp() - interval '24 hours'
          OR (idempotency.status IS NULL
            AND idempotency.alive_at < clock_timestamp() - ${dead} * interval '1 millisecond')
        RETURNING claim`
      if (taken.length > 0) {
        this.held.set(claim, request)
        return { _tag: "Claimed", claim }
      }
      const known = yield* this.known(request)
      // Released between the two statements.
      return known ?? (yield* this.claim(request))
    })
  }

  keep(claim: string, request: OnceRequest, { body, contentType, status }: KeptAnswer) {
    const write = this.sql`UPDATE idempotency SET status = ${status}, content_type = ${contentType}, body = ${body}
      WHERE ${this.isOwn(claim, request)}`
    return Effect.andThen(
      Effect.ensuring(write, this.letGo(claim)),
      Effect.suspend(() => this.bound(request.userId, body?.length ?? 0))
    )
  }

  release(claim: string, request: OnceRequest) {
    return Effect.asVoid(
      Effect.ensuring(
        this.sql`DELETE FROM idempotency WHERE ${this.isOwn(claim, request)}`,
        this.letGo(claim)
      )
    )
  }

  inTransaction<E>(request: OnceRequest, make: Effect.Effect<KeptAnswer, E>) {
    const { key, scope, userId } = request
    const once = Effect.gen({ self: this }, function* () {
      const [lock] = yield* this.sql<{ taken: boolean }>`
        SELECT pg_try_advisory_xact_lock(hashtextextended(${`${scope} ${key}`}, 0)) AS taken`
      if (lock?.taken !== true) return { _tag: "InFlight" } as const
      yield* this.sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key}
        AND created_at < clock_timestamp() - interval '24 hours'`
      const known = yield* this.known(request)
      if (known !== undefined) return known
      const answer = yield* make
      yield* this.sql`INSERT INTO idempotency (scope, key, user_id, claim, request_hash, status, content_type, body)
        VALUES (${scope}, ${key}, ${userId}, ${newId("clm")}, ${hashOf(request)}, ${answer.status},
          ${answer.contentType}, ${answer.body})`
      yield* this.bound(userId, answer.body?.length ?? 0)
      return { _tag: "Answered", answer } as const
    })
    return this.sql.withTransaction(once)
  }

  /** This process is at work on its claims. */
  readonly renew: Effect.Effect<void, SqlError> = Effect.suspend(() => {
    if (this.held.size === 0) return Effect.void
    const requests = [...this.held.values()]
    return Effect.asVoid(this.sql`UPDATE idempotency i SET alive_at = clock_timestamp()
      FROM unnest(${[...this.held.keys()]}::text[], ${requests.map(({ scope }) => scope)}::text[],
        ${requests.map(({ key }) => key)}::text[]) AS a(claim, scope, key)
      WHERE i.scope = a.scope AND i.key = a.key AND i.claim = a.claim AND i.status IS NULL`)
  })

  readonly forget = Effect.suspend(
    () => this.sql`DELETE FROM idempotency WHERE created_at < clock_timestamp() - interval '24 hours'`
  )

  /** The earlier answer to the same key; undefined where there is none. */
  private known(request: OnceRequest): Effect.Effect<Known | undefined, SqlError> {
    const rows = this.sql<Row>`SELECT request_hash, status, content_type, body FROM idempotency
      WHERE scope = ${request.scope} AND key = ${request.key}`
    return Effect.map(rows, ([row]) => {
      if (row === undefined) return undefined
      if (!hashOf(request).equals(row.request_hash)) return { _tag: "OtherRequest" }
      if (row.status === null) return { _tag: "InFlight" }
      const { body, content_type: contentType, status } = row
      return { _tag: "Answered", answer: { status, contentType: contentType ?? "application/json", body } }
    })
  }

  private isOwn(claim: string, { key, scope }: OnceRequest) {
    return this.sql`scope = ${scope} AND key = ${key} AND claim = ${claim}`
  }

  private letGo(claim: string) {
    return Effect.sync(() => this.held.delete(claim))
  }

  /** Looks at the bounds of a user each time that an eighth of them has come in, in this process. */
  private bound(userId: string, characters: number): Effect.Effect<void, SqlError> {
    const { idempotencyUserAnswers: answersMax, idempotencyUserCharacters: charactersMax } = this.limits
    const grown = this.grown.get(userId) ?? { answers: 0, characters: 0 }
    grown.answers++
    grown.characters += characters
    this.grown.set(userId, grown)
    const oldest = this.grown.keys().next().value
    if (this.grown.size > this.limits.ledgerUsers && oldest !== undefined) this.grown.delete(oldest)
    if (grown.answers < answersMax / 8 && grown.characters < charactersMax / 8) return Effect.void
    this.grown.delete(userId)
    return this.trim(userId, answersMax, charactersMax)
  }

  /** The oldest answers lose their bodies first: their requests are still not carried out again. */
  private trim(userId: string, answersMax: number, charactersMax: number): Effect.Effect<void, SqlError> {
    return Effect.asVoid(this.sql`
      WITH ranked AS (
        SELECT scope, key, row_number() OVER newest AS place, sum(length) OVER newest AS total
        FROM idempotency WHERE user_id = ${userId} AND status IS NOT NULL
        WINDOW newest AS (ORDER BY created_at DESC, scope, key)),
      forgotten AS (
        DELETE FROM idempotency i USING ranked r
        WHERE i.scope = r.scope AND i.key = r.key AND r.place > ${answersMax})
      UPDATE idempotency i SET body = NULL FROM ranked r
      WHERE i.scope = r.scope AND i.key = r.key AND r.place <= ${answersMax} AND r.total > ${charactersMax}
        AND i.body IS NOT NULL`)
  }
}
