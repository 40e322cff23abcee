import { writeSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { accounts } from "#src/accounts/Room.ts"
import { AppConfig } from "#src/Config.ts"
import { files } from "#src/files/Room.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import * as Server from "#src/Server.ts"

/** A server of accounts, and of shared files where that is wanted, that collects blobs all the time, until it is killed. It writes its port out. */
export interface FileServerOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly blobsDirectory: string
  /** a blob that nothing refers to, and an upload that died, go after so long */
  readonly keptMillis: number
  readonly hasSharedFiles?: boolean
}

const options: FileServerOptions = JSON.parse(process.argv[2] ?? "{}")
const { blobsDirectory, dataDir, databaseUrl, hasSharedFiles = false, keptMillis } = options

const config = AppConfig.layerOf({
  port: 0,
  rooms: new Set(hasSharedFiles ? ["files"] : []),
  dataDir,
  blobsDirectory,
  databaseUrl: Redacted.make(databaseUrl),
  limits: {
    blobKeptMillis: keptMillis,
    blobCollectEveryMillis: 1,
    blobScrubEveryMillis: 50,
    blobCheckMillis: 0,
    jobLeaseMillis: 1_000,
    jobPollMillis: 100,
    ratePerMinute: 1_000_000,
    rateBurst: 1_000_000,
    filesRatePerHour: 1_000_000
  }
})

const told = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    writeSync(1, `${"port" in address ? address.port : 0}\n`)
  })
)

await Effect.runPromise(
  Layer.launch(
    told.pipe(
      Layer.provide(Server.layerOf(hasSharedFiles ? [accounts, files] : [accounts])),
      Layer.provide(Log.layer("Warn", (line) => void writeSync(2, `${line}\n`))),
      Layer.provide(config)
    )
  )
)
