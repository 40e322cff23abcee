import { createHash } from "node:crypto"
import { type Cause, Context, Effect, Layer, Random, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { Conflict } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Limits } from "#src/Limits.ts"

/** Whether an `Idempotency-Key` is one: 1 to 255 characters of printable ASCII, as a header may carry them. */
export const isIdempotencyKey = (key: string): boolean => /^[\x20-\x7e]{1,255}$/.test(key)

/** A request that is to be carried out once, however often it is sent. */
interface OnceRequest {
  /** the operation and the owner of its keys, such as `call:<key id>`: the same key elsewhere is another one */
  readonly scope: string
  /** the user whose bounds the answer counts towards */
  readonly userId: string
  /** the header `Idempotency-Key` */
  readonly key: string
  /** all that makes it this request and not another one */
  readonly request: ReadonlyArray<Uint8Array | string>
  /** in a transaction: how long its twin waits for it; else `idempotencyWaitMillis` */
  readonly waitMillis?: number
}

/** An answer as it was sent. `body` null: it was too long to be kept, or cannot be. */
export interface KeptAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | null
}

/** The record of a request that came before. */
type Known =
  | { readonly _tag: "InFlight" }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "Answered"; readonly answer: KeptAnswer }

/** Ends a claim. Without an answer it came to nothing that counts: the next request with its key is carried out. */
export type Finish = (answer: KeptAnswer | undefined) => Effect.Effect<void>

/** The request came before, or it is the first one and is carried out. */
export type Claim = Known | { readonly _tag: "Claimed"; readonly finish: Finish }

/** Characters of an answer that are kept. */
export const keptLengthMax = 256 * 1024

/**
 * Requests with an Idempotency-Key and their answers, kept for 24 hours, for all processes. Source:
 * contract/http#idempotency.
 */
export class Idempotency extends Context.Service<
  Idempotency,
  {
    /**
     * For work that outlasts a transaction, such as a stream. The process renews its claims until they are finished; those
     * of one that died are free within a minute.
     */
    readonly claim: (request: OnceRequest) => Effect.Effect<Claim, SqlError>
    /**
     * Carries it out and keeps its result in one transaction, the caller's where there is one: a process that dies leaves
     * nothing. Meanwhile the same request waits for `waitMillis`.
     */
    readonly inTransaction: <A, E>(
      request: OnceRequest,
      result: Schema.Codec<A, unknown>,
      make: Effect.Effect<A, E>
    ) => Effect.Effect<A, E | Conflict | SqlError>
    /** Removes answers that are no longer kept. */
    readonly sweep: Effect.Effect<unknown, SqlError>
  }
>()("signalbox/infra/Idempotency") {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const store = new Store(yield* SqlClient, limits)
      const renewed = Effect.timeout(store.renew, limits.idempotencyBeatMillis)
      const renew = logged("Claims could not be renewed", renewed)
      yield* Effect.forkScoped(Effect.repeat(renew, Schedule.spaced(limits.idempotencyBeatMillis)))
      return store
    })
  )
}

const conflict = (problem: string) => Conflict.of(problem, { code: "idempotency_conflict" })

const logged = (
  problem: string,
  effect: Effect.Effect<unknown, SqlError | Cause.TimeoutError>
): Effect.Effect<void> => Effect.catch(Effect.asVoid(effect), (error) => Effect.logWarning(problem, error))

interface Row {
  readonly request_hash: Uint8Array
  readonly status: number | null
  readonly content_type: string
  readonly body: string | null
}

/** A claim. The request's bytes need not be held for as long. */
const heldOf = ({ key, scope, userId }: OnceRequest) => ({ key, scope, userId, claim: newId("clm") })
type Held = ReturnType<typeof heldOf>

const hashOf = ({ request }: OnceRequest): Buffer =>
  request.reduce((hash, part) => hash.update(part), createHash("sha256")).digest()

class Store {
  private readonly sql: SqlClient
  private readonly limits: Limits
  /** claims of this process under way */
  private readonly held = new Set<Held>()
  private readonly isOld: Fragment

  constructor(sql: SqlClient, limits: Limits) {
    this.sql = sql
    this.limits = limits
    this.isOld = sql`idempotency.created_at < now() - ${limits.idempotencyKeptMillis} * interval '1 millisecond'`
  }

  readonly claim = (request: OnceRequest): Effect.Effect<Claim, SqlError> => {
    const held = heldOf(request)
    return Effect.map(this.take(held, request), (known) => {
      if (known !== undefined) return known
      this.held.add(held)
      return { _tag: "Claimed", finish: this.finish(held) }
    })
  }

  readonly inTransaction = <A, E>(
    request: OnceRequest,
    result: Schema.Codec<A, unknown>,
    make: Effect.Effect<A, E>
  ) => {
    const json = Schema.fromJsonString(result)
    const held = heldOf(request)
    const once = Effect.gen({ self: this }, function* () {
      const { waitMillis = this.limits.idempotencyWaitMillis } = request
      yield* this.sql`SELECT set_config('lock_timeout', ${String(waitMillis)}, true)`
      const known = yield* Effect.catchIf(
        this.take(held, request),
        ({ reason }) => reason._tag === "LockTimeoutError",
        () => Effect.succeed({ _tag: "InFlight" } as const)
      )
      if (known === undefined) {
        // The work waits for its own locks as long as without a key.
        yield* this.sql`SELECT set_config('lock_timeout', '0', true)`
        const made = yield* make
        const body = yield* Effect.orDie(Schema.encodeEffect(json)(made))
        yield* this.keep(held, { status: 200, contentType: "application/json", body })
        return made
      }
      if (known._tag === "InFlight")
        return yield* conflict("A request with this Idempotency-Key is being served")
      // An answer whose body was given up says as much as another request: the key is used.
      if (known._tag === "OtherRequest" || known.answer.body === null)
        return yield* conflict("This Idempotency-Key was used for another request")
      return yield* Effect.orDie(Schema.decodeEffect(json)(known.answer.body))
    })
    return this.sql.withTransaction(once)
  }

