import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Layer, Runtime, Schema } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import { adminFileIn, read, write } from "#src/accounts/AdminFile.ts"
import { makeAdminKey } from "#src/accounts/FirstBoot.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { runningOn } from "#src/infra/postgres/EmbeddedPostgres.ts"
import { exitCodes } from "#src/clients/ExitCodes.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { json, show } from "#src/cli/Output.ts"

/** The server's database cannot be reached from here. */
export class AdminKeyFailed extends Schema.TaggedError<AdminKeyFailed>()("AdminKeyFailed", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return this.problem
  }
}

/** `key` without `--new`. */
class NothingToDo extends Schema.TaggedError<NothingToDo>()("NothingToDo", {}) {
  override readonly [Runtime.errorExitCode] = exitCodes.usage
  override get [CliError.userMessage](): string {
    return "Keys are kept as hashes and cannot be shown again; --new makes another one"
  }
}

/** The server's configuration, with DATA_DIR where the other commands look for it. */
const configuration = Effect.map(AppConfig, (config): Config => {
  const dataDir = resolve(process.env["DATA_DIR"] ?? join(import.meta.dirname, "../../../.data"))
  return { ...config, dataDir }
}).pipe(Effect.provide(AppConfig.layer))

/** The database of the server: DATABASE_URL; else the embedded one, already running or started for this command. */
const databaseOf = (config: Config) =>
  Effect.gen(function* () {
    const { dataDir, databaseUrl = runningOn(dataDir) } = config
    if (databaseUrl !== undefined) return { ...config, databaseUrl }
    if (existsSync(join(dataDir, "postgres/PG_VERSION"))) return config
    return yield* new AdminKeyFailed({
      problem: `No server has kept its data in ${dataDir}: set DATA_DIR, or DATABASE_URL, to those of the server`
    })
  })

/** The URL of a server with this configuration, for an admin.json without one. */
const urlOf = ({ baseUrl, host, port }: Config): string =>
  baseUrl ?? `http://${host.includes(":") ? `[${host}]` : host}:${port}`

const makeKey = Effect.gen(function* () {
  const config = yield* databaseOf(yield* configuration)
  const file = adminFileIn(config.dataDir)
  const url = (yield* read(file))?.url ?? urlOf(config)
  // Postgres may print something; standard output is for the key.
  const log = Log.layer("Warn", (line) => void process.stderr.write(line))
  const store = Postgres.layer.pipe(Layer.provide(Layer.succeed(AppConfig, config)))
  const adminKey = yield* makeAdminKey((key) => write(file, { url, adminKey: key })).pipe(
    Effect.provide(Layer.provideMerge(store, log))
  )
  return { adminKey, file }
}).pipe(
  Effect.mapError((error) =>
    error instanceof AdminKeyFailed ? error : new AdminKeyFailed({ problem: error.message })
  )
)

const key = Command.make(
  "key",
  {
    json,
    new: Flag.Boolean("new").pipe(
      Flag.withDescription("Make a new account key of the first administrator, and put it into admin.json"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ json, new: isNew }) {
    if (!isNew) return yield* new NothingToDo()
    const made = yield* makeKey
    yield* show(json, made, ({ adminKey, file }) => `${adminKey}\nIt is shown this once, and is in ${file}.`)
  })
).pipe(
  Command.withDescription(
    "When every key is lost: works on the server's machine, as the server's user, while the server runs and while it does not"
  )
)

export const admin = Command.make("admin").pipe(
  Command.withDescription("Get back in, beside the server's DATA_DIR"),
  Command.withSubcommands([key])
)
