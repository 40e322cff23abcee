import { clientCore } from "#bench/harness/Cores.ts"
import { bodyOf, type ForkedServer, forkServer, serveForked } from "#bench/harness/ForkedServer.ts"
import type { UwsResponse } from "#src/front/uws/Addon.ts"

/**
 * A push service that costs next to nothing: `POST /push/<name>` is 201, and `POST /busy/<name>` 429; `POST /hang/<name>` is
 * never answered: `POST /release` cuts such connections. `GET /wait?count=` answers once so many pushes came since the last `POST /reset`, with their names and
 * instants.
 */
export interface Arrivals {
  readonly names: ReadonlyArray<string>
  /** epoch milliseconds with fractions */
  readonly atMillis: ReadonlyArray<number>
}

interface Waiter {
  readonly count: number
  readonly response: UwsResponse
}

/** Starts it in a process of its own, on the clients' core. */
export const startSink = (): Promise<ForkedServer> => forkServer(import.meta.filename, clientCore)

export const resetSink = async (port: number): Promise<void> => {
  await fetch(`http://127.0.0.1:${port}/reset`, { method: "POST" })
}

export const releaseAt = async (port: number): Promise<void> => {
  await fetch(`http://127.0.0.1:${port}/release`, { method: "POST" })
}

export const arrivalsAt = async (port: number, count: number): Promise<Arrivals> => {
  const answer = await fetch(`http://127.0.0.1:${port}/wait?count=${count}`)
  return (await answer.json()) as Arrivals
}

const serve = (): void => {
  let names: Array<string> = []
  let atMillis: Array<number> = []
  let waiters: Array<Waiter> = []
  const hanging = new Set<UwsResponse>()
  const tell = (): void => {
    const told = waiters.filter(({ count }) => names.length >= count)
    if (told.length === 0) return
    waiters = waiters.filter((waiter) => !told.includes(waiter))
    const text = JSON.stringify({ names, atMillis })
    for (const { response } of told)
      response.cork(() => response.writeHeader("Content-Type", "application/json").end(text))
  }
  const once = (response: UwsResponse, status: string, after: () => void): void => {
    response.onAborted(() => undefined)
    bodyOf(response, () => {
      response.cork(() => response.writeStatus(status).end())
      after()
    })
  }
  serveForked((app) => {
    app.post("/push/*", (response, request) => {
      const name = request.getUrl().slice("/push/".length)
      const at = performance.timeOrigin + performance.now()
      once(response, "201 Created", () => {
        names.push(name)
        atMillis.push(at)
        if (waiters.length > 0) tell()
      })
    })
    app.post("/busy/*", (response) => once(response, "429 Too Many Requests", () => undefined))
    app.post("/hang/*", (response) => {
      hanging.add(response)
      response.onAborted(() => hanging.delete(response))
    })
    app.post("/release", (response) =>
      once(response, "204 No Content", () => {
        for (const one of hanging) one.close()
      })
    )
    app.post("/reset", (response) =>
      once(response, "204 No Content", () => {
        names = []
        atMillis = []
      })
    )
    app.get("/wait", (response, request) => {
      const waiter = { count: Number(/count=(\d+)/.exec(request.getQuery() ?? "")?.[1]), response }
      response.onAborted(() => (waiters = waiters.filter((one) => one !== waiter)))
      waiters.push(waiter)
      tell()
    })
  })
}

if (process.argv[1] === import.meta.filename) serve()
