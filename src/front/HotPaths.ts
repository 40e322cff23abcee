import type { HotPath, HotRoute } from "./HotRoute.ts"
import type { HotSocketRoute } from "./HotSocket.ts"
import * as RawPaths from "./RawPaths.ts"
import type { RawRoute } from "./RawRoute.ts"

/** The hot routes as the catch-all sees them: uWebSockets.js hands it every request that no route matched exactly. */
export interface HotPaths {
  /** the route that serves this method there; HEAD is served by GET's */
  find(method: string, path: string): HotRoute | undefined
  /** the value of `Allow` of a hot path; undefined where no hot route has that path */
  allow(path: string): string | undefined
  /** undefined where no hot route has that path */
  at(path: string): HotPath | undefined
  /** the raw routes of a path that is not a hot one */
  readonly raw: RawPaths.RawPaths
  /** the path would be a hot one if slashes, case or percent-encoding were forgiven. They are not: 404 */
  isVariant(path: string): boolean
}

export const make = (
  routes: ReadonlyArray<HotRoute>,
  socketRoutes: ReadonlyArray<HotSocketRoute>,
  rawRoutes: ReadonlyArray<RawRoute>
): HotPaths => {
  const sockets = new Set(socketRoutes.map(({ path }) => path))
  const byPath = new Map<string, Array<HotRoute>>()
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route])
  const normalised = new Set([...byPath.keys(), ...sockets].map(normalise))
  const allows = new Map(Array.from(byPath, ([path, there]) => [path, allowOf(there)]))
  for (const path of sockets) allows.set(path, "GET, HEAD, OPTIONS")
  return {
    find: (method, path) => {
      const wanted = method === "HEAD" ? "GET" : method
      return byPath.get(path)?.find((route) => route.method === wanted)
    },
    allow: (path) => allows.get(path),
    at: (path) => (sockets.has(path) ? socketPath : byPath.get(path)?.[0]),
    raw: RawPaths.make(rawRoutes),
    isVariant: (path) => unusual.test(path) && !allows.has(path) && normalised.has(normalise(path))
  }
}

/** Browsers ask no leave to open a WebSocket, so CORS says nothing of it. */
const socketPath: HotPath = { cors: "configured", isSocket: true }

const allowOf = (routes: ReadonlyArray<HotRoute>): string =>
  [...routes.flatMap((route) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method])), "OPTIONS"].join(
    ", "
  )

/** Only such a path can be a variant; the test spares ordinary requests the normalisation. */
const unusual = /[A-Z%]|\/\/|.\/$/

const normalise = (path: string): string => {
  const decoded = path.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16))
  )
  const collapsed = decoded.toLowerCase().replaceAll(/\/+/g, "/")
  return collapsed.length > 1 ? collapsed.replace(/\/$/, "") : collapsed
}
