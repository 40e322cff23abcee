import { Context, Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import { type BadRequest, Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import { type Suppression, suppressionNoteMax } from "#schemas/mail/Suppression.ts"
import type { AddedSuppression } from "#streams/mail/SuppressionCsv.ts"
import {
  notAnAddress,
  patternsFor,
  scopeOf,
  suppressionPatternOf,
  type SuppressionReason
} from "#streams/mail/SuppressionPattern.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { notFound } from "#src/infra/postgres/Table.ts"

/** Rows of an export that memory holds at once. */
const exportedAtOnce = 5_000

interface Filter {
  readonly address?: string | undefined
  readonly reason?: SuppressionReason | undefined
}

/** Addresses that an owner's mail does not go to. Source: contract/mail#suppressions. */
export class Suppressions extends Context.Service<
  Suppressions,
  {
    /** Those of the addresses that get nothing from this owner, or no bulk mail, as they were given, and why. */
    readonly of: (
      owner: string,
      addresses: ReadonlyArray<string>,
      isBulk: boolean
    ) => Effect.Effect<ReadonlyMap<string, SuppressionReason>, SqlError>
    /** By the server, for what happened to mail: however many there are. One that is there stays as it is. A longer note is cut. */
    readonly suppress: (
      owner: string,
      address: string,
      reason: SuppressionReason,
      note?: string
    ) => Effect.Effect<void, SqlError>
    /** By the owner. One that is there gets the reason and the note. */
    readonly add: (
      owner: string,
      suppression: {
        readonly address: string
        readonly reason: SuppressionReason
        readonly note: string | null
      }
    ) => Effect.Effect<Suppression, BadRequest | Conflict | SqlError>
    /** All or none, answers how many were new. Those that are there stay as they are. */
    readonly addAll: (
      owner: string,
      suppressions: ReadonlyArray<AddedSuppression>
    ) => Effect.Effect<number, Conflict | SqlError>
    readonly remove: (owner: string, id: string) => Effect.Effect<void, NotFound | SqlError>
    /** newest first; `total` is of all pages */
    readonly list: (
      owner: string,
      filter: Filter,
      page: Page
    ) => Effect.Effect<
      { readonly rows: ReadonlyArray<Suppression>; readonly total: number },
      BadRequest | SqlError
    >
    /** All, by address, in parts. The first part is read before the stream begins. */
    readonly all: (
      owner: string
    ) => Effect.Effect<Stream.Stream<ReadonlyArray<Suppression>, SqlError>, SqlError>
  }
>()("signalbox/mail/Suppressions") {
  static readonly layer = Layer.effect(
    Suppressions,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      return Suppressions.of({ ...makeReads(sql), ...makeWrites(sql, limits.suppressionsPerUser) })
    })
  )
}

const readPattern = (address: string): Effect.Effect<string, BadRequest> => {
  const pattern = suppressionPatternOf(address)
  return pattern === undefined
    ? Effect.fail(invalidField("address", notAnAddress(address)))
    : Effect.succeed(pattern)
}

const columns = "id, pattern AS address, scope, reason, note, created_at"

