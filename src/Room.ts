import type { FileSystem, Layer, Path } from "effect"
import type { Command } from "effect/cli"
import type { Etag, HttpPlatform, HttpRouter, HttpServer } from "effect/http"
import type { HttpApi } from "effect/http-api"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Authorization, OpenAiAuthorization } from "#schemas/core/Authorization.ts"
import type { ErrorBoundary, OpenAiErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import type { JsonBody, OpenAiJsonBody } from "#schemas/core/JsonBody.ts"
import type { PagesForAdmins } from "#schemas/accounts/AccountApi.ts"
import type { SignIn } from "#schemas/accounts/SessionApi.ts"
import type * as Accounts from "./accounts/Offers.ts"
import type { AppConfig } from "./Config.ts"
import type { ClickHouseMigration } from "./infra/clickhouse/Migrations.ts"
import type { KnownEndpoint } from "./http/KnownPaths.ts"
import type { PostgresMigration } from "./infra/postgres/Migrations.ts"
import type { Readiness } from "./infra/telemetry/Readiness.ts"
import type { RawRoutes } from "./front/RawRoutes.ts"
import type { Quarantines } from "#src/infra/drains/Quarantines.ts"
import type { BlobStore } from "./infra/blobs/BlobStore.ts"
import type { Egress } from "./infra/egress/Egress.ts"
import type { Jobs } from "./infra/jobs/Jobs.ts"
import type { Idempotency } from "./infra/postgres/Idempotency.ts"
import type { Notices } from "./infra/notices/Notices.ts"
import type { Processes } from "./infra/processes/Processes.ts"
import type { Workers } from "./infra/workers/Workers.ts"
import type { Secrets } from "./infra/secrets/Secrets.ts"

/**
 * A room is a part of the server that `ROOMS` can name. Its record is data, light to import: the command line, the
 * migrations and the documentation read it without loading the server. `src/Rooms.ts` is the list of them.
 */
export interface Room<Name extends string = string> {
  readonly name: Name
  /** stores beside Postgres that are started for it */
  readonly needs: ReadonlyArray<"clickhouse">
  /** the endpoints that pass the Effect pipeline */
  readonly api: HttpApi.Constraint
  /** those served beside it, by the front itself: documented, and nothing else */
  readonly rawApi: HttpApi.Constraint
  readonly migrations: {
    readonly postgres: ReadonlyArray<PostgresMigration>
    readonly clickhouse: ReadonlyArray<ClickHouseMigration>
  }
  /** its commands of `signalbox` */
  readonly commands: () => Promise<ReadonlyArray<Command.Command.Any>>
  /** loaded where `ROOMS` names the room */
  readonly server: () => Promise<RoomServer>
}

export interface RoomServer {
  /** endpoints, workers, checks of `/readyz`, metrics */
  readonly served: Layer.Layer<never, RoomFault, Ground | Serving>
  /** the routes that the front serves itself, read before it listens */
  readonly raw: Layer.Layer<never, RoomFault, Ground | RawRoutes>
  /** the paths that `served` adds beside the API */
  readonly paths: ReadonlyArray<KnownEndpoint>
}

/** The services that every room can rest on: configuration, stores, the services over them, and accounts. */
export type Ground =
  | AppConfig
  | SqlClient
  | Readiness
  | Quarantines
  | Secrets
  | BlobStore
  | Notices
  | Egress
  | Idempotency
  | Jobs
  | Processes
  | Workers
  | Layer.Success<typeof Accounts.offers>

/** The services behind the endpoints of all rooms. */
export type Serving =
  | HttpRouter.HttpRouter
  | HttpServer.HttpServer
  | HttpPlatform.HttpPlatform
  | Etag.Generator
  | FileSystem.FileSystem
  | Path.Path
  | Authorization
  | ErrorBoundary
  | JsonBody
  | OpenAiAuthorization
  | OpenAiErrorBoundary
  | OpenAiJsonBody
  | PagesForAdmins
  | SignIn

/** Why a room cannot start: the start says its message, and ends with its `exitCode` where it has one. */
export type RoomFault = Error
