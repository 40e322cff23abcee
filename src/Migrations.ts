import type { ClickHouseMigration } from "./infra/clickhouse/Migrations.ts"
import { jobs } from "./infra/migrations/postgres/0014_Jobs.ts"
import { ground } from "./infra/migrations/postgres/0015_Ground.ts"
import { blobs } from "./infra/migrations/postgres/0018_Blobs.ts"
import { blobPools } from "./infra/migrations/postgres/0021_BlobPools.ts"
import { jobTurns } from "./infra/migrations/postgres/0022_JobTurns.ts"
import { busyLanes } from "./infra/migrations/postgres/0024_BusyLanes.ts"
import { blobSums } from "./infra/migrations/postgres/0029_BlobSums.ts"
import { blobRefers } from "./infra/migrations/postgres/0030_BlobRefers.ts"
import type { PostgresMigration } from "./infra/postgres/Migrations.ts"
import type { Room } from "./Room.ts"
import { rooms } from "./Rooms.ts"

/**
 * The tables of all rooms and of the services they share, independent of `ROOMS`: one series of numbers a store, so that a fresh database has the
 * history of an upgraded one. A migration that has been released is never changed: a later one changes what it made.
 */
const inOrder = <A extends { readonly id: number }>(migrations: ReadonlyArray<A>): ReadonlyArray<A> =>
  migrations.toSorted((one, other) => one.id - other.id)

const shared: ReadonlyArray<PostgresMigration> = [
  jobs,
  ground,
  blobs,
  blobPools,
  jobTurns,
  busyLanes,
  blobSums,
  blobRefers
]

type WithTables = ReadonlyArray<Pick<Room, "migrations">>

/** …with those of rooms of a caller's own. */
export const postgresMigrationsWith = (list: WithTables): ReadonlyArray<PostgresMigration> =>
  inOrder([...shared, ...[...new Set([...rooms, ...list])].flatMap(({ migrations }) => migrations.postgres)])

export const postgresMigrations = postgresMigrationsWith([])

export const clickHouseMigrations: ReadonlyArray<ClickHouseMigration> = inOrder(
  rooms.flatMap(({ migrations }) => migrations.clickhouse)
)
