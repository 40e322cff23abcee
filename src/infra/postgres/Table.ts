import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import type { Page } from "#schemas/core/Page.ts"
import { Conflict, NotFound } from "#schemas/core/Problem.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"

/** The forms of a row that `Model.Class` makes; none of them needs a service. */
export interface RowModel extends Schema.ConstraintDecoder<{
  readonly id: string
  /** the owner */
  readonly user_id?: string
  readonly created_at?: Date
  readonly createdAt?: Date
}> {
  readonly fields: Readonly<Record<string, unknown>>
  readonly insert: Schema.ConstraintEncoder<object, unknown>
  readonly update: Schema.ConstraintEncoder<object, unknown>
}

export interface TableOptions<M extends RowModel> {
  readonly name: string
  /** the noun in errors, such as "Key" in "Key not found" */
  readonly title: string
  readonly model: M
  /** the prefix of ids */
  readonly ids: string
  /** SQL of the fields that are more than a column of their name, in snake case */
  readonly computed?: { readonly [Field in keyof M["Type"]]?: string }
  /** the column that is null until a row is gone, or SQL that tells and sets it; without it a removed row is deleted at once */
  readonly gone?: string | { readonly is: string; readonly set: string }
}

type Columns = Readonly<Record<string, unknown>>
type New<M extends RowModel> = M["insert"]["Encoded"]
type Change<M extends RowModel> = Partial<M["update"]["Encoded"]>

/** There is no such row for this caller: it was never made, is gone, or is another user's. */
export const notFound = (title: string): NotFound =>
  NotFound.of(`${title} not found`, { code: `${title.toLowerCase()}_not_found`, param: "id" })

/** One table. `owner`: the user whose row it has to be; undefined: anyone's. Gone rows are not found. */
export interface Table<M extends RowModel> {
  /** the columns for SELECT and RETURNING in hand-written SQL, for `rows` and `first` */
  readonly columns: Fragment
  /** whether a row is not gone */
  readonly live: Fragment
  readonly rows: <E>(
    statement: Effect.Effect<ReadonlyArray<object>, E>
  ) => Effect.Effect<ReadonlyArray<M["Type"]>, E>
  /** the first row, which a copy in memory then has, too */
  readonly first: <E>(
    statement: Effect.Effect<ReadonlyArray<object>, E>
  ) => Effect.Effect<M["Type"] | undefined, E>
  readonly read: (id: string, owner: string | undefined) => Effect.Effect<M["Type"], NotFound | SqlError>
  readonly page: (
    where: Fragment,
    order: string,
    page: Page
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<M["Type"]>; readonly total: number }, SqlError>
  /** `more`: columns that are no fields of the model, or an id of the caller's making */
  readonly insert: (row: New<M>, more?: Columns) => Effect.Effect<M["Type"], SqlError>
  /** for a user who may have `limit` rows, however many are made at once */
  readonly insertFor: (
    owner: string,
    row: New<M>,
    limit: number,
    more?: Columns
  ) => Effect.Effect<M["Type"], Conflict | SqlError>
  /** `before` goes first in the same transaction, and undoes it where it fails. Without a change: the row as it is. */
  readonly update: <E = never>(
    id: string,
    owner: string | undefined,
    change: Change<M>,
    before?: Effect.Effect<unknown, E>
  ) => Effect.Effect<M["Type"], NotFound | SqlError | E>
  /** answers the row as it went */
  readonly remove: <E = never>(
    id: string,
    owner: string | undefined,
    before?: Effect.Effect<unknown, E>
  ) => Effect.Effect<M["Type"], NotFound | SqlError | E>
}

/** Is told every row that was written, after the commit. */
export interface Written<Row> {
  readonly put: (row: Row) => void
  readonly drop: (id: string) => void
}

const columnOf = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const byColumn = (fields: object): Columns =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [columnOf(field), value]))

const goneOf = ({ gone }: Pick<TableOptions<RowModel>, "gone">) =>
  typeof gone === "string" ? { is: `${gone} IS NOT NULL`, set: `${gone} = now()` } : gone

