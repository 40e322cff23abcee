// Migrates the database of DATABASE_URL and prints what it applied: for the test of processes that start together.
import { Effect, Layer } from "effect"
import { AppConfig } from "../../../src/Config.ts"
import { migrate } from "../../../src/infra/postgres/Migrations.ts"
import * as Postgres from "../../../src/infra/postgres/Postgres.ts"
import { postgresMigrations } from "../../../src/Migrations.ts"
import { rooms } from "../../../src/Rooms.ts"

const applied = await Effect.runPromise(
  migrate(postgresMigrations).pipe(
    Effect.provide(Postgres.layer.pipe(Layer.provide(AppConfig.layerFor(rooms))))
  )
)
process.stdout.write(JSON.stringify(applied))
