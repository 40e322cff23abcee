import { join } from "node:path"
import { clientCore, serverCore } from "#bench/harness/Cores.ts"
import { requestBytes } from "#bench/harness/HttpLoad.ts"
import { completionsPath, type ModelName, requestBody } from "./Answers.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"
import { type OurServer, startOurs } from "./OurServer.ts"
import { portkeyHeaders, portkeyPath, startPortkey } from "./Portkey.ts"

/** The server asked: the upstream itself, or a proxy in front of it. */
export type TargetName = "direct" | "raw pipe" | "ours" | "Portkey"

/** A target under way; plain data, so that cases in other processes can be given it. */
export interface Target {
  readonly name: TargetName
  readonly port: number
  readonly pid: number
  readonly upstreamPort: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** of ours */
  readonly ledger: { readonly url: string; readonly adminKey: string } | undefined
}

export interface StartedTarget {
  readonly target: Target
  readonly stop: () => Promise<void>
}

const here = (file: string): string => join(import.meta.dirname, file)

export const startUpstream = (): Promise<ForkedServer> => forkServer(here("BenchUpstream.ts"), clientCore)

const started = (
  name: TargetName,
  upstreamPort: number,
  { pid, port, stop }: ForkedServer,
  more: Partial<Target> = {}
): StartedTarget => ({
  target: { name, port, pid, upstreamPort, path: completionsPath, headers: {}, ledger: undefined, ...more },
  stop
})

const ofOurs = ({ adminKey, key, url }: OurServer): Partial<Target> => ({
  headers: { Authorization: `Bearer ${key}` },
  ledger: { url, adminKey }
})

/** Starts a target in front of the upstream, alone on its core; ours on a data directory of its own where one is given. */
export const startTarget = async (
  name: TargetName,
  upstream: ForkedServer,
  dataDir?: string
): Promise<StartedTarget> => {
  const { port } = upstream
  if (name === "direct") return started(name, port, { ...upstream, stop: async () => undefined })
  if (name === "raw pipe")
    return started(name, port, await forkServer(here("RawPipe.ts"), serverCore, [String(port)]))
  if (name === "Portkey")
    return started(name, port, await startPortkey(), { path: portkeyPath, headers: portkeyHeaders(port) })
  const ours = await startOurs(port, dataDir)
  return started(name, port, ours, ofOurs(ours))
}

/** A call of the model at the target. */
export const requestTo = (target: Target, model: ModelName, isStream: boolean): Uint8Array =>
  requestBytes(
    "POST",
    target.path,
    { "Content-Type": "application/json", ...target.headers },
    requestBody(model, isStream)
  )
