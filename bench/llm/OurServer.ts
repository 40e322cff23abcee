import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { probed } from "#bench/harness/Meter.ts"
import { descendants } from "#bench/harness/ProcessUse.ts"
import { ask, type Answer, type Asked, textAt } from "#test/harness/ApiClient.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import type { ForkedServer } from "#bench/harness/ForkedServer.ts"

/** The real server with its stores, billing and logging as they are by default, asking the bench's upstream. */
export interface OurServer extends ForkedServer {
  readonly url: string
  readonly adminKey: string
  /** a router key of the administrator's, whose credits pay */
  readonly key: string
}

/** The default (contract/llm#prices), set all the same: the account depends on it. */
export const markupPercent = 2

const toppedUpUsd = 100_000

/** The rate limit is not what is measured: the most that a key may have. */
const ratePerMinute = 1_000_000

const changed = async (
  server: Parameters<typeof ask>[0],
  method: string,
  path: string,
  asked: Asked
): Promise<Answer> => {
  const answer = await ask(server, method, path, asked)
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

/** Alone on the server's core; its stores on the clients'. On a new data directory, if none is given. */
export const startOurs = async (upstreamPort: number, dataDir?: string): Promise<OurServer> => {
  const server = await startServer({
    ...(dataDir === undefined ? {} : { dataDir }),
    env: { UPSTREAM_URL: `http://127.0.0.1:${upstreamPort}/api/v1`, ...probed() }
  })
  try {
    for (const pid of descendants(server.pid())) move(pid, clientCore)
    move(server.pid(), serverCore)
    const user = textAt(await changed(server, "GET", "/api/v1/health", {}), "userId")
    await changed(server, "PUT", "/api/v1/admin/markups/bench", { json: { percent: markupPercent } })
    await changed(server, "POST", "/api/v1/credits/topups", {
      json: { user_id: user, amount_usd: toppedUpUsd, note: "bench" }
    })
    const asked = { name: "bench", kind: "router", rate_limit_per_minute: ratePerMinute }
    const key = textAt(await changed(server, "POST", "/api/v1/keys", { json: asked }), "key")
    return {
      port: Number(new URL(server.url).port),
      pid: server.pid(),
      url: server.url,
      adminKey: server.adminKey(),
      key,
      stop: server.dispose
    }
  } catch (error) {
    await server.dispose()
    throw error
  }
}
