import { Context, Predicate } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { OpenToCookies } from "#schemas/core/Authorization.ts"
import { describeQuery } from "#schemas/core/DescribeQuery.ts"
import type { Room } from "./Room.ts"

const description = `One self-hosted server for AI products and websites.

Every endpoint under \`/api/v1\` takes \`Authorization: Bearer <API_KEY>\`. Answers carry \`X-Request-Id\` and, where a
key was used, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds); a refusal adds
\`Retry-After\`. Unknown query parameters are ignored, known and invalid ones are 400. Unknown paths are 404, wrong
methods 405 with \`Allow\`, both with the plain error body \`{"error": "…"}\`.`

const sessionScheme = {
  type: "apiKey",
  in: "cookie",
  name: "__Host-signalbox",
  description:
    "The cookie of a session, `signalbox` where the server is asked by http. `Authorization` goes before it."
}

/** Endpoints that are open to cookies take one in the place of a key. */
const describeCookies = (api: HttpApi.Top) => (spec: { [key: string]: unknown }) => {
  const operations = new Set<string>()
  HttpApi.reflect(api, {
    onGroup() {},
    onEndpoint({ endpoint, mergedAnnotations }) {
      if (Context.get(mergedAnnotations, OpenToCookies))
        operations.add(`${endpoint.path.replace(/:(\w+)/g, "{$1}")} ${endpoint.method.toLowerCase()}`)
    }
  })
  for (const operation of operations) {
    const [path = "", method = ""] = operation.split(" ")
    const described = memberOf(memberOf(spec["paths"], path), method)
    if (!Predicate.isObject(described) || !("security" in described)) continue
    if (!Array.isArray(described.security) || described.security.length === 0) continue
    described.security = [...described.security, { session: [] }]
    Object.assign(memberOf(spec["components"], "securitySchemes") ?? {}, { session: sessionScheme })
  }
  return spec
}

const memberOf = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

/** The endpoints of rooms: first those of the pipeline, then those that are served beside it. */
export const publish = (list: ReadonlyArray<Pick<Room, "api" | "rawApi">>): HttpApi.Top => {
  const apis: ReadonlyArray<HttpApi.Constraint> = [
    HttpApi.make("signalbox"),
    ...list.map(({ api }) => api),
    ...list.map(({ rawApi }) => rawApi)
  ]
  const all = apis.filter(HttpApi.isHttpApi).reduce((sum, api) => sum.addHttpApi(api))
  return all.annotateMerge(
    OpenApi.annotations({
      title: "Signalbox",
      version: "1",
      description,
      transform: (spec) => describeCookies(all)(describeQuery(all)(spec))
    })
  )
}
