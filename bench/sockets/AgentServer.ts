import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { collectGarbage, probed } from "#bench/harness/Meter.ts"
import { descendants } from "#bench/harness/ProcessUse.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"
import { type Answer, ask, type Asked, textAt } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { sessionsPerKey } from "./SocketLoad.ts"

/** A server of sockets with all that the load has to know of it. */
export interface SocketServer {
  readonly port: number
  readonly path: string
  /** for this many sessions, exclusively: an abandoned session lives on */
  readonly keysFor: (sessions: number) => ReadonlyArray<string>
  readonly pid: () => number
  /** memory then says what is kept; answers the bytes that V8 has in use */
  readonly collectGarbage: () => Promise<number>
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

const toppedUpUsd = 10_000
/** The rate limit is not what is measured: the most that a key may have. */
const ratePerMinute = 1_000_000
/** As many as a user may have. */
const keysPerUser = 100

const made = async (server: ServerProcess, path: string, asked: Asked): Promise<Answer> => {
  const answer = await ask(server, "POST", `/api/v1/${path}`, asked)
  if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

/** Router keys of a new user with credits. */
const makeUser = async (
  server: ServerProcess,
  key: string,
  index: number
): Promise<ReadonlyArray<string>> => {
  // A kept data directory has those of earlier servers.
  const profile = { email: `bench-${index}-${randomUUID()}@example.com`, name: "Bench" }
  const user = textAt(await made(server, "admin/users", { key, json: profile }), "id")
  await made(server, "credits/topups", {
    key,
    json: { user_id: user, amount_usd: toppedUpUsd, note: "bench" }
  })
  const json = { name: "bench", kind: "router", rate_limit_per_minute: ratePerMinute, user_id: user }
  const keys = Array.from({ length: keysPerUser }, () => made(server, "keys", { key, json }))
  return (await Promise.all(keys)).map((answer) => textAt(answer, "key"))
}

const makeKeys = async (server: ServerProcess, count: number): Promise<Array<string>> => {
  // The administrator's own key is held to the usual rate.
  const unheld = { name: "bench", kind: "account", rate_limit_per_minute: ratePerMinute }
  const key = textAt(await made(server, "keys", { json: unheld }), "key")
  const keys: Array<string> = []
  for (let user = 0; keys.length < count; user++) keys.push(...(await makeUser(server, key, user)))
  return keys
}

/** Alone on the server's core; its stores beside the clients. */
const spread = (server: ServerProcess): void => {
  for (const pid of descendants(server.pid())) move(pid, clientCore)
  move(server.pid(), serverCore)
}

/** The real server with its stores, billing and logging, and keys for so many sessions; on a new data directory, if none is given. */
export const startOurs = async (sessions: number, dataDir?: string): Promise<SocketServer> => {
  const upstream: ForkedServer = await forkServer(scripted, clientCore)
  try {
    const server = await startServer({
      ...(dataDir === undefined ? {} : { dataDir }),
      env: {
        UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/api/v1`,
        ...probed()
      }
    })
    try {
      spread(server)
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
