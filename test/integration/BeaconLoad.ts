import { Agent, request as httpRequest } from "node:http"

/** The outcome of one beacon: the status answered, or undefined where the connection broke before an answer. */
export type Outcome = number | undefined

/**
 * A closed loop of beacons with unique paths against a server that may die at any instant. Every path is kept with
 * what was answered, so that a test can hold ClickHouse against it: a 202 must be there exactly once, anything
 * else at most once.
 */
export interface BeaconLoad {
  readonly outcomes: ReadonlyMap<string, Outcome>
  /** lets requests under way finish or fail, then returns */
  readonly stop: () => Promise<void>
}

/** A browser's, so that nothing is taken for a bot. */
const userAgent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

/** Visitors in the documentation range of RFC 5737 and RFC 2544, so that the per-visitor limit is never met. */
export const addressOf = (sequence: number): string =>
  `198.${18 + ((sequence >> 16) & 1)}.${(sequence >> 8) & 255}.${sequence & 255}`

/** Sends a browser event as from an address; the server must run with `TRUST_PROXY=1`. */
export const sendBeacon = (url: string, agent: Agent, event: object, address: string): Promise<Outcome> =>
  new Promise((resolve) => {
    const body = JSON.stringify(event)
    const request = httpRequest(`${url}/api/event`, {
      method: "POST",
      agent,
      headers: {
        "content-type": "text/plain",
        "user-agent": userAgent,
        "content-length": Buffer.byteLength(body),
        "x-forwarded-for": address
      },
      timeout: 30_000
    })
    request.on("response", (response) => {
      response.resume()
      response.on("end", () => resolve(response.statusCode))
      // The status line was read: the server had answered, even if the rest was lost.
      response.on("error", () => resolve(response.statusCode))
    })
    request.on("timeout", () => request.destroy())
    request.on("error", () => resolve(undefined))
    request.end(body)
  })

/** Starts `connections` loops against `url`; the server must run with `TRUST_PROXY=1`. */
export const startBeacons = (options: {
  readonly url: string
  readonly site: string
  readonly connections: number
  /** makes paths unique over several loads in one test */
  readonly label: string
}): BeaconLoad => {
  const outcomes = new Map<string, Outcome>()
  const agent = new Agent({ keepAlive: true, maxSockets: options.connections })
  const state = { isRunning: true }
  let sequence = 0

  const loop = async (): Promise<void> => {
    while (state.isRunning) {
      const mine = sequence++
      const path = `/${options.label}/${mine}`
      const event = { s: options.site, k: "pageview", u: `https://example.com${path}` }
      const outcome = await sendBeacon(options.url, agent, event, addressOf(mine))
      outcomes.set(path, outcome)
      // A dead server refuses at once; a busy loop would starve the one that is starting.
      if (outcome === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const loops = Array.from({ length: options.connections }, loop)

  return {
    outcomes,
    stop: async () => {
      state.isRunning = false
      await Promise.all(loops)
      agent.destroy()
    }
  }
}
