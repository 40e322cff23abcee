import { randomBytes } from "node:crypto"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { addDrops, type DropRow } from "../ingest/DropCounts.ts"

/** The import that a new one continues was never made. */
export class ImportUnknown extends Schema.TaggedError<ImportUnknown>()("ImportUnknown", {
  name: Schema.String
}) {}

export class TooManyImports extends Schema.TaggedError<TooManyImports>()("TooManyImports", {
  limit: Schema.Int
}) {}

/** The statistics that an import adds to. */
type Target = Pick<SiteRow, "id" | "dataset">

interface ImportState {
  /** the name under which its lines are counted, and are in the log: that of the first import it continues */
  readonly root: string
  /** lines taken so far */
  readonly next: number
  /** lines below it are in the log, `next` or not */
  readonly logged: number
  /** of the import's identities */
  readonly salt: string
}

/** The outcome of the lines of a part. */
interface ImportedLines {
  readonly next: number
  readonly isLast: boolean
  readonly stored: number
  readonly failed: number
  /** by reason */
  readonly dropped: Readonly<Record<string, number>>
  /** as the site's owner sees them among the events that do not count */
  readonly drops: ReadonlyArray<DropRow>
}

/** An import under one of its names. Those of one file that grew have the same numbers. */
export interface ImportRow {
  readonly name: string
  readonly part_of: string | null
  readonly next: number
  readonly stored: number
  readonly failed: number
  readonly dropped: Readonly<Record<string, number>>
  readonly begun_at: Date
  readonly updated_at: Date
  readonly finished_at: Date | null
}

const saltBytes = 32

/** Names of one site; and those that a growing file has had, of which the oldest are forgotten. */
export const importLimits = { namesPerSite: 10_000, namesPerFile: 100 }

/** `imports` in Postgres: the progress of each import, and the outcome of its lines. */
export class ImportsRepository extends Context.Service<
  ImportsRepository,
  {
    /**
     * The state of an import. Where there is none it is begun, after the lines of the one that it continues; and the salts
     * of imports that were given up are forgotten.
     */
    readonly begin: (
      site: Target,
      name: string,
      continues: string | undefined
    ) => Effect.Effect<ImportState, SqlError | ImportUnknown | TooManyImports>
    /** the import has come to `next`; with its last part its salt is thrown away */
    readonly advance: (dataset: string, root: string, lines: ImportedLines) => Effect.Effect<void, SqlError>
    /** after a crash: these lines are in the log */
    readonly noteLogged: (dataset: string, root: string, to: number) => Effect.Effect<void, SqlError>
    /** the newest first */
    readonly list: (dataset: string) => Effect.Effect<ReadonlyArray<ImportRow>, SqlError>
  }
>()("signalbox/analytics/ImportsRepository") {
  static readonly layer = Layer.effect(
    ImportsRepository,
    Effect.map(SqlClient, (sql) => ({
      begin: (site, name, continues) => begin(site, name, continues).pipe(sql.withTransaction, withSql(sql)),
      advance: (dataset, root, lines) =>
        advance(dataset, root, lines).pipe(sql.withTransaction, withSql(sql)),
      noteLogged: (dataset, root, to) =>
        Effect.asVoid(
          sql`UPDATE imports SET logged = greatest(logged, ${to}) WHERE dataset = ${dataset} AND name = ${root}`
        ),
      list: (dataset) => sql<ImportRow>`
        SELECT named.name, named.part_of, state.next::float8 AS next, state.stored::float8 AS stored,
          state.failed::float8 AS failed, state.dropped, named.begun_at, state.updated_at, state.finished_at
        FROM imports named
        JOIN imports state ON state.dataset = named.dataset AND state.name = coalesce(named.part_of, named.name)
        WHERE named.dataset = ${dataset} ORDER BY named.begun_at DESC, named.name`
    }))
  )
}

const withSql = (sql: SqlClient) => Effect.provideService(SqlClient, sql)

const begin = Effect.fnUntraced(function* (site: Target, name: string, continues: string | undefined) {
  const sql = yield* SqlClient
  yield* sql`UPDATE imports SET salt = NULL WHERE salt IS NOT NULL AND updated_at < now() - interval '24 hours'`
  const root = (yield* rootOf(site.dataset, name)) ?? (yield* insert(site, name, continues))
  const fresh = randomBytes(saltBytes).toString("hex")
  const [row] = yield* sql<Omit<ImportState, "root">>`
    UPDATE imports SET salt = coalesce(salt, ${fresh}) WHERE dataset = ${site.dataset} AND name = ${root}
    RETURNING next::float8 AS next, logged::float8 AS logged, salt`
  return { root, ...(row ?? { next: 0, logged: 0, salt: fresh }) }
})

const rootOf = Effect.fnUntraced(function* (dataset: string, name: string) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ root: string }>`
    SELECT coalesce(part_of, name) AS root FROM imports WHERE dataset = ${dataset} AND name = ${name}`
  return row?.root
})

/** Answers the name under which its lines are counted. */
const insert = Effect.fnUntraced(function* (
  { dataset, id }: Target,
  name: string,
  continues: string | undefined
) {
  const sql = yield* SqlClient
  const { namesPerFile, namesPerSite } = importLimits
  const root = continues === undefined ? undefined : yield* rootOf(dataset, continues)
  if (continues !== undefined && root === undefined) return yield* new ImportUnknown({ name: continues })
  const [there] = yield* sql<{ total: number }>`
    SELECT count(*)::int AS total FROM imports WHERE dataset = ${dataset}`
  if ((there?.total ?? 0) >= namesPerSite) return yield* new TooManyImports({ limit: namesPerSite })
  yield* sql`INSERT INTO imports (site, dataset, name, part_of) VALUES (${id}, ${dataset}, ${name}, ${root ?? null})
    ON CONFLICT (dataset, name) DO NOTHING`
  if (root !== undefined)
    yield* sql`DELETE FROM imports WHERE dataset = ${dataset} AND name IN (
      SELECT name FROM imports WHERE dataset = ${dataset} AND part_of = ${root}
      ORDER BY begun_at DESC, name OFFSET ${namesPerFile})`
  return root ?? name
})

const advance = Effect.fnUntraced(function* (dataset: string, root: string, lines: ImportedLines) {
  const sql = yield* SqlClient
  const { drops, failed, isLast, next, stored } = lines
  // Locked first: the counts by reason are read, added to and written.
  const [before] = yield* sql<Pick<ImportRow, "dropped">>`
    SELECT dropped FROM imports WHERE dataset = ${dataset} AND name = ${root} FOR UPDATE`
  const dropped = { ...before?.dropped }
  for (const [reason, count] of Object.entries(lines.dropped))
    dropped[reason] = (dropped[reason] ?? 0) + count
  yield* sql`
    UPDATE imports SET next = ${next}, logged = greatest(logged, ${next}), stored = stored + ${stored},
      failed = failed + ${failed}, dropped = ${JSON.stringify(dropped)}::jsonb, updated_at = now(),
      finished_at = CASE WHEN ${isLast} THEN now() END, salt = CASE WHEN ${isLast} THEN NULL ELSE salt END
    WHERE dataset = ${dataset} AND name = ${root}`
  if (drops.length > 0) yield* addDrops(drops)
})
