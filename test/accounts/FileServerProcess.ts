import { writeSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { accounts } from "#src/accounts/Room.ts"
import { AppConfig } from "#src/Config.ts"
import { files } from "#src/files/Room.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import * as Server from "#src/Server.ts"

/** A server of files that collects and checks blobs, and sweeps, all the time, until it is killed. It writes its port out. */
export interface FileServerOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly blobsDirectory: string
  /** Uploads leave the disk so many bytes; absent: as servers do. */
  readonly filesMinFreeBytes?: number
}

const { databaseUrl, ...options }: FileServerOptions = JSON.parse(process.argv[2] ?? "{}")

const config = AppConfig.layerOf({
  ...options,
  port: 0,
  rooms: new Set(["accounts", "files"]),
  databaseUrl: Redacted.make(databaseUrl),
  limits: {
    blobKeptMillis: 2,
    blobCollectEveryMillis: 1,
    blobScrubEveryMillis: 50,
    blobCheckMillis: 0,
    fileSweepEveryMillis: 200,
    uploadSyncMillis: 20,
    uploadSweepEveryMillis: 300,
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
      Layer.provide(Server.layerOf([accounts, files])),
      Layer.provide(Log.layer("Warn", (line) => void writeSync(2, `${line}\n`))),
      Layer.provide(config)
    )
  )
)
