import type { PgClient } from "@effect/sql-pg/PgClient"
import { Layer } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { AppConfig } from "#src/Config.ts"
import { clickHouseMigrations } from "#src/migrations/ClickHouseMigrations.ts"
import { postgresMigrations } from "#src/migrations/PostgresMigrations.ts"
import { ClickHouse } from "./clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "./clickhouse/ClickHouseEndpoint.ts"
import type {
  ClickHouseFailed,
  ClickHouseUnavailable,
  EmbeddedClickHouseFailed
} from "./clickhouse/ClickHouseFailed.ts"
import * as ReadyClickHouse from "./clickhouse/ReadyClickHouse.ts"
import * as PostgresMigrator from "./postgres/Migrations.ts"
import * as Postgres from "./postgres/Postgres.ts"
import type { DataDirectoryInUse, PostgresFailed } from "./postgres/PostgresFailed.ts"

/** Why the stores could not be made ready at the start. */
export type StoresFailed =
  | SqlError
  | PostgresFailed
  | DataDirectoryInUse
  | PostgresMigrator.SchemaIsNewer
  | ClickHouseFailed
  | ClickHouseUnavailable
  | EmbeddedClickHouseFailed

/** Postgres alone, for a server without a room that counts. */
export const postgres = Layer.effectDiscard(PostgresMigrator.migrate(postgresMigrations)).pipe(
  Layer.provideMerge(Postgres.layer)
)

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
> = Layer.merge(postgres, clickHouse)
