import { HttpApi, type HttpApiGroup } from "effect/http-api"
import { NestedFaults } from "#schemas/core/Faults.ts"

/** Which methods a path has, so that a wrong one is answered 405 with `Allow` and not 404. */
export interface KnownPaths {
  /** undefined where nothing has that path */
  at(path: string): KnownPath | undefined
}

export interface KnownPath {
  /** the value of `Allow` */
  readonly allow: string
  /** the family of errors that its endpoints answer in */
  readonly errors: "flat" | "nested"
}

type Endpoint = readonly [method: string, path: string, errors?: KnownPath["errors"]]

/** The endpoints of an API. */
export const endpointsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<Endpoint> => {
  const endpoints: Array<Endpoint> = []
  HttpApi.reflect(api, {
    onGroup() {},
    onEndpoint: ({ endpoint, middleware }) =>
      endpoints.push([endpoint.method, endpoint.path, isNested(middleware) ? "nested" : "flat"])
  })
  return endpoints
}

/** Those of the nested family pass its middleware for faults. */
const isNested = (middleware: ReadonlySet<{ readonly key: string }>): boolean =>
  [...middleware].some(({ key }) => key === NestedFaults.key)

export const make = (endpoints: ReadonlyArray<Endpoint>): KnownPaths => {
  const methods = new Map<string, Set<string>>()
  const families = new Map<string, KnownPath["errors"]>()
  for (const [method, path, errors = "flat"] of endpoints) {
    families.set(path, errors)
    const there = methods.get(path) ?? new Set()
    methods.set(path, there.add(method))
    if (method === "GET") there.add("HEAD")
  }
  const patterns = Array.from(methods, ([path, there]) => ({
    pattern: patternOf(path),
    known: { allow: [...there].join(", "), errors: families.get(path) ?? "flat" }
  }))
  return { at: (path) => patterns.find(({ pattern }) => pattern.test(path))?.known }
}

/** Parameters (`:id`) take one segment that is not empty; everything else stands for itself. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:\w+/g, "[^/]+")}$`)