  /** This process is at work on its claims. */
  readonly renew = Effect.suspend((): Effect.Effect<unknown, SqlError> => {
    const held = [...this.held]
    if (held.length === 0) return Effect.void
    return this.sql`UPDATE idempotency i SET alive_at = clock_timestamp()
      FROM unnest(${held.map(({ claim }) => claim)}::text[], ${held.map(({ scope }) => scope)}::text[],
        ${held.map(({ key }) => key)}::text[]) AS a(claim, scope, key)
      WHERE i.scope = a.scope AND i.key = a.key AND i.claim = a.claim AND i.status IS NULL`
  })

  /** Removes what is old, so many rows at a time. A row that another request takes over meanwhile is left to it. */
  readonly sweep = Effect.suspend(() =>
    Effect.repeat(
      this.sql`DELETE FROM idempotency WHERE ctid = ANY(ARRAY(SELECT ctid FROM idempotency
        WHERE ${this.isOld} LIMIT ${this.limits.idempotencySweepRows} FOR UPDATE SKIP LOCKED)) RETURNING 1`,
      { while: (rows) => rows.length === this.limits.idempotencySweepRows }
    )
  )

  /** undefined: the request was not known, or its claim is over, and it is this claim's now. */
  private take(held: Held, request: OnceRequest): Effect.Effect<Known | undefined, SqlError> {
    const { claim, key, scope, userId } = held
    const hash = hashOf(request)
    return Effect.gen({ self: this }, function* () {
      const taken = yield* this.sql`
        INSERT INTO idempotency (scope, key, user_id, claim, request_hash)
        VALUES (${scope}, ${key}, ${userId}, ${claim}, ${hash})
        ON CONFLICT (scope, key) DO UPDATE SET
          user_id = excluded.user_id, claim = excluded.claim, request_hash = excluded.request_hash, status = NULL,
          content_type = NULL, body = NULL, created_at = clock_timestamp(), alive_at = clock_timestamp()
        WHERE ${this.isOld} OR (idempotency.status IS NULL AND idempotency.alive_at
          < clock_timestamp() - ${this.limits.idempotencyDeadMillis} * interval '1 millisecond')
        RETURNING 1`
      if (taken.length > 0) return undefined
      const [row] = yield* this.sql<Row>`SELECT request_hash, status, content_type, body FROM idempotency
        WHERE scope = ${scope} AND key = ${key}`
      // Given back between the two statements.
      if (row === undefined) return yield* this.take(held, request)
      if (!hash.equals(row.request_hash)) return { _tag: "OtherRequest" }
      if (row.status === null) return { _tag: "InFlight" }
      const { body, content_type: contentType, status } = row
      return { _tag: "Answered", answer: { status, contentType, body } }
    })
  }

  /** The caller gets an answer that could not be kept, too: at worst a repetition is told to wait for a minute. */
  private readonly finish =
    (held: Held): Finish =>
    (answer) =>
      Effect.ensuring(
        logged(
          "The answer of a call with an Idempotency-Key could not be kept",
          answer ? this.keep(held, answer) : this.sql`DELETE FROM idempotency WHERE ${this.isOf(held)}`
        ),
        Effect.sync(() => this.held.delete(held))
      )

  private keep(held: Held, { body, contentType, status }: KeptAnswer): Effect.Effect<void, SqlError> {
    // Postgres has no text with a zero in it.
    const kept = body === null || body.length > keptLengthMax || body.includes("\u0000") ? null : body
    const write = this.sql`UPDATE idempotency SET status = ${status}, content_type = ${contentType}, body = ${kept}
      WHERE ${this.isOf(held)}`
    return Effect.andThen(write, this.sql.afterCommit(this.bound(held.userId, kept?.length ?? 0)))
  }

  private isOf({ claim, key, scope }: Held): Fragment {
    return this.sql`scope = ${scope} AND key = ${key} AND claim = ${claim}`
  }

  /**
   * Keeps a user within their bounds. To look at all answers for each new one would cost too much: one look comes for each
   * eighth of a bound on average, whichever process keeps the answers.
   */
  private bound(userId: string, characters: number): Effect.Effect<void> {
    const { idempotencyUserAnswers: answersMax, idempotencyUserCharacters: charactersMax } = this.limits
    const share = Math.max(1 / answersMax, characters / charactersMax)
    // The oldest answers lose their bodies first: their requests are still not carried out again.
    const trim = this.sql`
      WITH ranked AS (
        SELECT scope, key, claim, row_number() OVER newest AS place, sum(length) OVER newest AS total
        FROM idempotency WHERE user_id = ${userId} AND status IS NOT NULL
        WINDOW newest AS (ORDER BY created_at DESC, scope, key)),
      forgotten AS (
        DELETE FROM idempotency i USING ranked r
        WHERE i.scope = r.scope AND i.key = r.key AND i.claim = r.claim AND r.place > ${answersMax})
      UPDATE idempotency i SET body = NULL FROM ranked r
      WHERE i.scope = r.scope AND i.key = r.key AND i.claim = r.claim AND r.place <= ${answersMax}
        AND r.total > ${charactersMax} AND i.body IS NOT NULL`
    return Effect.flatMap(Random.next, (drawn) =>
      drawn < 8 * share ? logged("Answers beyond a user's bounds were not given up", trim) : Effect.void
    )
  }
}