/** The parts that statements on the table share. */
const shared = <M extends RowModel>(sql: SqlClient, options: TableOptions<M>) => {
  const computed: Readonly<Record<string, string | undefined>> = options.computed ?? {}
  const columns = sql.literal(
    Object.keys(options.model.fields)
      .map((field) => `${computed[field] ?? columnOf(field)} AS "${field}"`)
      .join(", ")
  )
  const live = sql.literal(`NOT (${goneOf(options)?.is ?? "false"})`)
  const decode = Schema.decodeUnknownEffect(Schema.Array(options.model))
  /** A row that does not fit its model is a fault of this program. */
  const rows: Table<M>["rows"] = (statement) =>
    Effect.flatMap(statement, (found) => Effect.orDie(decode(found)))
  const isOf = (id: string, owner: string | undefined) =>
    owner === undefined ? sql`id = ${id} AND ${live}` : sql`id = ${id} AND user_id = ${owner} AND ${live}`
  const count = (where: Fragment): Effect.Effect<number, SqlError> =>
    Effect.map(
      sql<{ total: number }>`SELECT count(*)::int AS total FROM ${sql(options.name)} WHERE ${where}`,
      ([counted]) => counted?.total ?? 0
    )
  return { columns, live, rows, isOf, count }
}

export const make = <M extends RowModel>(
  sql: SqlClient,
  options: TableOptions<M>,
  written?: Written<M["Type"]>
): Table<M> => {
  const table = sql(options.name)
  const { columns, count, isOf, live, rows } = shared(sql, options)
  const { set } = goneOf(options) ?? {}
  const end = set === undefined ? sql`DELETE FROM ${table}` : sql`UPDATE ${table} SET ${sql.literal(set)}`

  const missing = Effect.suspend(() => Effect.fail(notFound(options.title)))
  const one = <E>(statement: Effect.Effect<ReadonlyArray<object>, E>) =>
    Effect.flatMap(rows(statement), ([row]) => (row === undefined ? missing : Effect.succeed(row)))
  const put = (row: M["Type"]) => sql.afterCommit(Effect.sync(() => written?.put(row)))
  const drop = ({ id }: M["Type"]) => sql.afterCommit(Effect.sync(() => written?.drop(id)))
  const behind = <A, E, E2>(before: Effect.Effect<unknown, E2> | undefined, write: Effect.Effect<A, E>) =>
    before === undefined ? write : sql.withTransaction(Effect.andThen(before, write))

  const read: Table<M>["read"] = (id, owner) =>
    one(sql<object>`SELECT ${columns} FROM ${table} WHERE ${isOf(id, owner)}`)
  const insert: Table<M>["insert"] = (fields, more) => {
    const values = { id: newId(options.ids), ...byColumn(fields), ...more }
    const write = one(sql<object>`INSERT INTO ${table} ${sql.insert(values)} RETURNING ${columns}`)
    return Effect.tap(Effect.catchTag(write, "NotFound", Effect.die), put)
  }
  return {
    columns,
    live,
    rows,
    first: (statement) =>
      Effect.tap(
        Effect.map(rows(statement), ([row]) => row),
        (row) => (row === undefined ? Effect.void : put(row))
      ),
    read,
    insert,
    page: (where, order, { limit, offset }) =>
      Effect.all({
        rows: rows(sql<object>`SELECT ${columns} FROM ${table} WHERE ${where}
          ORDER BY ${sql.literal(order)} LIMIT ${limit} OFFSET ${offset}`),
        total: count(where)
      }),
    insertFor: (owner, fields, limit, more) =>
      Effect.gen(function* () {
        // Another one that is made for the same user waits here, and counts this one.
        yield* sql`SELECT id FROM users WHERE id = ${owner} FOR NO KEY UPDATE`
        if ((yield* count(sql`user_id = ${owner} AND ${live}`)) >= limit)
          return yield* Conflict.of(`A user has at most ${limit} ${options.name.replaceAll("_", " ")}`, {
            code: `too_many_${options.name}`
          })
        return yield* insert(fields, { user_id: owner, ...more })
      }).pipe(sql.withTransaction),
    update: (id, owner, change, before) => {
      const columnsNow = byColumn(change)
      if (Object.keys(columnsNow).length === 0) return behind(before, read(id, owner))
      const write = sql<object>`UPDATE ${table} SET ${sql.update(columnsNow)} WHERE ${isOf(id, owner)} RETURNING ${columns}`
      return behind(before, Effect.tap(one(write), put))
    },
    remove: (id, owner, before) =>
      behind(before, Effect.tap(one(sql<object>`${end} WHERE ${isOf(id, owner)} RETURNING ${columns}`), drop))
  }
}
