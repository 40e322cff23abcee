import { HttpApi, type HttpApiGroup } from "effect/http-api"

/** Which methods a path has, so that a wrong one is answered 405 with `Allow` and not 404. */
export interface KnownPaths {
  /** the value of `Allow`; undefined where nothing has that path */
  allow(path: string): string | undefined
}

type Endpoint = readonly [method: string, path: string]

/** The endpoints of an API. */
export const endpointsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<Endpoint> => {
  const endpoints: Array<Endpoint> = []
  HttpApi.reflect(api, {
    onGroup() {},
    onEndpoint: ({ endpoint }) => endpoints.push([endpoint.method, endpoint.path])
  })
  return endpoints
}

export const make = (endpoints: ReadonlyArray<Endpoint>): KnownPaths => {
  const methods = new Map<string, Set<string>>()
  for (const [method, path] of endpoints) {
    const there = methods.get(path) ?? new Set()
    methods.set(path, there.add(method))
    if (method === "GET") there.add("HEAD")
  }
  const patterns = Array.from(methods, ([path, there]) => ({
    pattern: patternOf(path),
    allow: [...there].join(", ")
  }))
  return { allow: (path) => patterns.find(({ pattern }) => pattern.test(path))?.allow }
}

/** Parameters (`:id`) take one segment that is not empty; everything else stands for itself. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:\w+/g, "[^/]+")}$`)
