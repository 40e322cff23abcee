import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"

/**
 * uWebSockets.js is native code from a registry, so the file that is about to be loaded is compared with a hash that
 * was computed when the dependency was chosen: the lockfile vouches for the archive, this for what lies on the disk.
 */

/** The part of an HTTP answer of uWebSockets.js that the front uses. Invalid after its end and after onAborted. */
export interface UwsResponse {
  writeStatus(status: string): UwsResponse
  writeHeader(name: string, value: string | Uint8Array): UwsResponse
  write(chunk: Uint8Array): boolean
  tryEnd(chunk: Uint8Array, totalBytes: number): [ok: boolean, done: boolean]
  end(body?: string | Uint8Array, closeConnection?: boolean): UwsResponse
  endWithoutBody(): UwsResponse
  close(): UwsResponse
  cork(writes: () => void): UwsResponse
  pause(): void
  resume(): void
  getWriteOffset(): number
  getRemoteAddress(): ArrayBuffer
  onAborted(handler: () => void): UwsResponse
  /** `chunk` is detached when the handler returns */
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): UwsResponse
  onWritable(handler: (offset: number) => boolean): UwsResponse
  upgrade(
    userData: object,
    key: string,
    protocol: string,
    extensions: string,
    context: UwsSocketContext
  ): void
}

/** Only valid during the call of its handler. */
export interface UwsRequest {
  getHeader(lowerCaseName: string): string
  getUrl(): string
  getQuery(): string | undefined
  getCaseSensitiveMethod(): string
  forEach(visit: (lowerCaseName: string, value: string) => void): void
  setYield(yields: boolean): UwsRequest
}

export interface UwsWebSocket {
  /** 1 sent, 0 buffered, 2 dropped */
  send(message: string | Uint8Array, isBinary: boolean): number
  end(code?: number, reason?: string): void
  close(): void
  getBufferedAmount(): number
  getUserData(): object
}

interface UwsWebSocketBehavior {
  readonly maxPayloadLength: number
  readonly maxBackpressure: number
  readonly idleTimeout: number
  readonly sendPingsAutomatically: boolean
  readonly compression: number
  upgrade(response: UwsResponse, request: UwsRequest, context: UwsSocketContext): void
  open(socket: UwsWebSocket): void
  message(socket: UwsWebSocket, message: ArrayBuffer, isBinary: boolean): void
  drain(socket: UwsWebSocket): void
  close(socket: UwsWebSocket, code: number, reason: ArrayBuffer): void
}

export interface UwsSocketContext {
  readonly _: unique symbol
}

export interface UwsListenSocket {
  readonly _: unique symbol
}

type UwsHandler = (response: UwsResponse, request: UwsRequest) => void

export interface UwsApp {
  any(pattern: string, handler: UwsHandler): UwsApp
  get(pattern: string, handler: UwsHandler): UwsApp
  post(pattern: string, handler: UwsHandler): UwsApp
  ws(pattern: string, behavior: UwsWebSocketBehavior): UwsApp
  /** `change` is 1 when a connection arrives and -1 when it has gone, except where it became a WebSocket */
  filter(visit: (response: UwsResponse, change: number) => void): UwsApp
  listen(
    host: string,
    port: number,
    options: number,
    listening: (socket: UwsListenSocket | false) => void
  ): UwsApp
  close(): UwsApp
}

export interface UwsAddon {
  App(): UwsApp
  us_listen_socket_close(socket: UwsListenSocket): void
  us_socket_local_port(socket: UwsListenSocket): number
  readonly DISABLED: number
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
  _cfg(setting: string): void
}

export type Loaded =
  | { readonly _tag: "Loaded"; readonly addon: UwsAddon; readonly version: string }
  | { readonly _tag: "NotLoaded"; readonly reasons: ReadonlyArray<string> }

/** Newest first. Both are `@uwsjs/core`, which carries the binaries that uWebSockets.js itself keeps off npm. */
const aliases = ["uWebSockets.js", "uws-glibc227"]

/** SHA-256 of `uws.node` by platform package and version, computed from what the registry served. */
const pinned: Record<string, string> = {
  "linux-x64-22@20.51.4": "f687e7c3666b5cca9d355184bbf07bb0550f5ba0d3ffd453248ccfec552dde6c",
  "linux-x64-22@20.69.0": "34d235864db874fbf3aeafd48b63f6fb80f61fb584a86f1e5f7b0291dbd7a3d4",
  "linux-x64-24@20.69.0": "177efdc682425d754474bd30f9586c487fa6694f790f3406a23885d0e61c07a0"
}

const require = createRequire(import.meta.url)

/** The newest addon that is installed, is the pinned file, and loads on this machine. */
export const load = (
  options: { readonly maxHeaderBytes: number },
  pins: Readonly<Record<string, string>> = pinned
): Loaded => {
  // Read once, by the addon's static initialiser: later changes have no effect.
  process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= String(options.maxHeaderBytes)
  const reasons: Array<string> = []
  for (const alias of aliases) {
    const loaded = loadAlias(alias, pins)
    if (typeof loaded !== "string") return loaded
    reasons.push(`${alias}: ${loaded}`)
  }
  return { _tag: "NotLoaded", reasons }
}

/** The addon, or why not. */
const loadAlias = (alias: string, pins: Readonly<Record<string, string>>): Loaded | string => {
  try {
    const entry = require.resolve(alias)
    const platform = `${process.platform}-${process.arch}-${process.versions.node.split(".")[0]}`
    const folder = dirname(createRequire(entry).resolve(`@uwsjs/${platform}`))
    const version = versionOf(folder)
    const pin = pins[`${platform}@${version}`]
    if (pin === undefined) return `no hash is pinned for ${platform} ${version}`
    const hash = createHash("sha256")
      .update(readFileSync(join(folder, "uws.node")))
      .digest("hex")
    if (hash !== pin)
      return `uws.node of ${platform} ${version} has the SHA-256 ${hash}, not the pinned ${pin}`
    const addon: UwsAddon = require(alias)
    return { _tag: "Loaded", addon, version }
  } catch (cause) {
    return (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, " ")
  }
}

const versionOf = (folder: string): string => {
  const file = join(folder, "package.json")
  if (!existsSync(file)) return "without package.json"
  const manifest: { readonly version?: string } = JSON.parse(readFileSync(file, "utf8"))
  return manifest.version ?? "without version"
}
