import { readFileSync, statSync } from "node:fs"
import { join, normalize } from "node:path"
import { Context, Layer, Option, Schema } from "effect"
import { line } from "#schemas/core/Text.ts"

/** A build of `signalbox-agent` that this server has. */
export interface AgentDownload {
  /** such as `linux-x64`; `node`: for any system with Node */
  readonly arch: string
  readonly label: string
  readonly filename: string
  /** a path on this server */
  readonly url: string
  readonly sizeBytes: number
  /** hex */
  readonly sha256: string
}

/** A download, with its path on the disk. */
export interface StoredDownload extends AgentDownload {
  readonly file: string
}

/** The output directory of `deploy/agent/buildAgent.mjs`. */
const home = normalize(join(import.meta.dirname, "../../.runtime/agent"))

const filename = /^signalbox-agent[0-9A-Za-z._-]{0,64}$/u

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    directory: Schema.String.check(Schema.isPattern(/^build-[0-9a-f]{1,64}$/u)),
    downloads: Schema.Array(
      Schema.Struct({
        arch: Schema.String.check(Schema.isPattern(/^[0-9a-z-]{1,64}$/u)),
        label: line(1, 200),
        filename: Schema.String.check(Schema.isPattern(filename)),
        sizeBytes: Schema.Int,
        sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))
      })
    )
  })
)
const decode = Schema.decodeUnknownOption(Manifest)

/**
 * The builds of the agent's client that people can fetch from this server, as `npm run build:agent` left them. A new
 * build counts at once; incomplete files are not offered.
 */
export class AgentDownloads extends Context.Service<
  AgentDownloads,
  {
    readonly list: () => ReadonlyArray<AgentDownload>
    /** the reason why there are none, or null */
    readonly note: () => string | null
    readonly find: (filename: string) => StoredDownload | undefined
  }
>()("signalbox/agents/AgentDownloads") {
  static readonly layerFrom = (directory = home): Layer.Layer<AgentDownloads> =>
    Layer.sync(AgentDownloads, () => {
      const shelf = new Shelf(directory)
      return {
        list: () => shelf.all().map(offered),
        note: () => (shelf.all().length === 0 ? "Run `npm run build:agent` where the server runs" : null),
        find: (name) => shelf.all().find((download) => download.filename === name)
      }
    })

  static readonly layer = AgentDownloads.layerFrom()
}

const offered = ({ arch, filename, label, sha256, sizeBytes, url }: StoredDownload): AgentDownload => ({
  arch,
  label,
  filename,
  url,
  sizeBytes,
  sha256
})

class Shelf {
  readonly #home: string
  #manifest: { readonly key: string; readonly downloads: ReadonlyArray<StoredDownload> } | undefined

  constructor(directory: string) {
    this.#home = directory
  }

  all(): ReadonlyArray<StoredDownload> {
    const path = join(this.#home, "downloads.json")
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return []
    const key = `${stats.ino} ${stats.mtimeMs} ${stats.size}`
    if (this.#manifest?.key !== key) this.#manifest = { key, downloads: this.#read(path) }
    return this.#manifest.downloads.filter(isThere)
  }

  #read(path: string): ReadonlyArray<StoredDownload> {
    const manifest = Option.getOrUndefined(decode(readFileSync(path, "utf8")))
    if (manifest === undefined) return []
    return manifest.downloads.map((download) => ({
      ...download,
      url: `/api/v1/agent/downloads/${download.filename}`,
      file: join(this.#home, manifest.directory, download.filename)
    }))
  }
}

const isThere = ({ file, sizeBytes }: StoredDownload): boolean =>
  statSync(file, { throwIfNoEntry: false })?.size === sizeBytes
