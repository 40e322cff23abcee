import { setTimeout as pause } from "node:timers/promises"
import type { Stage as BenchStage, CaseContext, Measurement, StageContext } from "#bench/harness/Suite.ts"
import { unavailableUws } from "#bench/llm/ForkedServer.ts"
import { type SocketServer, startOurs, startRaw } from "./AgentServer.ts"
import { sessionsPerKey, type SocketLoad, startSockets } from "./SocketLoad.ts"

export type ServerName = "raw uWebSockets.js" | "ours"

/** A server that nobody has talked to but to warm it, and sockets to it. */
export interface Stage {
  readonly server: SocketServer
  /** sessions that are not attached yet, each load with keys of its own */
  readonly load: (sessions: number) => SocketLoad
  readonly context: CaseContext
}

const warmSessions = 1_000

/** Code is compiled and pools are there before anything is looked at. */
const warm = async (start: Stage["load"]): Promise<void> => {
  const load = start(warmSessions)
  load.tell({ do: "attach" })
  await load.until(({ attached }) => attached === warmSessions, 20_000)
  const script = { pieces: 20, everyMillis: 20 }
  load.tell({ do: "prompt", script, from: 0, count: warmSessions, overMillis: 2_000 })
  await load.until(({ whole }) => whole === warmSessions, 20_000)
  await load.leave()
  await pause(1_000)
}

/** For all cases of a quick run in one process: starting a server takes longer than they do. */
let shared: SocketServer | undefined

const quickSessions = 400

export const stage = async ({ quick }: StageContext): Promise<BenchStage<undefined>> => {
  if (quick && unavailableUws() === undefined) shared = await startOurs(quickSessions)
  const leave = async (): Promise<void> => {
    await shared?.stop()
    shared = undefined
  }
  return { given: undefined, leave }
}

/** Runs a case with a server that has keys for so many sessions, and not been used before but to warm it. */
export const staged =
  (name: ServerName, sessions: (quick: boolean) => number, measure: (stage: Stage) => Promise<Measurement>) =>
  async (context: CaseContext): Promise<Measurement> => {
    const { quick } = context
    const lent = name === "ours" ? shared : undefined
    // Every load rounds its keys up.
    const wanted = sessions(quick) + warmSessions + 2 * sessionsPerKey
    const server = lent ?? (await (name === "ours" ? startOurs(wanted) : startRaw()))
    const loads: Array<SocketLoad> = []
    const load = (count: number): SocketLoad => {
      const { path, port } = server
      const started = startSockets({ port, path, keys: server.keysFor(count), sessions: count })
      loads.push(started)
      return started
    }
    try {
      if (!quick) await warm(load)
      return await measure({ server, load, context })
    } finally {
      for (const one of loads) await one.leave()
      if (lent === undefined) await server.stop()
    }
  }
