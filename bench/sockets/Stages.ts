import { setTimeout as pause } from "node:timers/promises"
import {
  type Stage as BenchStage,
  type CaseContext,
  type Measurement,
  sized,
  type StageContext
} from "#bench/harness/Suite.ts"
import { unavailableUws } from "#bench/harness/ForkedServer.ts"
import { type SocketServer, startOurs, startRaw } from "./AgentServer.ts"
import { sessionsPerKey, type SocketLoad, startSockets } from "./SocketLoad.ts"

export type ServerName = "raw uWebSockets.js" | "ours"

/** A server without load but its warm-up, and sockets to it. */
export interface Stage {
  readonly server: SocketServer
  /** sessions that are not attached yet, each load with keys of its own */
  readonly load: (sessions: number) => SocketLoad
  readonly context: CaseContext
}

/** The two servers of a comparison are on one core, and share the sessions that it is busy with. */
export const ofEach = ({ parts }: CaseContext, sessions: number): number =>
  parts > 1 ? Math.ceil(sessions / 2) : sessions

const warmSessions = (context: CaseContext): number =>
  ofEach(context, sized(context, { tiny: 0, quick: 500, full: 1_000 }))

/** Code is compiled and pools are there before anything is looked at. */
const warm = async (start: Stage["load"], context: CaseContext): Promise<void> => {
  const sessions = warmSessions(context)
  const load = start(sessions)
  load.tell({ do: "attach" })
  await load.until(({ attached }) => attached === sessions, 20_000)
  const script = { pieces: 20, everyMillis: 20 }
  load.tell({
    do: "prompt",
    script,
    from: 0,
    count: sessions,
    overMillis: sized(context, { tiny: 0, quick: 1_000, full: 2_000 })
  })
  await load.until(({ whole }) => whole === sessions, 20_000)
  await load.leave()
  await pause(sized(context, { tiny: 0, quick: 300, full: 1_000 }))
}

/** For all cases of a tiny run, in this process: starting a server takes longer than they do. */
let shared: SocketServer | undefined

const tinySessions = 400

export const stage = async ({ size }: StageContext): Promise<BenchStage<undefined>> => {
  if (size === "tiny" && unavailableUws() === undefined) shared = await startOurs(tinySessions)
  const leave = async (): Promise<void> => {
    await shared?.stop()
    shared = undefined
  }
  return { given: undefined, leave }
}

/**
 * Runs a case with a server that has keys for so many sessions and has only been warmed. With `keeps`, a comparison's server has
 * the data of earlier rounds, and so the sessions that they left.
 */
export const staged =
  (
    name: ServerName,
    sessions: (context: CaseContext) => number,
    measure: (stage: Stage) => Promise<Measurement>,
    keeps = false
  ) =>
  async (context: CaseContext): Promise<Measurement> => {
    const { size } = context
    const lent = name === "ours" ? shared : undefined
    // Every load rounds its keys up.
    const wanted = sessions(context) + warmSessions(context) + 2 * sessionsPerKey
    const server =
      lent ?? (await (name === "ours" ? startOurs(wanted, keeps ? context.kept : undefined) : startRaw()))
    const loads: Array<SocketLoad> = []
    const load = (count: number): SocketLoad => {
      const { path, port } = server
      const started = startSockets({ port, path, keys: server.keysFor(count), sessions: count })
      loads.push(started)
      return started
    }
    try {
      if (size !== "tiny") await warm(load, context)
      return await measure({ server, load, context })
    } finally {
      for (const one of loads) await one.leave()
      if (lent === undefined) await server.stop()
    }
  }
