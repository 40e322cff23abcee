import type { HotPath } from "./HotRoute.ts"
import type { RawRoute } from "./RawRoute.ts"

/** The common part of all raw routes of one path. */
export interface RawPath extends HotPath {
  /** the value of `Allow` */
  readonly allow: string
  /** other methods are for ordinary endpoints */
  readonly isShared: boolean
  /** undefined where no route of the path serves the method */
  find(method: string): RawRoute | undefined
}

/** A raw path, and what stands for its parameters in the path of a request. */
export interface RawMatch {
  readonly there: RawPath
  readonly params: Readonly<Record<string, string>>
}

/** A raw route, and the parameters of a request to it. */
export interface RoutedRaw {
  readonly route: RawRoute
  readonly params: RawMatch["params"]
}

interface Pattern {
  readonly prefix: string
  /** undefined where the path does not match; the prefix does already */
  readonly paramsOf: (path: string) => RawMatch["params"] | undefined
  readonly there: RawPath
}

/** Finds raw routes by the path of a request; undefined where there is none. */
export type RawPaths = (path: string) => RawMatch | undefined

const noParams = {}

export const make = (routes: ReadonlyArray<RawRoute>): RawPaths => {
  const byPath = Map.groupBy(routes, ({ path }) => path)
  const patterns = Array.from(byPath, ([path, there]) => patternOf(path, rawPathOf(there)))
    .map((pattern, index) => ({ pattern, rank: rankOf([...byPath.keys()][index] ?? "") }))
    .toSorted((one, other) => (one.rank < other.rank ? -1 : 1))
    .map(({ pattern }) => pattern)
  return (path) => {
    for (const { paramsOf, prefix, there } of patterns) {
      const params = path.startsWith(prefix) ? paramsOf(path) : undefined
      if (params !== undefined) return { there, params }
    }
    return undefined
  }
}

const parameter = /:(\w+)|\*$/g

const patternOf = (path: string, there: RawPath): Pattern => {
  const prefix = path.split(parameter, 1)[0] ?? ""
  return { prefix, paramsOf: paramsOf(path, prefix.length), there }
}

const paramsOf = (path: string, from: number): Pattern["paramsOf"] => {
  const names = Array.from(path.matchAll(parameter), ([, name]) => name ?? "*")
  const [only] = names
  if (only === undefined) return (asked) => (asked.length === from ? noParams : undefined)
  // Most have one parameter at their end, for which an expression would cost more than all else of the search.
  if (path === `${path.slice(0, from)}:${only}`)
    return (asked) =>
      asked.length > from && !asked.includes("/", from) ? { [only]: asked.slice(from) } : undefined
  const source = path
    .split(parameter)
    .filter((_, index) => index % 2 === 0)
    .map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  const groups = names.map((name) => (name === "*" ? "(.*)" : "([^/]+)"))
  const text = source.map((literal, index) => literal + (groups[index] ?? "")).join("")
  const expression = new RegExp(`^${text}$`, "s")
  return (asked) => {
    const found = expression.exec(asked)
    return found === null
      ? undefined
      : Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? ""]))
  }
}

/** Orders paths: at the first segment in which two differ, text goes before a parameter, and that before any rest. */
const rankOf = (path: string): string =>
  path
    .split("/")
    .map((segment) => (segment === "*" ? "2" : segment.startsWith(":") ? "1" : "0"))
    .join("")

const rawPathOf = (routes: ReadonlyArray<RawRoute>): RawPath => {
  const [first] = routes
  const byMethod = new Map<string, RawRoute>()
  let others: RawRoute | undefined
  for (const route of routes) {
    if (route.methods === "*") others = route
    else for (const method of route.methods) byMethod.set(method, route)
  }
  const get = byMethod.get("GET")
  if (get !== undefined && !byMethod.has("HEAD")) byMethod.set("HEAD", get)
  return {
    cors: first?.cors ?? "configured",
    ...(first?.errors === undefined ? {} : { errors: first.errors }),
    allow: first?.allow ?? [...new Set([...byMethod.keys(), "OPTIONS"])].join(", "),
    isShared: first?.isShared === true,
    find: (method) => byMethod.get(method) ?? others
  }
}
