import { HttpApi } from "effect/http-api"
import { OpenAiErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import type { ErrorFormat } from "#schemas/core/Problem.ts"

/** The methods of each path, so that a wrong one is answered 405 with `Allow` and not 404. */
export interface KnownPaths {
  /** undefined where nothing has that path */
  at(path: string): KnownPath | undefined
  /**
   * The router would take it for another path: to it `;` and `#` end a path, and `%68` is an `h`. Parameter values may
   * be encoded.
   */
  isMistakable(path: string): boolean
}

interface KnownPath {
  /** the value of `Allow` */
  readonly allow: string
  /** the form of errors that its endpoints answer in */
  readonly errors: ErrorFormat
}

export type KnownEndpoint = readonly [method: string, path: string, errors?: KnownPath["errors"]]

/** The endpoints of an API. */
export const endpointsOf = (api: HttpApi.Constraint): ReadonlyArray<KnownEndpoint> => {
  if (!HttpApi.isHttpApi(api)) return []
  const endpoints: Array<KnownEndpoint> = []
  HttpApi.reflect(api, {
    onGroup() {},
    onEndpoint: ({ endpoint, middleware }) =>
      endpoints.push([endpoint.method, endpoint.path, isOpenAi(middleware) ? "openai" : "plain"])
  })
  return endpoints
}

/** Endpoints whose errors have the OpenAI form pass its middleware for faults. */
const isOpenAi = (middleware: ReadonlySet<{ readonly key: string }>): boolean =>
  [...middleware].some(({ key }) => key === OpenAiErrorBoundary.key)

export const make = (endpoints: ReadonlyArray<KnownEndpoint>): KnownPaths => {
  const methods = new Map<string, Set<string>>()
  const families = new Map<string, KnownPath["errors"]>()
  for (const [method, path, errors = "plain"] of endpoints) {
    families.set(path, errors)
    const there = methods.get(path) ?? new Set()
    methods.set(path, there.add(method))
    if (method === "GET") there.add("HEAD")
  }
  const patterns = Array.from(methods, ([path, there]) => ({
    pattern: patternOf(path),
    known: { allow: [...there].join(", "), errors: families.get(path) ?? "plain" }
  }))
  const at = (path: string) => patterns.find(({ pattern }) => pattern.test(path))?.known
  return {
    at,
    isMistakable: (path) => unusual.test(path) && (ending.test(path) || at(path) !== at(decoded(path)))
  }
}

const unusual = /[%;#]/
const ending = /[;#]/

/** As the router decodes a path. */
const decoded = (path: string): string => {
  try {
    return decodeURI(path)
  } catch {
    // Not UTF-8: the router takes it for no path at all.
    return path
  }
}

/** Parameters (`:id`) take one segment that is not empty; everything else stands for itself. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:\w+/g, "[^/]+")}$`)
