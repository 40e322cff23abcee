import { createHash } from "node:crypto"
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, ManagedRuntime } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { AgentDownloads } from "#src/agents/AgentDownloads.ts"
import * as DownloadRoutes from "#src/agents/downloads/DownloadRoutes.ts"
import { AppConfig } from "#src/Config.ts"

/** A build as the manifest has it, and its file's real contents. */
export interface Build {
  readonly arch: string
  readonly filename: string
  readonly content: Buffer
  /** the manifest's value, if it differs from the true one */
  readonly sha256?: string
  readonly sizeBytes?: number
}

export interface DownloadServer {
  readonly url: string
  readonly downloads: AgentDownloads["Service"]
  /** puts builds there as `npm run build:agent` does */
  readonly offer: (builds: ReadonlyArray<Build>) => Promise<void>
  readonly close: () => Promise<void>
}

export const sha256Of = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex")

const offerIn = (home: string) => {
  let builds = 0
  return async (offered: ReadonlyArray<Build>): Promise<void> => {
    const directory = `build-${(++builds).toString(16)}`
    await mkdir(join(home, directory))
    const downloads = []
    for (const { arch, content, filename, sha256, sizeBytes } of offered) {
      await writeFile(join(home, directory, filename), content)
      downloads.push({
        arch,
        label: arch,
        filename,
        sizeBytes: sizeBytes ?? content.length,
        sha256: sha256 ?? sha256Of(content)
      })
    }
    await writeFile(join(home, "unfinished"), JSON.stringify({ directory, downloads }))
    await rename(join(home, "unfinished"), join(home, "downloads.json"))
  }
}

/** The routes of the downloads, and nothing else, on a port of their own. */
export const startDownloadServer = async (): Promise<DownloadServer> => {
  const home = await mkdtemp(join(tmpdir(), "signalbox-downloads-"))
  const layer = HttpRouter.serve(DownloadRoutes.layer, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" })),
    Layer.provideMerge(AgentDownloads.layerFrom(home)),
    Layer.provide(AppConfig.layerOf({}))
  )
  const runtime = ManagedRuntime.make(layer)
  const { downloads, port } = await runtime.runPromise(
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      return { downloads: yield* AgentDownloads, port: "port" in address ? address.port : 0 }
    })
  )
  return {
    url: `http://127.0.0.1:${port}`,
    downloads,
    offer: offerIn(home),
    close: async () => {
      await runtime.dispose()
      await rm(home, { recursive: true, force: true })
    }
  }
}
