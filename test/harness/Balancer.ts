import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse
} from "node:http"
import type { AddressInfo } from "node:net"

/**
 * The load balancer that README asks for: servers in turn, and a request that one answers with 503, or not at all, goes
 * on to the next. The last one's answer is given in any case.
 */
export interface Balancer {
  readonly url: string
  /** how many requests one server handed on to the next because of a 503 */
  readonly handedOn: () => number
  readonly close: () => Promise<void>
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

interface Relayed {
  readonly message: IncomingMessage
  readonly body: Buffer
}

const relay = (agent: Agent, server: string, asked: IncomingMessage, body: Buffer): Promise<Relayed> =>
  new Promise((resolve, reject) => {
    const headers = { ...asked.headers, "content-length": String(body.length) }
    const options = { method: asked.method ?? "GET", headers, agent, timeout: 20_000 }
    const request = httpRequest(`${server}${asked.url ?? "/"}`, options, (message) => {
      bodyOf(message).then((found) => resolve({ message, body: found }), reject)
    })
    request.on("timeout", () => request.destroy(new Error("the server does not answer")))
    request.on("error", reject)
    request.end(body)
  })

export const startBalancer = async (servers: ReadonlyArray<string>): Promise<Balancer> => {
  const agent = new Agent({ keepAlive: false })
  let turn = 0
  let handedOn = 0

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const first = turn++
    let last: Relayed | undefined
    let unreached: unknown
    for (let tried = 0; tried < servers.length; tried++) {
      const server = servers[(first + tried) % servers.length] ?? ""
      try {
        last = await relay(agent, server, request, body)
      } catch (error) {
        // It is gone or hangs: the next one is asked.
        unreached = error
        continue
      }
      if (last.message.statusCode !== 503) break
      if (tried + 1 < servers.length) handedOn++
    }
    const { connection: _, "transfer-encoding": __, ...headers } = last?.message.headers ?? {}
    response.writeHead(last?.message.statusCode ?? 502, headers)
    response.end(last?.body ?? String(unreached))
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    handedOn: () => handedOn,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
        agent.destroy()
      })
  }
}
