import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { clientCore, nodeOn } from "./Cores.ts"
import type { Latency } from "./Suite.ts"

/**
 * HTTP load over keep-alive connections from a process of its own, so that client and server share no thread. Answers
 * are parsed only as far as their status and length.
 */
export interface LoadOptions {
  readonly port: number
  /** "127.0.0.1" when absent */
  readonly host?: string
  readonly connections: number
  readonly durationMillis: number
  /** whole requests, head and body, sent in turn; or the module that makes them in the load's own process */
  readonly requests: ReadonlyArray<Uint8Array> | RequestModule
  /** waits at the end for the answers that are under way, so that nobody is left who asked */
  readonly drains?: boolean
  /** ends the load once so many requests are answered, if that is before `durationMillis` */
  readonly count?: number
  /**
   * arrivals per second, whether or not earlier requests were answered; latency then counts from when a request was
   * due. When absent every connection sends its next request as soon as it has its answer.
   */
  readonly ratePerSecond?: number
  /**
   * latency is left out for what is due earlier than this: a load that has just begun is a client whose code is still
   * being compiled. Default 0
   */
  readonly warmUpMillis?: number
}

/** A module with `source: (options) => RequestSource`: its file, and what it is called with. */
export interface RequestModule {
  readonly file: string
  readonly options: object
}

export interface RequestSource {
  /** the next request; its bytes have to stay as they are until it is sent */
  readonly next: () => Uint8Array
}

export interface LoadResult {
  readonly requests: number
  readonly elapsedMillis: number
  readonly requestsPerSecond: number
  /** answers by status */
  readonly statuses: Readonly<Record<string, number>>
  /** connections that broke with a request unanswered */
  readonly errors: number
  readonly latency: Latency & { readonly p90Millis: number; readonly p999Millis: number }
}

/** Runs the load and resolves with what came of it; rejects when the load process fails. */
export const load = async (options: LoadOptions): Promise<LoadResult> => {
  const worker = fork(join(import.meta.dirname, "HttpLoadWorker.ts"), {
    ...nodeOn(clientCore),
    serialization: "advanced"
  })
  const exited = once(worker, "exit")
  worker.send(options)
  const outcome: ReadonlyArray<LoadResult> | "exited" = await Promise.race([
    once(worker, "message") as Promise<ReadonlyArray<LoadResult>>,
    exited.then(() => "exited" as const)
  ])
  const result = outcome === "exited" ? undefined : outcome[0]
  if (result === undefined) throw new Error("The load process ended without a result")
  await exited
  return result
}

/** A whole request as bytes. */
export const requestBytes = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = ""
): Uint8Array => {
  const all: Record<string, string> = { Host: "127.0.0.1", ...headers }
  if (body !== "") all["Content-Length"] = String(Buffer.byteLength(body))
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n${body}`)
}
