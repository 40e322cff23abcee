import { HttpApi, type HttpApiGroup } from "effect/http-api"

/** Which methods a path has, so that a wrong one is answered 405 with `Allow` and not 404. */
export interface KnownPaths {
  /** the value of `Allow`; undefined where nothing has that path */
  allow(path: string): string | undefined
}

/** The endpoints of an API, and what else is served (method and path). */
export const make = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  others: ReadonlyArray<readonly [method: string, path: string]>
): KnownPaths => {
  const methods = new Map<string, Set<string>>()
  const add = (method: string, path: string): void => {
    const there = methods.get(path) ?? new Set()
    methods.set(path, there.add(method))
    if (method === "GET") there.add("HEAD")
  }
  HttpApi.reflect(api, { onGroup() {}, onEndpoint: ({ endpoint }) => add(endpoint.method, endpoint.path) })
  for (const [method, path] of others) add(method, path)
  const patterns = Array.from(methods, ([path, there]) => ({
    pattern: patternOf(path),
    allow: [...there].join(", ")
  }))
  return { allow: (path) => patterns.find(({ pattern }) => pattern.test(path))?.allow }
}

/** Parameters (`:id`) take one segment that is not empty; everything else stands for itself. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:\w+/g, "[^/]+")}$`)