const makeReads = (sql: SqlClient): Pick<Suppressions["Service"], "of" | "list" | "all"> => {
  const shown = sql.literal(columns)

  const matching = (owner: string, { address, reason }: Filter) =>
    Effect.gen(function* () {
      const pattern = address === undefined ? undefined : yield* readPattern(address)
      const patterns = pattern?.startsWith("*@") === true ? [pattern] : patternsFor(pattern ?? "")
      return sql.and([
        sql`user_id = ${owner}`,
        ...(pattern === undefined ? [] : [sql`pattern = ANY(${patterns}::text[])`]),
        ...(reason === undefined ? [] : [sql`reason = ${reason}`])
      ])
    })

  return {
    of: Effect.fn("Suppressions.of")(function* (owner, addresses, isBulk) {
      const patterns = addresses.flatMap(patternsFor)
      const scopes = isBulk ? ["all", "bulk"] : ["all"]
      const found = yield* sql<{ pattern: string; scope: string; reason: SuppressionReason }>`
        SELECT pattern, scope, reason FROM mail_suppressions
        WHERE user_id = ${owner} AND pattern = ANY(${patterns}::text[]) AND scope = ANY(${scopes}::text[])
        ORDER BY scope DESC`
      // Those of scope `all` come last, and tell more.
      const reasons = new Map(found.map(({ pattern, reason }) => [pattern, reason]))
      return new Map(
        addresses.flatMap((address) => {
          const [own, domain] = patternsFor(address)
          const reason = reasons.get(own) ?? reasons.get(domain)
          return reason === undefined ? [] : [[address, reason] as const]
        })
      )
    }),
    list: Effect.fn("Suppressions.list")(function* (owner, filter, { limit, offset }) {
      const where = yield* matching(owner, filter)
      const rows = yield* sql<Suppression>`SELECT ${shown} FROM mail_suppressions WHERE ${where}
        ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
      const [counted] = yield* sql<{
        total: number
      }>`SELECT count(*)::int AS total FROM mail_suppressions WHERE ${where}`
      return { rows, total: counted?.total ?? 0 }
    }),
    all: Effect.fnUntraced(function* (owner) {
      const after = (pattern: string, scope: string) =>
        Effect.map(
          sql<Suppression>`SELECT ${shown} FROM mail_suppressions
            WHERE user_id = ${owner} AND (pattern, scope) > (${pattern}, ${scope})
            ORDER BY pattern, scope LIMIT ${exportedAtOnce}`,
          (rows) =>
            [[rows], Option.fromUndefinedOr(rows.length < exportedAtOnce ? undefined : rows.at(-1))] as const
        )
      const [first, next] = yield* after("", "")
      const rest = Option.match(next, {
        onNone: () => Stream.empty,
        onSome: (last) => Stream.paginate(last, ({ address, scope }) => after(address, scope))
      })
      return Stream.concat(Stream.fromIterable(first), rest)
    })
  }
}

/** Undoes an addition beyond the limit. Others of the same owner wait meanwhile, and count these. */
const limiting =
  (sql: SqlClient, perUser: number) =>
  <A, E>(owner: string, addition: Effect.Effect<A, E>, isNew: (added: A) => boolean) =>
    Effect.gen(function* () {
      yield* sql`SELECT id FROM users WHERE id = ${owner} FOR NO KEY UPDATE`
      const added = yield* addition
      if (!isNew(added)) return added
      const [row] = yield* sql<{
        total: number
      }>`SELECT count(*)::int AS total FROM mail_suppressions WHERE user_id = ${owner}`
      if ((row?.total ?? 0) > perUser)
        return yield* Conflict.of(`A user has at most ${perUser} suppressions`, {
          code: "too_many_suppressions"
        })
      return added
    }).pipe(sql.withTransaction)

const makeWrites = (
  sql: SqlClient,
  perUser: number
): Pick<Suppressions["Service"], "suppress" | "add" | "addAll" | "remove"> => {
  /** Rows that are new; the others stay. Of a list of nulls Postgres would not know the type. */
  const insert = (owner: string, suppressions: ReadonlyArray<AddedSuppression>) =>
    Effect.map(
      sql<{ id: string }>`INSERT INTO mail_suppressions (id, user_id, pattern, scope, reason, note)
        SELECT s.id, ${owner}, s.pattern, s.scope, s.reason, nullif(s.note, '')
        FROM unnest(${suppressions.map(() => newId("sup"))}::text[], ${suppressions.map(({ pattern }) => pattern)}::text[],
          ${suppressions.map(({ reason }) => scopeOf(reason))}::text[], ${suppressions.map(({ reason }) => reason)}::text[],
          ${suppressions.map(({ note }) => note ?? "")}::text[]) AS s(id, pattern, scope, reason, note)
        ON CONFLICT (user_id, pattern, scope) DO NOTHING RETURNING id`,
      ({ length }) => length
    )

  const limited = limiting(sql, perUser)

  return {
    suppress: (owner, address, reason, note) =>
      Effect.asVoid(
        insert(owner, [
          { pattern: address.toLowerCase(), reason, note: note?.slice(0, suppressionNoteMax) ?? null }
        ])
      ),
    add: Effect.fn("Suppressions.add")(function* (owner, { address, note, reason }) {
      const pattern = yield* readPattern(address)
      // `xmax` of a row that was there is the lock of this update.
      const write = sql<
        Suppression & { readonly is_new: boolean }
      >`INSERT INTO mail_suppressions ${sql.insert({
        id: newId("sup"),
        user_id: owner,
        pattern,
        scope: scopeOf(reason),
        reason,
        note
      })} ON CONFLICT (user_id, pattern, scope) DO UPDATE SET reason = EXCLUDED.reason, note = EXCLUDED.note
        RETURNING ${sql.literal(columns)}, xmax = 0 AS is_new`
      const [row] = yield* limited(owner, write, ([written]) => written?.is_new === true)
      return row ?? (yield* Effect.die(new Error("a suppression was not written")))
    }),
    addAll: (owner, suppressions) =>
      suppressions.length === 0
        ? Effect.succeed(0)
        : limited(owner, insert(owner, suppressions), (added) => added > 0),
    remove: Effect.fnUntraced(function* (owner, id) {
      const gone =
        yield* sql`DELETE FROM mail_suppressions WHERE id = ${id} AND user_id = ${owner} RETURNING id`
      if (gone.length === 0) return yield* notFound("Suppression")
    })
  }
}
