import { Effect, Exit, Fiber, Result } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { type Problem, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { Admission, type Entry, invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import type { BodyAdmission, HotReply, HotRequest, HotRoute } from "#src/front/HotRoute.ts"
import { codes, RpcFault } from "#streams/mcp/Protocol.ts"
import type { McpEndpoint } from "./McpEndpoint.ts"
import { McpExchange } from "./McpExchange.ts"
import { serving } from "./McpService.ts"
import { originRule } from "./OriginRule.ts"

const foreignOrigin = JSON.stringify(
  new RpcFault(codes.invalidRequest, "Invalid request: pages of this origin may not ask", 403).reply(
    undefined
  )
)

const headers = [
  "authorization",
  "content-type",
  "idempotency-key",
  "mcp-session-id",
  "origin",
  "x-request-id"
]

const interrupted = ServiceUnavailable.of("The call was interrupted; try again")

type Entered = Result.Result<Entry, Problem>

/** The key may not call, or asks too often, or there is none. */
const refusalOf = (entered: Entered): Problem | undefined =>
  Result.isFailure(entered) ? entered.failure : entered.success.refusal

/** The way in, for bodies that come whole and for those that the front asks about before it reads them. */
const entering = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const isAllowed = originRule(yield* AppConfig)
  const admission = yield* Admission
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const entries = new WeakMap<HotRequest, Fiber.Fiber<Entered>>()

  /** Once for a request: it takes of the key's rate. */
  const enter = (request: HotRequest): Fiber.Fiber<Entered> => {
    const entered =
      entries.get(request) ??
      run(Effect.result(admission.enter(request.header("authorization"), endpoint.access, request)))
    entries.set(request, entered)
    return entered
  }

  /** The key of a request that is let in; another one is answered. */
  const keyOf = (exchange: McpExchange, entered: Entered): Principal | undefined => {
    if (Result.isSuccess(entered)) {
      const { headers, key } = entered.success
      exchange.headers.push(...Object.entries(headers))
      exchange.onStatus = (status) => admission.record(key, status)
    }
    const refusal = refusalOf(entered)
    if (refusal !== undefined) exchange.fail(refusal)
    return refusal === undefined && Result.isSuccess(entered) ? entered.success.key : undefined
  }

  const admit = (request: HotRequest): BodyAdmission => {
    const refused = (answer: (exchange: McpExchange) => void): BodyAdmission => ({
      _tag: "Refused",
      answer: (reply) => answer(new McpExchange(request, reply))
    })
    if (!isAllowed(request.header("origin"))) return refused((exchange) => exchange.send(403, foreignOrigin))
    const key = admission.recall(request.header("authorization"))
    if (key === undefined) return refused((exchange) => exchange.fail(invalidKey()))
    const exit = enter(request).pollUnsafe()
    if (exit !== undefined && Exit.isSuccess(exit) && refusalOf(exit.value) !== undefined)
      return refused((exchange) => keyOf(exchange, exit.value))
    return key === "unknown" ? { _tag: "Unknown" } : { _tag: "Known", userId: key.ownerId }
  }
  return { admit, enter, isAllowed, keyOf }
})

/**
 * The routes of an endpoint: `POST` alone, always JSON; other methods are 405 without a key. In this order: the origin,
 * the key, its rate, the body. Failures before the protocol are flat.
 */
export const mcpRoutes = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const { admit, enter, isAllowed, keyOf } = yield* entering(endpoint)
  const serve = yield* serving(endpoint)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const open = new Set<Fiber.Fiber<void>>()
  yield* Effect.addFinalizer(() => Fiber.interruptAll(open))

  const handle = (request: HotRequest, bytes: Uint8Array, reply: HotReply): void => {
    const exchange = new McpExchange(request, reply)
    if (!isAllowed(request.header("origin"))) return exchange.send(403, foreignOrigin)
    // The front's bytes are gone when this returns.
    const body = new Uint8Array(bytes)
    const served = Effect.flatMap(Fiber.join(enter(request)), (entered) => {
      const key = keyOf(exchange, entered)
      return key === undefined ? Effect.void : serve(exchange, key, body)
    })
    const fiber = run(served)
    open.add(fiber)
    fiber.addObserver((exit) => {
      open.delete(fiber)
      // The tool gave itself up, or the server ends: a client that has not gone is told.
      if (Exit.isFailure(exit)) exchange.fail(interrupted)
    })
    reply.onAbort(() => fiber.interruptUnsafe())
  }

  return endpoint.paths.map((path): HotRoute => ({
    method: "POST",
    path,
    maxBodyBytes: endpoint.maxBodyBytes,
    headers: [...headers, ...endpoint.server("").headers],
    cors: "configured",
    allow: "POST",
    errors: (status, error) => JSON.stringify({ error: status === 413 ? endpoint.tooLarge : error }),
    admit,
    handle
  }))
})
