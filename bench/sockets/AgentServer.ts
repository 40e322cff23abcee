import { join } from "node:path"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { collectGarbage, probed } from "#bench/harness/Meter.ts"
import { descendants } from "#bench/harness/ProcessUse.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"
import { type Answer, ask, type Asked, textAt } from "#test/integration/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/integration/ServerProcess.ts"
import { sessionsPerKey } from "./SocketLoad.ts"

/** A server of sockets with all that the load has to know of it. */
export interface SocketServer {
  readonly port: number
  readonly path: string
  /** of so many sessions, and of nobody else: a session that is left lives on */
  readonly keysFor: (sessions: number) => ReadonlyArray<string>
  readonly pid: () => number
  /** memory then says what is kept */
  readonly collectGarbage: () => Promise<void>
  /** ends it with -9 and starts it again; answers when it is ready, as `performance.now` */
  readonly restart: () => Promise<{ readonly killedAt: number; readonly readyAt: number }>
  readonly stop: () => Promise<void>
}

const scripted = join(import.meta.dirname, "ScriptedServer.ts")

/** The raw limit, alone on the server's core. */
export const startRaw = async (): Promise<SocketServer> => {
  const server = await forkServer(scripted, serverCore)
  return {
    port: server.port,
    path: "/ws",
    keysFor: () => ["raw"],
    pid: () => server.pid,
    collectGarbage: () => collectGarbage(server.pid),
    restart: () => Promise.reject(new Error("the raw limit keeps nothing")),
    stop: () => server.stop()
  }
}

const toppedUpUsd = 100_000
/** The rate limit is not what is measured: the most that a key may have. */
const ratePerMinute = 1_000_000
const keysAtOnce = 16

const changed = async (
  server: ServerProcess,
  method: string,
  path: string,
  asked: Asked
): Promise<Answer> => {
  const answer = await ask(server, method, path, asked)
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

const makeKey = async (server: ServerProcess, kind: string, by: Asked): Promise<string> => {
  const json = { name: "bench", kind, rate_limit_per_minute: ratePerMinute }
  return textAt(await changed(server, "POST", "/api/v1/keys", { json, ...by }), "key")
}

const makeKeys = async (server: ServerProcess, count: number): Promise<Array<string>> => {
  // The administrator's own is held to the usual rate.
  const key = await makeKey(server, "account", {})
  const keys: Array<string> = []
  const make = async (): Promise<void> => {
    while (keys.length < count) {
      const at = keys.push("") - 1
      keys[at] = await makeKey(server, "router", { key })
    }
  }
  await Promise.all(Array.from({ length: keysAtOnce }, make))
  return keys
}

/** Alone on the server's core; its stores beside the clients. */
const spread = (server: ServerProcess): void => {
  for (const pid of descendants(server.pid())) move(pid, clientCore)
  move(server.pid(), serverCore)
}

/** The real server with its stores, billing and logging, and keys for so many sessions. */
export const startOurs = async (sessions: number): Promise<SocketServer> => {
  const upstream: ForkedServer = await forkServer(scripted, clientCore)
  try {
    const server = await startServer({
      env: {
        UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/api/v1`,
        ...probed()
      }
    })
    try {
      spread(server)
      const user = textAt(await changed(server, "GET", "/api/v1/health", {}), "userId")
      const topUp = { user_id: user, amount_usd: toppedUpUsd, note: "bench" }
      await changed(server, "POST", "/api/v1/credits/topups", { json: topUp })
      const keys = await makeKeys(server, Math.ceil(sessions / sessionsPerKey))
      return {
        port: Number(new URL(server.url).port),
        path: "/api/v1/agent/ws",
        keysFor: (count) => keys.splice(0, Math.ceil(count / sessionsPerKey)),
        pid: server.pid,
        collectGarbage: () => collectGarbage(server.pid()),
        restart: async () => {
          const killedAt = performance.now()
          await server.stop("SIGKILL")
          await server.start()
          spread(server)
          return { killedAt, readyAt: performance.now() }
        },
        stop: async () => {
          await server.dispose()
          await upstream.stop()
        }
      }
    } catch (error) {
      await server.dispose()
      throw error
    }
  } catch (error) {
    await upstream.stop()
    throw error
  }
}
