import type { PgClient } from "@effect/sql-pg/PgClient"
import { Layer } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { AppConfig } from "./Config.ts"
import { clickHouseMigrations } from "#src/Migrations.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { ClickHouse } from "./infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "./infra/clickhouse/ClickHouseEndpoint.ts"
import type {
  ClickHouseFailed,
  ClickHouseUnavailable,
  EmbeddedClickHouseFailed
} from "./infra/clickhouse/ClickHouseFailed.ts"
import * as ReadyClickHouse from "./infra/clickhouse/ReadyClickHouse.ts"
import * as PostgresMigrator from "./infra/postgres/Migrations.ts"
import * as Postgres from "./infra/postgres/Postgres.ts"
import type { DataDirectoryInUse, PostgresFailed } from "./infra/postgres/PostgresFailed.ts"

/** Why the stores could not be made ready at the start. */
export type StoresFailed =
  | SqlError
  | PostgresFailed
  | DataDirectoryInUse
  | PostgresMigrator.SchemaIsNewer
  | ClickHouseFailed
  | ClickHouseUnavailable
  | EmbeddedClickHouseFailed

/** Postgres with these tables: alone, for a server without a room that counts. */
export const postgresWith = (migrations: ReadonlyArray<PostgresMigrator.PostgresMigration>) =>
  Layer.effectDiscard(PostgresMigrator.migrate(migrations)).pipe(Layer.provideMerge(Postgres.layer))

/** ClickHouse with today's schema. */
export const clickHouse = ReadyClickHouse.layer(clickHouseMigrations).pipe(
  Layer.provide(ClickHouse.layer),
  Layer.provideMerge(ClickHouseEndpoint.layer)
)

/** Postgres and ClickHouse, started side by side where they are embedded. */
export const layer: Layer.Layer<
  SqlClient | PgClient | ClickHouse | ClickHouseEndpoint,
  StoresFailed,
  AppConfig
> = Layer.merge(postgresWith(postgresMigrations), clickHouse)
