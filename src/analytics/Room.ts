import { HttpApi } from "effect/http-api"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import { IngestApi } from "#schemas/analytics/IngestApi.ts"
import { ScriptsApi } from "#schemas/analytics/ScriptsApi.ts"
import type { Room } from "#src/Room.ts"
import { drops } from "./migrations/postgres/0002_Drops.ts"
import { imports } from "./migrations/postgres/0003_Imports.ts"
import { namedDrops } from "./migrations/postgres/0004_NamedDrops.ts"
import { counting } from "./migrations/postgres/0012_Counting.ts"
import { grownImports } from "./migrations/postgres/0013_GrownImports.ts"
import { purges } from "./migrations/postgres/0017_Purges.ts"
import { analytics as tables } from "./migrations/clickhouse/0001_Analytics.ts"
import { noDrafts } from "./migrations/clickhouse/0002_NoDrafts.ts"
import { counting as epochs } from "./migrations/clickhouse/0004_Counting.ts"
import { merges } from "./migrations/clickhouse/0005_Merges.ts"
import { pageIds } from "./migrations/clickhouse/0006_PageIds.ts"
import { noPaths } from "./migrations/clickhouse/0007_NoPaths.ts"
import { longVisits } from "./migrations/clickhouse/0008_LongVisits.ts"
import { oldParts } from "./migrations/clickhouse/0009_OldParts.ts"

/** Visits of websites: events in, figures out. */
export const analytics = {
  name: "analytics",
  needs: ["clickhouse"],
  api: AnalyticsRoomApi,
  rawApi: HttpApi.make("signalbox").add(IngestApi).add(ScriptsApi),
  migrations: {
    postgres: [drops, imports, namedDrops, counting, grownImports, purges],
    clickhouse: [tables, noDrafts, epochs, merges, pageIds, noPaths, longVisits, oldParts]
  },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"analytics">
