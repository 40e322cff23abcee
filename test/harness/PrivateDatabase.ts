import { randomBytes } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { atDatabase } from "./DatabaseUrl.ts"

/** An empty database on the server of DATABASE_URL, for a server process of its own; `drop` removes it. */
export interface PrivateDatabase {
  readonly url: string
  readonly drop: () => Promise<void>
}

export const makePrivateDatabase = async (serverUrl: string): Promise<PrivateDatabase> => {
  const name = `test_${randomBytes(8).toString("hex")}`
  const administer = (statement: string): Promise<unknown> =>
    Effect.runPromise(
      Effect.flatMap(SqlClient, (sql) => sql.unsafe(statement)).pipe(
        Effect.provide(
          Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(serverUrl) })))
        )
      )
    )
  await administer(`CREATE DATABASE ${name}`)
  return {
    url: atDatabase(serverUrl, name),
    drop: async () => void (await administer(`DROP DATABASE ${name} WITH (FORCE)`))
  }
}
