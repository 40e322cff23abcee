import { HttpApi, OpenApi } from "effect/http-api"
import { AccountApi } from "./accounts/AccountApi.ts"
import { AdminApi } from "./accounts/AdminApi.ts"
import { KeysApi } from "./accounts/KeysApi.ts"
import { describeQuery } from "./core/DescribeQuery.ts"
import { SystemApi } from "./system/SystemApi.ts"

const description = `One self-hosted server for AI products and websites.

Every endpoint under \`/api/v1\` takes \`Authorization: Bearer <API_KEY>\`. Answers carry \`X-Request-Id\` and, where a
key was used, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds); a refusal adds
\`Retry-After\`. Unknown query parameters are ignored, known and invalid ones are 400. Unknown paths are 404, wrong
methods 405 with \`Allow\`, both with the flat error body \`{"error": "…"}\`.`

const rooms = HttpApi.make("signalbox").add(AccountApi).add(AdminApi).add(KeysApi).add(SystemApi)

/** The sum of all rooms: what `/openapi.json`, `/docs`, the typed client and the routes are made from. */
export class Api extends rooms.annotateMerge(
  OpenApi.annotations({ title: "Signalbox", version: "1", description, transform: describeQuery(rooms) })
) {}
