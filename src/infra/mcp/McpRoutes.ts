import { Effect } from "effect"
import { KeyedExchange, keyedServing } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { codes, RpcFault } from "#streams/mcp/Protocol.ts"
import type { McpEndpoint } from "./McpEndpoint.ts"
import { serving } from "./McpService.ts"
import { originRule } from "./OriginRule.ts"

const foreignOrigin = new RpcFault(
  codes.invalidRequest,
  "Invalid request: pages of this origin may not ask",
  403
)

/**
 * The routes of an endpoint: `POST` alone, always JSON; other methods are 405 without a key. In this order: the origin,
 * the key, its rate, the body. Failures before the protocol are flat.
 */
export const mcpRoutes = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const isAllowed = originRule(yield* AppConfig)
  const [serve, handle] = [yield* keyedServing, yield* serving(endpoint)]
  return endpoint.paths.map((path): RawRoute => {
    const answer = serve(endpoint.access, path, handle)
    return {
      methods: ["POST"],
      path,
      maxBodyBytes: endpoint.maxBodyBytes,
      cors: "configured",
      allow: "POST",
      errors: (status, error) => JSON.stringify({ error: status === 413 ? endpoint.tooLarge : error }),
      handle: (request, body, reply) =>
        isAllowed(request.header("origin"))
          ? answer(request, body, reply)
          : new KeyedExchange(request, body, reply).sendJson(
              foreignOrigin.status,
              foreignOrigin.reply(undefined)
            )
    }
  })
})
